// Dead code.
#include <set>

#include "ir/rewriter.h"
#include "passes/common/passes.h"
#include "passes/graph/storage.h"

namespace picokernel::passes {
namespace {

using namespace ir;

class Liveness {
 public:
  explicit Liveness(const Module& m) : m_(m), live_(m.ops.size(), false) {
    // A scratch that becomes read makes its earlier writes live, so: until nothing changes.
    do {
      changed_ = false;
      mark(Module::body());
    } while (changed_);
  }
  bool operator()(OpId id) const { return live_[id.value]; }

 private:
  bool needed(const Op& op) const {
    for (const ValueId v : op.results)
      if (used_.contains(v)) return true;
    switch (info(op.opcode).effect) {
      case Effect::pure:
      case Effect::read:
      case Effect::allocate:
        return false;
      case Effect::control:
        return true;
      case Effect::write:
        break;
    }
    if (op.opcode != Opcode::write) return true;
    const ValueId root = root_of(m_, op.operands[0]);
    return m_.def(root) == nullptr || read_.contains(root);
  }

  void mark(BlockId block) {
    const std::vector<OpId>& ops = m_.blocks[block].ops;
    for (size_t i = ops.size(); i-- > 0;) {
      const Op& op = m_.ops[ops[i]];
      for (const BlockId r : op.regions) mark(r);
      if (live_[ops[i].value] || !needed(op)) continue;
      live_[ops[i].value] = changed_ = true;
      used_.insert(op.operands.begin(), op.operands.end());
      if (op.opcode == Opcode::read) read_.insert(root_of(m_, op.operands[0]));
    }
  }

  const Module& m_;
  std::vector<bool> live_;
  std::set<ValueId> used_, read_;
  bool changed_ = false;
};

}  // namespace

Module dce(const Module& m, const Target&) {
  const Liveness live(m);
  Rewriter rewriter(m);
  // Dead ops have no uses left, so nothing asks for their values.
  return rewriter.run([&](Rewriter& r, OpId id) -> std::optional<std::vector<ValueId>> {
    if (live(id)) return std::nullopt;
    return std::vector<ValueId>(r.from().ops[id].results.size());
  });
}

}  // namespace picokernel::passes
