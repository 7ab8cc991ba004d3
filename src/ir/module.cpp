// Questions about ops with regions.
#include "ir/module.h"

#include <algorithm>
#include <set>

namespace picokernel::ir {

std::vector<ValueId> outer_operands(const Module& m, const Op& op) {
  std::vector<ValueId> list(op.operands);
  std::set<ValueId> inside;
  for (const BlockId region : op.regions) {
    inside.insert(m.blocks[region].params.begin(), m.blocks[region].params.end());
    for (const OpId id : m.blocks[region].ops) {
      for (const ValueId v : outer_operands(m, m.ops[id]))
        if (!inside.contains(v)) list.push_back(v);
      inside.insert(m.ops[id].results.begin(), m.ops[id].results.end());
    }
  }
  return list;
}

bool is_of_threads(const Module& m) {
  bool found = false;
  walk(m, [&](OpId id) { found |= info(m.ops[id].opcode).of_threads(); });
  return found;
}

bool is_pure(const Module& m, const Op& op) {
  if (info(op.opcode).pure() || op.opcode == Opcode::yield) return true;
  if (op.opcode != Opcode::if_ && op.opcode != Opcode::while_ && op.opcode != Opcode::for_)
    return false;
  const auto pure = [&](OpId id) { return is_pure(m, m.ops[id]); };
  return std::ranges::all_of(
      op.regions, [&](BlockId region) { return std::ranges::all_of(m.blocks[region].ops, pure); });
}

}  // namespace picokernel::ir
