// The type rules.
#include "ir/typing.h"

#include "ir/text.h"
#include "support/check.h"

namespace picokernel::ir {
namespace {

Inferred error(std::string text) { return {.results = {}, .error = std::move(text)}; }
Inferred one(Type type) { return {.results = {std::move(type)}, .error = {}}; }

std::string spell(Module& m, const Type& type) { return to_string(m, m.types.intern(type)); }

// Operands from `first` on are values of one dtype; their shapes broadcast.
Inferred broadcast_all(Module& m, const OpInfo& op, std::span<const ValueId> operands,
                       size_t first) {
  Type result = m.type(operands[first]);
  for (size_t i = first; i < operands.size(); ++i) {
    const Type& t = m.type(operands[i]);
    if (t.kind != TypeKind::value)
      return error("operand " + std::to_string(i) + " of " + std::string(op.name) + " is a " +
                   spell(m, t) + ", not a value");
    if (t.dtype != result.dtype)
      return error("operands of " + std::string(op.name) + " differ in type: " + spell(m, result) +
                   " and " + spell(m, t));
    if (!allows(op.allowed, t.dtype))
      return error(std::string(op.name) + " takes " + std::string(describe(op.allowed)) + ", not " +
                   std::string(text_name(t.dtype)));
    std::vector<SizeId> shape;
    if (!broadcast(m, result.shape, t.shape, shape))
      return error("shapes of " + spell(m, result) + " and " + spell(m, t) + " do not broadcast");
    result.shape = std::move(shape);
  }
  return one(std::move(result));
}

Inferred infer_view(Module& m, std::span<const ValueId> operands, uint64_t attribute) {
  Type type = m.type(operands[0]);
  if (type.kind != TypeKind::ref) return error("view takes a ref, not " + spell(m, type));
  const MapId id{size_t{attribute}};
  if (!m.maps.contains(id)) return error("view has no map");
  const IndexMap& map = m.maps[id];
  std::vector<bool> used(type.shape.size());
  const auto use = [&](int32_t source) {
    if (source < 0 || static_cast<size_t>(source) >= used.size() ||
        used[static_cast<size_t>(source)])
      return false;
    used[static_cast<size_t>(source)] = true;
    return true;
  };
  for (const DimMap& d : map.dims)
    if (d.source != DimMap::kNewAxis && (!use(d.source) || d.step == 0))
      return error("view names source dimension " + std::to_string(d.source) + " wrongly");
  for (const DimPick& p : map.picks)
    if (!use(p.source))
      return error("view picks source dimension " + std::to_string(p.source) + " wrongly");
  for (const bool u : used)
    if (!u) return error("view leaves out a source dimension");
  type.shape.clear();
  for (const DimMap& d : map.dims) type.shape.push_back(d.extent);
  return one(std::move(type));
}

bool is_i64(const Module& m, ValueId v) {
  const Type& t = m.type(v);
  return t.is_scalar() && t.dtype == DType::i64;
}

std::vector<Type> types_of(const Module& m, std::span<const ValueId> values) {
  std::vector<Type> types;
  for (const ValueId v : values) types.push_back(m.type(v));
  return types;
}

Inferred infer_atomic(Module& m, const OpInfo& op, std::span<const ValueId> operands) {
  const Type& pointer = m.type(operands[0]);
  const std::string name(op.name);
  if (pointer.kind != TypeKind::ptr || !allows(op.allowed, pointer.dtype))
    return error(name + " takes a pointer to " + std::string(describe(op.allowed)) + ", not " +
                 spell(m, pointer));
  if (!is_i64(m, operands[1]))
    return error("the offset of " + name + " is an i64, not " + spell(m, m.type(operands[1])));
  const Type element{.dtype = pointer.dtype};
  for (const ValueId v : operands.subspan(2))
    if (m.type(v) != element)
      return error(name + " of " + spell(m, m.type(v)) + " at " + spell(m, pointer) +
                   ": the types differ");
  return one(element);
}

Inferred infer_custom(Module& m, Opcode opcode, std::span<const ValueId> operands,
                      uint64_t attribute, std::span<const Type> stated) {
  if (opcode == Opcode::view) return infer_view(m, operands, attribute);
  if (opcode == Opcode::read) {
    Type type = m.type(operands[0]);
    if (type.kind != TypeKind::ref) return error("read takes a ref, not " + spell(m, type));
    type.kind = TypeKind::value;
    return one(std::move(type));
  }
  if (opcode == Opcode::load) {
    const Type& type = m.type(operands[0]);
    if (type.kind != TypeKind::ptr) return error("load takes a pointer, not " + spell(m, type));
    if (!is_i64(m, operands[1]))
      return error("the offset of load is an i64, not " + spell(m, m.type(operands[1])));
    return one({.kind = TypeKind::value, .dtype = type.dtype});
  }
  if (opcode == Opcode::for_) {
    if (operands.size() < 3) return error("for takes from, to and step");
    for (size_t i = 0; i < 3; ++i)
      if (!is_i64(m, operands[i]))
        return error("bounds and step of for are i64, not " + spell(m, m.type(operands[i])));
    return {.results = types_of(m, operands.subspan(3)), .error = {}};
  }
  if (opcode == Opcode::while_) return {.results = types_of(m, operands), .error = {}};
  if (opcode == Opcode::if_) {
    const Type& type = m.type(operands[0]);
    if (!type.is_scalar() || !is_bool(type.dtype))
      return error("the condition of if is a bool, not " + spell(m, type));
    return {.results = {stated.begin(), stated.end()}, .error = {}};
  }
  if (info(opcode).barrier()) {
    const Type& type = m.type(operands[0]);
    if (!type.is_scalar() || !is_bool(type.dtype))
      return error("the operand of " + std::string(info(opcode).name) + " is a bool, not " +
                   spell(m, type));
    return one({.dtype = opcode == Opcode::barrier_count ? DType::i64 : DType::b1});
  }
  if (info(opcode).atomic()) return infer_atomic(m, info(opcode), operands);
  PK_UNREACHABLE(info(opcode).name);
}

// Checks of ops without results.
std::string check_effect(Module& m, Opcode opcode, std::span<const ValueId> operands) {
  if (opcode == Opcode::write) {
    const Type &target = m.type(operands[0]), &value = m.type(operands[1]);
    if (target.kind != TypeKind::ref || value.kind != TypeKind::value)
      return "write takes a ref and a value, not " + spell(m, target) + " and " + spell(m, value);
    if (target.dtype != value.dtype)
      return "write of " + spell(m, value) + " into " + spell(m, target) +
             ": the types differ; cast first";
    std::vector<SizeId> shape;
    if (!broadcast(m, target.shape, value.shape, shape) || shape != target.shape)
      return "a value of type " + spell(m, value) + " does not broadcast to " + spell(m, target);
  } else if (opcode == Opcode::store) {
    const Type &value = m.type(operands[0]), &target = m.type(operands[1]);
    if (target.kind != TypeKind::ptr || !value.is_scalar() || value.dtype != target.dtype)
      return "store of " + spell(m, value) + " to " + spell(m, target) + ": the types differ";
    if (!is_i64(m, operands[2]))
      return "the offset of store is an i64, not " + spell(m, m.type(operands[2]));
  } else if (opcode == Opcode::check_index) {
    if (m.type(operands[0]).kind != TypeKind::ptr)
      return "check_index takes a pointer, not " + spell(m, m.type(operands[0]));
    for (const ValueId v : operands.subspan(1))
      if (!is_i64(m, v)) return "index and size are i64, not " + spell(m, m.type(v));
  } else if (opcode == Opcode::parallel) {
    if (operands.empty()) return "parallel takes at least one extent";
    for (const ValueId v : operands)
      if (!is_i64(m, v)) return "extents of parallel are i64, not " + spell(m, m.type(v));
  }
  return {};
}

Inferred infer_explicit(Module& m, const OpInfo& op, std::span<const ValueId> operands,
                        uint64_t attribute, std::span<const Type> stated) {
  if (stated.size() != 1) return error(std::string(op.name) + " states its result type");
  Type type = stated[0];
  if (op.opcode == Opcode::cast || op.opcode == Opcode::bitcast) {
    const Type& from = m.type(operands[0]);
    if (from.kind != TypeKind::value)
      return error(std::string(op.name) + " takes a value, not " + spell(m, from));
    if (op.opcode == Opcode::bitcast &&
        (size_of(from.dtype) != size_of(type.dtype) || is_bool(from.dtype) || is_bool(type.dtype)))
      return error("bitcast of " + std::string(text_name(from.dtype)) + " to " +
                   std::string(text_name(type.dtype)) + ": the sizes differ, or one is a bool");
    // The text states the dtype alone where the shape is the operand's.
    if (type.kind == TypeKind::value) type.shape = from.shape;
  }
  const bool memory = op.opcode == Opcode::alloc || op.opcode == Opcode::shared;
  const TypeKind kind = op.opcode == Opcode::scratch ? TypeKind::ref
                        : memory                     ? TypeKind::ptr
                                                     : TypeKind::value;
  if (type.kind != kind)
    return error("the result of " + std::string(op.name) + " cannot be " + spell(m, type));
  if ((op.opcode == Opcode::shared) != (memory && type.space == Space::shared))
    return error("the result of " + std::string(op.name) + " cannot be " + spell(m, type));
  const bool is_id = op.of_threads() && !memory;
  if (is_id && attribute > 2) return error(std::string(op.name) + " has the axes 0, 1 and 2");
  if (is_id && !(type.is_scalar() && type.dtype == DType::i64))
    return error(std::string(op.name) + " is an i64");
  if (op.opcode == Opcode::size && !(type.is_scalar() && type.dtype == DType::i64))
    return error("size is an i64");
  if (op.opcode == Opcode::constant && !type.is_scalar()) return error("a constant is a scalar");
  if (op.opcode == Opcode::alloc && !is_i64(m, operands[0]))
    return error("alloc takes an i64 count");
  return one(std::move(type));
}

}  // namespace

bool allows(Allowed allowed, DType dtype) {
  switch (allowed) {
    case Allowed::any:
      return true;
    case Allowed::real:
      return !is_bool(dtype);
    case Allowed::integer:
      return is_integer(dtype);
    case Allowed::floating:
      return is_float(dtype);
    case Allowed::bits:
      return !is_float(dtype);
  }
  PK_UNREACHABLE();
}

std::string_view describe(Allowed allowed) {
  switch (allowed) {
    case Allowed::any:
      return "any type";
    case Allowed::real:
      return "integers and floats";
    case Allowed::integer:
      return "integers";
    case Allowed::floating:
      return "floats";
    case Allowed::bits:
      return "integers and bool";
  }
  PK_UNREACHABLE();
}

bool broadcast(const Module& m, std::span<const SizeId> a, std::span<const SizeId> b,
               std::vector<SizeId>& out) {
  const size_t rank = std::max(a.size(), b.size());
  out.assign(rank, {});
  for (size_t i = 0; i < rank; ++i) {  // from the last dimension
    const SizeId x = i < a.size() ? a[a.size() - 1 - i] : SizeId{},
                 y = i < b.size() ? b[b.size() - 1 - i] : SizeId{};
    SizeId& z = out[rank - 1 - i];
    if (!x.valid() || !y.valid() || x == y)
      z = x.valid() ? x : y;
    else if (m.sizes.is_one(x))
      z = y;
    else if (m.sizes.is_one(y))
      z = x;
    else
      return false;
  }
  return true;
}

Inferred infer(Module& m, Opcode opcode, std::span<const ValueId> operands, uint64_t attribute,
               std::span<const Type> stated) {
  const OpInfo& op = info(opcode);
  if (op.operands >= 0 && operands.size() != static_cast<size_t>(op.operands))
    return error(std::string(op.name) + " takes " + std::to_string(op.operands) +
                 " operands, not " + std::to_string(operands.size()));
  switch (op.rule) {
    case Rule::same:
    case Rule::math:
      return broadcast_all(m, op, operands, 0);
    case Rule::compare:
    case Rule::test:
    case Rule::count: {
      Inferred r = broadcast_all(m, op, operands, 0);
      if (r.ok()) r.results[0].dtype = op.rule == Rule::count ? DType::u8 : DType::b1;
      return r;
    }
    case Rule::select: {
      const Type& condition = m.type(operands[0]);
      if (condition.kind != TypeKind::value || !is_bool(condition.dtype))
        return error("the condition of select is a bool, not " + spell(m, condition));
      Inferred r = broadcast_all(m, op, operands, 1);
      if (!r.ok()) return r;
      std::vector<SizeId> shape;
      if (!broadcast(m, condition.shape, r.results[0].shape, shape))
        return error("shapes of " + spell(m, condition) + " and " + spell(m, r.results[0]) +
                     " do not broadcast");
      r.results[0].shape = std::move(shape);
      return r;
    }
    case Rule::explicit_:
      return infer_explicit(m, op, operands, attribute, stated);
    case Rule::none:
      return {.results = {}, .error = check_effect(m, opcode, operands)};
    case Rule::custom:
      return infer_custom(m, opcode, operands, attribute, stated);
  }
  PK_UNREACHABLE();
}

}  // namespace picokernel::ir
