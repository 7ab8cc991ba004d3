// Elements: indices, bounds, loads and stores; memory of blocks and threads.
#include <algorithm>
#include <array>

#include "frontend/threads/compiler.h"
#include "support/check.h"

namespace picokernel::frontend::threads {

using ir::Opcode;
using ir::ValueId;

ValueId Compiler::i64(int64_t v) { return b_.constant(ir::Scalar::of(v)); }

std::vector<Thing> Compiler::indices(const Node& n) {
  Thing t = expression(n);
  if (t.kind == Thing::Kind::tuple) return std::move(t.items);
  return {std::move(t)};
}

// Negative indices count from the end, once. The select is not there where none is possible.
Array Compiler::at_index(const Array& a, std::span<const Thing> indices, const Node& where) {
  if (indices.size() > a.shape.size())
    error(where,
          std::to_string(indices.size()) + " indices for an array of " +
              std::to_string(a.shape.size()) + " dimensions",
          {"an element has an index for each dimension", "hint: x[i, j] of a 2-d array"});
  Array part = a;
  part.axis += indices.size();
  const auto used = static_cast<std::ptrdiff_t>(indices.size());
  part.shape.erase(part.shape.begin(), part.shape.begin() + used);
  part.strides.erase(part.strides.begin(), part.strides.begin() + used);
  for (size_t d = 0; d < indices.size(); ++d) {
    const Value index = number(indices[d], where, "an index");
    ValueId at = as_i64(index, where, "an index");
    const ValueId size = a.shape[d];
    const Range range = ranges_.of(at);
    if (size.valid() && range.low < 0) {
      const ValueId from_end = b_.value(Opcode::add, {at, size});
      if (range.high < 0) {
        at = from_end;
      } else {
        const ValueId zero = i64(0);
        const ValueId negative = b_.value(Opcode::lt, {at, zero});
        at = b_.value(Opcode::select, {negative, from_end, at});
      }
    }
    if (options_.checks && size.valid())
      b_.op(Opcode::check_index, {a.pointer, at, size}, a.axis + d);
    if (a.strides[d].valid()) at = b_.value(Opcode::mul, {at, a.strides[d]});
    part.offset = part.offset.valid() ? b_.value(Opcode::add, {part.offset, at}) : at;
  }
  return part;
}

ValueId Compiler::offset(const Array& a) { return a.offset.valid() ? a.offset : i64(0); }

Thing Compiler::element(const Array& a, std::span<const Thing> indices, const Node& where) {
  at(where);
  Array part = at_index(a, indices, where);
  if (!part.shape.empty()) return {.kind = Thing::Kind::array, .array = std::move(part)};
  at(where);
  const ValueId offset = this->offset(part);
  return threads::of({.id = b_.load(part.pointer, offset)});
}

void Compiler::store(const Array& a, std::span<const Thing> indices, const Thing& value,
                     const Node& where) {
  at(where);
  const Array part = at_index(a, indices, where);
  if (!part.shape.empty())
    error(where,
          "an element of " + std::to_string(a.shape.size()) + " dimensions is stored to by " +
              std::to_string(indices.size()) + " indices",
          {"kernels store single elements", "hint: give an index for each dimension"});
  const Value v = number(value, where, "what is stored");
  at(where);
  const ValueId converted = state_.convert(v, state_.m.type(part.pointer).dtype);
  const ValueId offset = this->offset(part);
  b_.store(converted, part.pointer, offset);
}

// In the function's own block: one memory, however often the place is passed.
Array Compiler::memory(ir::OpId allocation, std::span<const int64_t> shape) {
  Array a{.pointer = state_.m.ops[allocation].results[0]};
  a.strides.resize(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (d + 1 < shape.size()) a.strides[d] = i64(stride);
    stride *= shape[d];
  }
  for (const int64_t size : shape) a.shape.push_back(size == 0 ? ValueId{} : i64(size));
  return a;
}

// simt.shared.array(shape, dtype), simt.local.array(shape, dtype)
Thing Compiler::own_memory(const Node& n, bool shared) {
  const Call call(n);
  const std::string name = shared ? "simt.shared.array" : "simt.local.array";
  std::array<const Node*, 2> arguments{};
  for (size_t i = 0; i < call.arguments.size() && i < 2; ++i) arguments[i] = &call.arguments[i];
  for (const Node& k : call.keywords)
    if (k[0].text == "shape" || k[0].text == "dtype")
      arguments[k[0].text == "dtype"] = &k.fields[1];
  if (arguments[0] == nullptr || arguments[1] == nullptr ||
      call.arguments.size() + call.keywords.size() != 2)
    error(n, "`" + name + "` takes a shape and a dtype",
          {"hint: " + name + "(shape=(16, 16), dtype=simt.float32)"});
  std::vector<int64_t> shape;
  int64_t count = 1;
  for (const Thing& size : indices(*arguments[0])) {
    const Value v = number(size, n, "a size");
    const std::optional<int64_t> known = constant(v);
    const bool dynamic = shared && known == 0;
    if (!known || *known < 0 || (*known == 0 && !dynamic) ||
        __builtin_mul_overflow(count, *known, &count) || count > (int64_t{1} << 24))
      error(*arguments[0], "the shape of `" + name + "` is not made of constants from 1 up",
            {"sizes are literals, globals and closure variables, and what is computed of them",
             "hint: " + std::string(shared ? "a shape of 0 has the size that the launch gives: "
                                             "kernel[grid, block, stream, bytes]"
                                           : "choose the largest size that may be needed")});
    shape.push_back(*known);
  }
  if (shape.size() > 1 && count == 0)
    error(*arguments[0], "dynamic shared memory has one dimension",
          {"hint: compute the index: t[i * width + j]"});
  const Thing type = expression(*arguments[1]);
  if (type.kind != Thing::Kind::dtype || is_complex(type.dtype))
    error(*arguments[1], "the dtype of `" + name + "` is " + describe(type),
          {"it is one of bool, integers and floats", "hint: dtype=simt.float32"});
  Thing t{.kind = Thing::Kind::array};
  at(n);
  in_block(ir::Module::body(), [&] {
    const ir::Type pointer{.kind = ir::TypeKind::ptr,
                           .dtype = type.dtype,
                           .space = shared ? ir::Space::shared : ir::Space::local};
    std::vector<ValueId> operands;
    if (!shared) operands.push_back(i64(count));
    const ir::OpId op = b_.op(shared ? Opcode::shared : Opcode::alloc, operands,
                              shared ? static_cast<uint64_t>(count) : 0, {pointer});
    t.array = memory(op, shape);
  });
  return t;
}

}  // namespace picokernel::frontend::threads
