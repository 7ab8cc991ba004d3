// Values that no loop nest could compute where they are used go through scratch.
#include <algorithm>

#include "ir/rewriter.h"
#include "passes/graph/passes.h"
#include "passes/lower/nests.h"

namespace picokernel::passes {

using namespace ir;

namespace {

// Inserts, before op `c.before`, a scratch with a copy of c.value; uses from there on read the
// copy.
Module copy_to_scratch(const Module& m, Conflict c) {
  ValueId scratch;
  return Rewriter(m).run([&](Rewriter& r, OpId id) -> std::optional<std::vector<ValueId>> {
    if (id == c.before) {
      const Type& type = m.type(c.value);
      scratch = r.builder().scratch(type.dtype, type.shape);
      r.builder().write(scratch, r[c.value]);
    }
    if (!scratch.valid()) return std::nullopt;
    const std::vector<ValueId>& operands = m.ops[id].operands;
    if (std::ranges::find(operands, c.value) != operands.end())
      r.map(c.value, r.builder().read(scratch));
    return std::nullopt;
  });
}

}  // namespace

Module materialize(const Module& m, const Target&) {
  Module out = m;
  // Each copy removes its conflict and makes none: a fresh scratch is written once, by a nest of
  // its own or one that it joins.
  while (true) {
    const Nests nests = find_nests(out);
    if (nests.conflicts.empty()) return out;
    out = copy_to_scratch(out, nests.conflicts.front());
  }
}

}  // namespace picokernel::passes
