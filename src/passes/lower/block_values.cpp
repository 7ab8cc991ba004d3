// Optimistic: all values are the same until something says otherwise.
#include "passes/lower/block_values.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace picokernel::passes {

using namespace ir;

namespace {

// The values that decide how often and which way control flow goes.
std::vector<ValueId> deciding(const Module& m, const Op& op) {
  if (op.opcode == Opcode::if_) return {op.operands[0]};
  if (op.opcode == Opcode::for_) return {op.operands[0], op.operands[1], op.operands[2]};
  if (op.opcode == Opcode::while_) return {m.ops[m.blocks[op.regions[0]].ops.back()].operands[0]};
  return {};
}

}  // namespace

// First as if all loads counted, to see which of them control flow asks for; then with these alone.
BlockValues::BlockValues(const Module& m)
    : m_(m), from_ids_(m.values.size(), false), asked_(m.values.size(), false) {
  settle();
  walk(m, [&](OpId id) {
    if (meets(m.ops[id]))
      for (const ValueId v : deciding(m, m.ops[id])) ask(v);
  });
  all_loads_ = false;
  settle();
  walk(m, [&](OpId id) {
    const Op& op = m.ops[id];
    if (op.results.empty() || of_block(op.results[0])) return;
    const auto known = [&](ValueId v) { return of_block(v) || from_ids_[v.value]; };
    from_ids_[op.results[0].value] =
        op.opcode == Opcode::thread_id ||
        (info(op.opcode).pure() && std::ranges::all_of(op.operands, known));
  });
}

bool BlockValues::meets(const Op& op) const {
  if (info(op.opcode).barrier()) return true;
  return std::ranges::any_of(op.regions, [&](BlockId region) {
    return std::ranges::any_of(m_.blocks[region].ops, [&](OpId id) { return meets(m_.ops[id]); });
  });
}

bool BlockValues::looks_same(const Op& op) const {
  const auto same = [&](ValueId v) { return of_block(v); };
  if (op.opcode == Opcode::thread_id || info(op.opcode).atomic() || op.opcode == Opcode::alloc)
    return false;
  if (op.opcode == Opcode::load && !all_loads_ && !asked_[op.results[0].value]) return false;
  return std::ranges::all_of(outer_operands(m_, op), same) &&
         (op.opcode == Opcode::load || op.opcode == Opcode::shared || is_pure(m_, op));
}

bool BlockValues::op_of_block(const Op& op) const {
  return !op.results.empty() && of_block(op.results[0]) && !meets(op);
}

void BlockValues::settle() {
  of_block_.assign(m_.values.size(), true);
  bool changed = true;
  const auto differ = [&](ValueId v) {
    changed |= of_block_[v.value];
    of_block_[v.value] = false;
  };
  const std::function<void(BlockId)> look = [&](BlockId block) {
    for (const OpId id : m_.blocks[block].ops) {
      const Op& op = m_.ops[id];
      if (info(op.opcode).barrier()) continue;
      if (!meets(op)) {
        if (!looks_same(op))
          for (const ValueId v : op.results) differ(v);
        continue;
      }
      for (const BlockId region : op.regions) look(region);
      const size_t fixed = op.opcode == Opcode::for_ ? 3 : 0, index = fixed == 0 ? 0 : 1;
      for (size_t i = 0; i < op.results.size(); ++i) {
        bool same = of_block(op.results[i]);
        if (op.opcode != Opcode::if_) same &= of_block(op.operands[fixed + i]);
        for (const BlockId region : op.regions) {
          const Op& yield = m_.ops[m_.blocks[region].ops.back()];
          const bool test = op.opcode == Opcode::while_ && region == op.regions[0];
          if (!test) same &= of_block(yield.operands[i]);
        }
        if (same) continue;
        differ(op.results[i]);
        for (const BlockId region : op.regions)
          if (const auto& params = m_.blocks[region].params; !params.empty())
            differ(params[index + i]);
      }
    }
  };
  while (std::exchange(changed, false)) look(Module::body());
}

void BlockValues::ask(ValueId v) {
  if (asked_[v.value]) return;
  asked_[v.value] = true;
  if (const Op* op = m_.def(v)) {
    for (const ValueId x : outer_operands(m_, *op)) ask(x);
    if (meets(*op) && !info(op->opcode).barrier())
      for (const BlockId region : op->regions)
        for (const ValueId x : m_.ops[m_.blocks[region].ops.back()].operands) ask(x);
    return;
  }
  // A parameter of a region: what its loop begins with, and what its turns yield.
  walk(m_, [&](OpId id) {
    const Op& op = m_.ops[id];
    const auto mine = [&](BlockId region) {
      return std::ranges::find(m_.blocks[region].params, v) != m_.blocks[region].params.end();
    };
    if (std::ranges::any_of(op.regions, mine))
      for (const ValueId result : op.results) ask(result);
  });
}

OpId BlockValues::divergent() const {
  OpId found;
  walk(m_, [&](OpId id) {
    const Op& op = m_.ops[id];
    const auto differs = [&](ValueId v) { return !of_block(v); };
    if (!found.valid() && !op.regions.empty() && meets(op) &&
        std::ranges::any_of(deciding(m_, op), differs))
      found = id;
  });
  return found;
}

}  // namespace picokernel::passes
