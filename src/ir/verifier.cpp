// What a well-formed module is:
//   structure
//     1 block 0 exists; every op is in exactly one block, every region belongs to exactly one op
//     2 a value is defined before its use, in its own block or in one that encloses it
//     3 ops are of the module's level; regions as many as ops.def says
//     4 shared memory is allocated by the function's own block; kernels of threads return nothing
//     5 return ends the body and nothing else; yield ends regions that hand on values; nothing
//     follows either
//   types
//     6 result types follow from the operands by the op's rule (ir/typing.h)
//     7 a graph's parameters are refs and scalars, a kernel's are pointers and scalars
//     8 return gives what the function's results state; a kernel returns nothing unless it is all
//       scalars
//     9 yields and region parameters agree with the op that owns the region
//    10 range checks name weak integer parameters
#include "ir/verifier.h"

#include <algorithm>
#include <set>

#include "ir/text.h"
#include "ir/typing.h"
#include "support/check.h"

namespace picokernel::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Module& m)
      : m_(m), typing_(m), defined_(m.values.size(), false), placed_(m.ops.size(), false) {}

  std::vector<Diagnostic> run() {
    if (m_.blocks.size() == 0) {
      complain(Location{}, "the module has no body");
      return std::move(diagnostics_);
    }
    for (const ValueId v : m_.params()) param(v);
    for (const RangeCheck& r : m_.range_checks)
      if (r.param >= m_.params().size() || !is_wide_integer(m_.type(m_.params()[r.param])) ||
          !is_integer(r.dtype))
        complain(Location{}, "a range check names parameter " + std::to_string(r.param) +
                                 ", which is no i64 or u64 scalar");
    block(Module::body(), nullptr);
    return std::move(diagnostics_);
  }

 private:
  static bool is_wide_integer(const Type& t) {
    return t.is_scalar() && (t.dtype == DType::i64 || t.dtype == DType::u64);
  }

  void complain(Location where, std::string message) {
    diagnostics_.push_back({.severity = Severity::error,
                            .location = std::move(where),
                            .message = std::move(message),
                            .notes = {}});
  }
  void complain(const Op& op, const std::string& message) {
    complain(m_.location(op), "`" + std::string(info(op.opcode).name) + "`: " + message);
  }

  void param(ValueId v) {
    const Type& t = m_.type(v);
    const bool fine =
        t.is_scalar() || t.kind == (m_.level == Level::graph ? TypeKind::ref : TypeKind::ptr);
    if (!fine)
      complain(Location{}, "a parameter of a " +
                               std::string(m_.level == Level::graph ? "graph" : "kernel") +
                               " cannot be " + to_string(m_, m_.values[v].type));
  }

  void block(BlockId id, const Op* owner) {
    if (!m_.blocks.contains(id) || !visited_.insert(id).second) {
      complain(Location{}, "a region is missing or used twice");
      return;
    }
    const Block& b = m_.blocks[id];
    std::vector<ValueId> scope = b.params;
    for (const ValueId v : b.params) defined_[v.value] = true;
    for (size_t i = 0; i < b.ops.size(); ++i) {
      const Op& op = m_.ops[b.ops[i]];
      if (placed_[b.ops[i].value]) complain(op, "is in two places");
      placed_[b.ops[i].value] = true;
      if (info(op.opcode).terminator() && i + 1 != b.ops.size())
        complain(op, "is not the last of its region");
      if (op.opcode == Opcode::shared && owner != nullptr)
        complain(op, "is inside of a region; the function's own block allocates it");
      if (op.opcode == Opcode::return_ && owner != nullptr)
        complain(op, "ends a region; only yield does");
      if (op.opcode == Opcode::yield && owner == nullptr)
        complain(op, "ends the function; only return does");
      check(op);
      for (const ValueId v : op.results) {
        defined_[v.value] = true;
        scope.push_back(v);
      }
    }
    if (owner != nullptr) check_yield(*owner, id);
    const auto returns = [&](OpId op) { return m_.ops[op].opcode == Opcode::return_; };
    if (owner == nullptr && !m_.results.empty() && std::ranges::none_of(b.ops, returns))
      complain(Location{}, "the function does not return its results");
    for (const ValueId v : scope) defined_[v.value] = false;
  }

  void check(const Op& op) {
    const OpInfo& facts = info(op.opcode);
    if (facts.level != Level::both && facts.level != m_.level) complain(op, "is not of this level");
    if (op.regions.size() != facts.regions)
      complain(op, "has " + std::to_string(op.regions.size()) + " regions");
    for (const ValueId v : op.operands)
      if (!m_.values.contains(v) || !defined_[v.value]) {
        complain(op, "uses a value that is not defined before it");
        return;
      }
    for (const BlockId r : op.regions) block(r, &op);
    std::vector<Type> stated;
    for (const ValueId v : op.results) stated.push_back(m_.type(v));
    const Inferred inferred = infer(typing_, op.opcode, op.operands, op.attribute, stated);
    if (!inferred.ok())
      complain(op, inferred.error);
    else if (inferred.results != stated)
      complain(op, "its result type does not follow from its operands");
    if (op.opcode == Opcode::return_) check_return(op);
  }

  void check_return(const Op& op) {
    std::vector<TypeId> types;
    for (const ValueId v : op.operands) {
      types.push_back(m_.values[v].type);
      if (m_.type(v).kind != TypeKind::value) complain(op, "returns something that is no value");
      if (m_.level == Level::kernel && !m_.type(v).is_scalar())
        complain(op, "of a kernel returns scalars only");
    }
    if (!types.empty() && is_of_threads(m_)) complain(op, "returns values from a thread");
    if (types != m_.results) complain(op, "does not return what the function states");
  }

  std::vector<Type> types(std::span<const ValueId> values) const {
    std::vector<Type> list;
    for (const ValueId v : values) list.push_back(m_.type(v));
    return list;
  }

  void check_yield(const Op& owner, BlockId id) {
    const Block& b = m_.blocks[id];
    const bool ends = !b.ops.empty() && m_.ops[b.ops.back()].opcode == Opcode::yield;
    const std::vector<Type> yields =
        ends ? types(m_.ops[b.ops.back()].operands) : std::vector<Type>{};
    std::vector<Type> want = types(owner.results), params = want;
    if (owner.opcode == Opcode::for_) params.insert(params.begin(), Type{.dtype = DType::i64});
    if (owner.opcode == Opcode::if_) params.clear();
    if (owner.opcode == Opcode::parallel)
      params.assign(owner.operands.size(), Type{.dtype = DType::i64});
    if (owner.opcode == Opcode::while_ && id == owner.regions[0]) want = {Type{.dtype = DType::b1}};
    if (yields != want) complain(owner, "a region yields other types than the op hands on");
    if (types(b.params) != params)
      complain(owner, "a region's parameters differ from what the op gives them");
  }

  const Module& m_;
  Module typing_;  // a copy for infer(), which interns types
  std::vector<bool> defined_, placed_;
  std::set<BlockId> visited_;
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace

std::vector<Diagnostic> verify(const Module& m) { return Verifier(m).run(); }

void verify_or_throw(const Module& m, std::string_view after) {
  std::vector<Diagnostic> found = verify(m);
  if (found.empty()) return;
  found.insert(found.begin(), {.severity = Severity::error,
                               .location = {},
                               .message = "the IR is malformed after " + std::string(after),
                               .notes = {print(m)}});
  throw InternalError(std::move(found));
}

}  // namespace picokernel::ir
