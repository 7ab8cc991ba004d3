// Cuts a kernel's body into nests: each parallel op, and each stretch of other code between them.
#include "backend/cpu/emit_module.h"

#include <algorithm>
#include <optional>

#include "backend/cpu/emit_function.h"
#include "support/check.h"

namespace picokernel::backend::cpu {
namespace {

using ir::Opcode;
using ir::OpId;
using ir::ValueId;

constexpr double kSerialPicoseconds = 1;  // code without a domain never runs on several threads

// A value that depends on memory belongs to the nest that computes it; all others are computed
// wherever they are needed.
class Cutter {
 public:
  explicit Cutter(const ir::Module& m) : m_(m), owner_(m.values.size(), kNone) {}

  // The ops of each nest: one parallel op, or others in order.
  std::vector<std::vector<OpId>> cut() {
    const std::vector<OpId>& ops = m_.blocks[ir::Module::body()].ops;
    bool separable = true;
    for (const OpId id : ops) {
      const ir::Op& op = m_.ops[id];
      if (op.opcode == Opcode::return_ && op.operands.empty()) continue;
      if (is_pure(m_, op)) {
        const size_t owner = owner_of(op, separable);
        for (const ValueId v : op.results) owner_[v.value] = owner;
        if (owner != kNone) separable &= owner + 1 == nests_.size() && add(id, false);
      } else if (op.opcode == Opcode::parallel) {
        separable &=
            std::ranges::all_of(op.operands, [&](ValueId v) { return extent(v).has_value(); });
        add(id, true);
      } else {
        separable &= op.opcode != Opcode::alloc;
        add(id, false);
        for (const ValueId v : op.results) owner_[v.value] = nests_.size() - 1;
      }
    }
    for (size_t n = 0; n < nests_.size() && separable; ++n)
      for (const OpId id : nests_[n]) separable &= owned(m_.ops[id], n);
    // Otherwise everything is one function.
    return separable ? nests_ : std::vector<std::vector<OpId>>{ops};
  }

  std::optional<Extent> extent(ValueId v) const {
    if (const ir::Op* op = m_.def(v)) {
      if (op->opcode != Opcode::constant) return std::nullopt;
      return Extent{true, static_cast<int64_t>(op->attribute)};
    }
    return Extent{false, std::ranges::find(m_.params(), v) - m_.params().begin()};
  }

 private:
  static constexpr size_t kNone = ~size_t{0};

  bool add(OpId id, bool parallel) {
    if (parallel || nests_.empty() || closed_) nests_.emplace_back();
    closed_ = parallel;
    nests_.back().push_back(id);
    return true;
  }

  size_t owner_of(const ir::Op& op, bool& separable) const {
    size_t owner = kNone;
    for (const ValueId v : outer_operands(m_, op)) {
      const size_t o = owner_[v.value];
      separable &= o == kNone || owner == kNone || o == owner;
      if (o != kNone) owner = o;
    }
    return owner;
  }

  bool owned(const ir::Op& op, size_t nest) const {
    return std::ranges::all_of(outer_operands(m_, op), [&](ValueId v) {
      return owner_[v.value] == kNone || owner_[v.value] == nest;
    });
  }

  const ir::Module& m_;
  std::vector<size_t> owner_;
  std::vector<std::vector<OpId>> nests_;
  bool closed_ = false;  // the last nest is a parallel op's
};

}  // namespace

KernelInfo emit_module(const ir::Module& kernel, llvm::Module& module, const Target& target) {
  PK_CHECK(kernel.level == ir::Level::kernel, "lower a graph first");
  KernelInfo result;
  ir::walk(kernel, [&](OpId id) {
    const ir::Op& op = kernel.ops[id];
    result.allocates |= op.opcode == Opcode::alloc && !is_local(kernel, op);
  });
  OpEmitter ops(module, target);
  Cutter cutter(kernel);
  for (const std::vector<OpId>& nest : cutter.cut()) {
    FunctionEmitter function(kernel, module, ops, target,
                             nest_symbol(kernel.name, result.nests.size()));
    NestInfo info{.picoseconds = kSerialPicoseconds};
    const ir::Op& first = kernel.ops[nest.front()];
    if (nest.size() == 1 && first.opcode == Opcode::parallel &&
        std::ranges::all_of(first.operands,
                            [&](ValueId v) { return cutter.extent(v).has_value(); })) {
      const BodyAnalysis analysis = function.run_parallel(first);
      for (const ValueId v : first.operands) info.extents.push_back(*cutter.extent(v));
      info.nontemporal = analysis.nontemporal;
      info.bytes = analysis.cost.bytes;
      info.picoseconds = analysis.cost.picoseconds;
      info.loops = analysis.cost.loops;
    } else {
      function.run_ops(nest);
    }
    function.finish();
    result.nests.push_back(std::move(info));
  }
  return result;
}

}  // namespace picokernel::backend::cpu
