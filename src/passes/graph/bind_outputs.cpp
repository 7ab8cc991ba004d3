// Results become written parameters, after the function's own.
#include <algorithm>
#include <map>
#include <set>

#include "ir/rewriter.h"
#include "passes/graph/passes.h"
#include "passes/graph/storage.h"

namespace picokernel::passes {

using namespace ir;

namespace {

// A result that is all of a scratch, as its last write left it, is computed in the output itself:
// scratch op -> number of the result.
std::map<OpId, size_t> results_in_place(const Module& m, const Op& returned) {
  std::map<OpId, size_t> found;
  std::set<OpId> twice;
  for (size_t i = 0; i < returned.operands.size(); ++i) {
    const Op* read = m.def(returned.operands[i]);
    if (read == nullptr || read->opcode != Opcode::read) continue;
    const OpId source = m.values[read->operands[0]].op;
    if (!source.valid() || m.ops[source].opcode != Opcode::scratch) continue;
    if (!found.try_emplace(source, i).second) twice.insert(source);
  }
  for (const OpId id : twice) found.erase(id);
  std::set<ValueId> seen;  // results read so far
  for (const OpId id : m.blocks[Module::body()].ops) {
    const Op& op = m.ops[id];
    if (op.opcode == Opcode::read) seen.insert(op.results[0]);
    if (op.opcode != Opcode::write) continue;
    const OpId target = m.values[root_of(m, op.operands[0])].op;
    const auto known = found.find(target);
    if (known != found.end() && seen.contains(returned.operands[known->second])) found.erase(known);
  }
  return found;
}

}  // namespace

Module bind_outputs(const Module& m, const Target&) {
  if (m.results.empty()) return m;
  const Op& returned = m.ops[m.blocks[Module::body()].ops.back()];
  const bool graph = m.level == Level::graph;
  const auto in_place = graph ? results_in_place(m, returned) : std::map<OpId, size_t>{};
  std::vector<ValueId> outputs;
  return Rewriter(m).run([&](Rewriter& r, OpId id) -> std::optional<std::vector<ValueId>> {
    const Op& op = m.ops[id];
    Builder& b = r.builder();
    r.to().results.clear();
    for (size_t i = outputs.size(); i < returned.operands.size(); ++i) {
      const Type& type = m.type(returned.operands[i]);
      outputs.push_back(b.param(
          {.kind = graph ? TypeKind::ref : TypeKind::ptr, .dtype = type.dtype, .shape = type.shape},
          returned.operands.size() == 1 ? "out" : "out" + std::to_string(i)));
    }
    if (const auto result = in_place.find(id); result != in_place.end())
      return {{outputs[result->second]}};
    if (op.opcode != Opcode::return_) return std::nullopt;
    const ValueId zero = graph ? ValueId{} : b.constant(Scalar::of(int64_t{0}));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (std::ranges::any_of(in_place, [&](const auto& known) { return known.second == i; }))
        continue;
      if (graph)
        b.write(outputs[i], r[op.operands[i]]);
      else
        b.store(r[op.operands[i]], outputs[i], zero);
    }
    return std::vector<ValueId>{};
  });
}

}  // namespace picokernel::passes
