// Order of reads and writes of two parameters in fused loops.
#include "passes/lower/pointwise.h"

#include <algorithm>

#include "passes/graph/storage.h"

namespace picokernel::passes {

using namespace ir;

namespace {

size_t position(const Module& graph, OpId id) {
  const std::vector<OpId>& ops = graph.blocks[Module::body()].ops;
  return static_cast<size_t>(std::ranges::find(ops, id) - ops.begin());
}

}  // namespace

bool pointwise(const Module& graph, const Nests& nests, size_t read, size_t written) {
  const ValueId r = graph.params()[read], w = graph.params()[written];
  bool seen_write = false;
  for (const Nest& nest : nests.nests) {
    const Access* first_write = nullptr;
    size_t write_position = ~size_t{0};
    for (const OpId id : nest.writes) {
      const ValueId ref = graph.ops[id].operands[0];
      if (first_write != nullptr || root_of(graph, ref) != w) continue;
      first_write = &nest.accesses[nest.access_of.at(ref)];
      write_position = position(graph, id);
    }
    for (const OpId id : nest.reads) {
      const ValueId ref = graph.ops[id].operands[0];
      if (root_of(graph, ref) != r) continue;
      if (seen_write) return false;
      if (first_write == nullptr) continue;
      if (position(graph, id) > write_position ||
          nest.accesses[nest.access_of.at(ref)].map != first_write->map)
        return false;
    }
    seen_write = seen_write || first_write != nullptr;
  }
  return true;
}

}  // namespace picokernel::passes
