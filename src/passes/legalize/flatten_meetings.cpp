// Branches with barriers in them -> barriers that all threads pass, and branches between these.
#include <algorithm>

#include "ir/rewriter.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {
namespace {

using namespace ir;

bool meets(const Module& m, const Op& op) {
  if (info(op.opcode).barrier()) return true;
  return std::ranges::any_of(op.regions, [&](BlockId region) {
    return std::ranges::any_of(m.blocks[region].ops, [&](OpId id) { return meets(m, m.ops[id]); });
  });
}

// Ops run under a condition that is the same for all threads of a block; invalid: always. What has
// no effect runs anyway: its results are not used where the condition does not hold.
class Flattener {
 public:
  explicit Flattener(const Module& m) : m_(m), r_(m), b_(r_.builder()) {}

  Module run() {
    for (const ValueId p : m_.params()) r_.map(p, b_.param(m_.type(p), m_.values[p].name));
    emit(Module::body(), {});
    return std::move(r_.to());
  }

 private:
  /// What the block yields.
  std::vector<ValueId> emit(BlockId block, ValueId when) {
    for (const OpId id : m_.blocks[block].ops) {
      const Op& op = m_.ops[id];
      b_.set_location(op.location);
      if (op.opcode == Opcode::yield) return r_.mapped(op.operands);
      if (!meets(m_, op))
        guarded(id, when);
      else if (op.opcode == Opcode::if_)
        branch(op, when);
      else if (op.opcode == Opcode::for_)
        for_loop(op, when);
      else if (op.opcode == Opcode::while_)
        while_loop(op, when);
      else
        barrier(id, when);
    }
    return {};
  }

  void keep(OpId id, std::span<const ValueId> made) {
    const std::vector<ValueId>& old = m_.ops[id].results;
    for (size_t i = 0; i < old.size(); ++i) {
      r_.map(old[i], made[i]);
      std::string& name = r_.to().values[made[i]].name;
      if (name.empty()) name = m_.values[old[i]].name;
    }
  }

  void guarded(OpId id, ValueId when) {
    const Op& op = m_.ops[id];
    if (!when.valid() || is_pure(m_, op) || op.opcode == Opcode::shared ||
        op.opcode == Opcode::alloc)
      return keep(id, r_.copy(id, nullptr));
    const BlockId outer = b_.insertion_block(), yes = b_.new_block(), no = b_.new_block();
    std::vector<Type> types;
    b_.set_insertion_block(yes);
    const std::vector<ValueId> made = r_.copy(id, nullptr);
    if (!made.empty()) b_.op(Opcode::yield, made);
    b_.set_insertion_block(no);
    std::vector<ValueId> none;
    for (const ValueId v : op.results) {
      types.push_back(m_.type(v));
      none.push_back(b_.constant({m_.type(v).dtype, 0}));
    }
    if (!none.empty()) b_.op(Opcode::yield, none);
    b_.set_insertion_block(outer);
    keep(id, r_.to().ops[b_.op_with_regions(Opcode::if_, {when}, {yes, no}, types)].results);
  }

  void barrier(OpId id, ValueId) { keep(id, r_.copy(id, nullptr)); }

  ValueId both(ValueId when, ValueId condition) {
    return when.valid() ? b_.value(Opcode::and_, {when, condition}) : condition;
  }

  void branch(const Op& op, ValueId when) {
    const IfView view{op};
    const ValueId condition = r_[view.condition()];
    const ValueId other = b_.value(Opcode::not_, {condition});
    const std::vector<ValueId> yes = emit(view.then_block(), both(when, condition));
    const std::vector<ValueId> no = emit(view.else_block(), both(when, other));
    for (size_t i = 0; i < op.results.size(); ++i)
      r_.map(op.results[i], b_.value(Opcode::select, {condition, yes[i], no[i]}));
  }

  // No turns where the condition does not hold.
  void for_loop(const Op& op, ValueId when) {
    const ForView view{op};
    std::vector<ValueId> operands = r_.mapped(op.operands);
    if (when.valid()) operands[1] = b_.value(Opcode::select, {when, operands[1], operands[0]});
    const BlockId outer = b_.insertion_block(), body = region(view.body());
    const std::vector<ValueId> yields = emit(view.body(), {});
    if (!yields.empty()) b_.op(Opcode::yield, yields);
    b_.set_insertion_block(outer);
    finish(op, b_.op_with_regions(Opcode::for_, std::move(operands), {body}));
  }
  void while_loop(const Op& op, ValueId when) {
    const WhileView view{op};
    const std::vector<ValueId> operands = r_.mapped(op.operands);
    const BlockId outer = b_.insertion_block(), test = region(view.condition());
    const ValueId goes_on = emit(view.condition(), when)[0];
    b_.op(Opcode::yield, {both(when, goes_on)});
    const BlockId body = region(view.body());
    const std::vector<ValueId> yields = emit(view.body(), {});
    if (!yields.empty()) b_.op(Opcode::yield, yields);
    b_.set_insertion_block(outer);
    finish(op, b_.op_with_regions(Opcode::while_, operands, {test, body}));
  }
  BlockId region(BlockId from) {
    const BlockId to = b_.new_block();
    for (const ValueId p : m_.blocks[from].params)
      r_.map(p, b_.block_param(to, m_.type(p), m_.values[p].name));
    b_.set_insertion_block(to);
    return to;
  }
  void finish(const Op& op, OpId made) {
    for (size_t i = 0; i < op.results.size(); ++i)
      r_.map(op.results[i], r_.to().ops[made].results[i]);
  }

  const Module& m_;
  Rewriter r_;
  Builder& b_;
};

}  // namespace

Module flatten_meetings(const Module& m, const Target&) { return Flattener(m).run(); }

}  // namespace picokernel::passes
