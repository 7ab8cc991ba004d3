// Reads that come after writes, by position in the body.
#include "passes/graph/hazards.h"

#include <map>
#include <set>

#include "passes/graph/storage.h"

namespace picokernel::passes {

using namespace ir;

std::vector<std::pair<size_t, size_t>> hazards(const Module& graph) {
  std::map<ValueId, size_t> index;
  for (const ValueId p : graph.params()) index.emplace(p, index.size());
  std::set<size_t> written;
  std::set<std::pair<size_t, size_t>> pairs;
  walk(graph, [&](OpId id) {
    const Op& op = graph.ops[id];
    if (op.opcode == Opcode::read) {
      const auto reader = index.find(root_of(graph, op.operands[0]));
      if (reader == index.end()) return;
      for (const size_t w : written)
        if (w != reader->second) pairs.emplace(reader->second, w);
    } else if (op.opcode == Opcode::write) {
      const auto target = index.find(root_of(graph, op.operands[0]));
      if (target == index.end()) return;
      written.insert(target->second);
      const Op* value = graph.def(op.operands[1]);
      if (value == nullptr || value->opcode != Opcode::cast) return;
      const Op* source = graph.def(value->operands[0]);
      if (source == nullptr || source->opcode != Opcode::read) return;
      const auto reader = index.find(root_of(graph, source->operands[0]));
      if (reader != index.end() && reader->second != target->second)
        pairs.emplace(reader->second, target->second);
    }
  });
  return {pairs.begin(), pairs.end()};
}

}  // namespace picokernel::passes
