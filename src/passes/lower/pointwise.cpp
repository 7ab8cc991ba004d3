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
    bool writes = false;
    for (const OpId read_op : nest.reads) {
      const ValueId ref = graph.ops[read_op].operands[0];
      if (root_of(graph, ref) == r && seen_write) return false;
    }
    for (const OpId write_op : nest.writes) {
      const ValueId target = graph.ops[write_op].operands[0];
      if (root_of(graph, target) != w) continue;
      writes = true;
      const IndexMap& there = nest.accesses[nest.access_of.at(target)].map;
      for (const OpId read_op : nest.reads) {
        const ValueId ref = graph.ops[read_op].operands[0];
        if (root_of(graph, ref) != r) continue;
        const IndexMap& here = nest.accesses[nest.access_of.at(ref)].map;
        const bool before = position(graph, read_op) < position(graph, write_op);
        if (!disjoint(nests.sizes, here, there) && !(here == there && before)) return false;
      }
    }
    seen_write = seen_write || writes;
  }
  return true;
}

}  // namespace picokernel::passes
