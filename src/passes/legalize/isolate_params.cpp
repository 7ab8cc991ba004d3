// For targets whose arrays are values on a device: parameters are only copied from, then, at the
// end, copied to.
//
// A storage that is only read and written whole becomes plain values. One that is seen through
// views, or read where its content has another type than its value (a broadcast, or nothing yet),
// becomes a scratch, which the target keeps as a variable; it is filled from the parameter at its
// first use and, if written, copied back. So all reads of parameters see what the caller passed,
// whatever memory the caller's arrays share.
#include <map>
#include <set>

#include "ir/rewriter.h"
#include "passes/graph/storage.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {
namespace {

using namespace ir;

class Isolation {
 public:
  explicit Isolation(const Module& m) : m_(m) {
    std::map<ValueId, bool> whole;  // by root: the last write gave every element a value of its own
    walk(m, [&](OpId id) {
      const Op& op = m.ops[id];
      if (op.opcode == Opcode::view) kept_.insert(root_of(m, op.operands[0]));
      if (op.opcode == Opcode::write)
        whole[op.operands[0]] = m.type(op.operands[1]).shape == m.type(op.operands[0]).shape;
      if (op.opcode == Opcode::read &&
          !whole.try_emplace(op.operands[0], is_param(op.operands[0])).first->second)
        kept_.insert(root_of(m, op.operands[0]));
    });
  }

  Module run() {
    Rewriter rewriter(m_);
    bool finished = false;
    Module out = rewriter.run([&](Rewriter& r, OpId id) -> std::optional<std::vector<ValueId>> {
      const Op& op = m_.ops[id];
      if (op.opcode == Opcode::scratch) return scratch(op);
      if (op.opcode == Opcode::view) return view(r, op);
      if (op.opcode == Opcode::read) return read(r, op);
      if (op.opcode == Opcode::write) return write(r, op);
      if (op.opcode == Opcode::return_) {
        finish(r, r.to());
        finished = true;
      }
      return std::nullopt;
    });
    if (!finished) finish(rewriter, out);
    return out;
  }

 private:
  using Results = std::optional<std::vector<ValueId>>;

  bool is_param(ValueId root) const { return m_.def(root) == nullptr; }
  bool in_scratch(ValueId root) const { return kept_.contains(root) && is_param(root); }

  // The scratch that stands for a parameter.
  ValueId open(Rewriter& r, ValueId root, bool fill) {
    const auto [it, added] = scratch_.try_emplace(root);
    if (added) {
      const Type& type = m_.type(root);
      it->second = r.builder().scratch(type.dtype, type.shape);
      if (fill) {
        const ValueId content = r.builder().read(r[root]);
        r.builder().write(it->second, content);
      }
    }
    return it->second;
  }

  Results scratch(const Op& op) const {
    if (kept_.contains(op.results[0])) return std::nullopt;
    return {{ValueId{}}};  // its values are used directly
  }

  Results view(Rewriter& r, const Op& op) {
    const ValueId root = root_of(m_, op.results[0]);
    if (is_param(root)) open(r, root, true);
    if (op.operands[0] != root || !is_param(root)) return std::nullopt;
    return {{r.builder().view(scratch_.at(root), m_.maps[op.map()])}};
  }

  Results read(Rewriter& r, const Op& op) {
    const ValueId ref = op.operands[0], root = root_of(m_, ref);
    if (ref != root || (kept_.contains(root) && !is_param(root))) return std::nullopt;
    if (in_scratch(root)) return {{r.builder().read(open(r, root, true))}};
    const auto [it, added] = content_.try_emplace(root);
    if (added) it->second = r.builder().read(r[root]);
    return {{it->second}};
  }

  Results write(Rewriter& r, const Op& op) {
    const ValueId ref = op.operands[0], root = root_of(m_, ref);
    if (is_param(root)) written_.insert(root);
    if (ref != root || (kept_.contains(root) && !is_param(root))) return std::nullopt;
    if (in_scratch(root))
      r.builder().write(open(r, root, false), r[op.operands[1]]);
    else
      content_[root] = r[op.operands[1]];
    return std::vector<ValueId>{};
  }

  void finish(Rewriter& r, Module& out) {
    Builder b(out);
    for (const ValueId p : m_.params()) {
      if (!written_.contains(p)) continue;
      const ValueId content = in_scratch(p) ? b.read(scratch_.at(p)) : content_.at(p);
      b.write(r[p], content);
    }
  }

  const Module& m_;
  std::set<ValueId> kept_, written_;    // roots in the old module; kept: in storage
  std::map<ValueId, ValueId> scratch_;  // old parameter -> its scratch
  std::map<ValueId, ValueId> content_;  // old root -> its value at this point
};

}  // namespace

Module isolate_params(const Module& m, const Target&) { return Isolation(m).run(); }

}  // namespace picokernel::passes
