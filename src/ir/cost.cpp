// Bytes and operations of a graph.
#include "ir/cost.h"

#include <map>

namespace picokernel::ir {

Cost cost(const Module& graph) {
  Cost c{.sizes = graph.sizes};
  c.bytes_read = c.bytes_written = c.sizes.constant(0);
  const auto elements = [&](const Type& t) {
    SizeId n = c.sizes.constant(1);
    for (const SizeId s : t.shape) n = c.sizes.mul(n, s);
    return n;
  };
  std::map<ValueId, int> seen;  // ref -> 1: read, 2: written, 3: both
  walk(graph, [&](OpId id) {
    const Op& op = graph.ops[id];
    if (op.opcode == Opcode::read || op.opcode == Opcode::write) {
      const int bit = op.opcode == Opcode::read ? 1 : 2;
      int& mask = seen[op.operands[0]];
      if ((mask & bit) != 0 || (bit == 1 && (mask & 2) != 0))
        return;  // a read of what was just written stays in registers
      mask |= bit;
      const Type& t = graph.type(op.operands[0]);
      const SizeId bytes =
          c.sizes.mul(elements(t), c.sizes.constant(static_cast<int64_t>(size_of(t.dtype))));
      SizeId& total = bit == 1 ? c.bytes_read : c.bytes_written;
      total = c.sizes.add(total, bytes);
    } else if (info(op.opcode).elementwise() || op.opcode == Opcode::cast) {
      c.operations.push_back(
          {op.opcode, graph.type(op.operands[0]).dtype, elements(graph.type(op.results[0]))});
    }
  });
  return c;
}

}  // namespace picokernel::ir
