// Kernels of threads -> loops over the grid.
#include <array>

#include "ir/rewriter.h"
#include "passes/lower/lower_loops.h"
#include "support/check.h"

namespace picokernel::passes {

using namespace ir;

OpId find_needs_of_others(const Module& m) {
  OpId found;
  walk(m, [&](OpId id) {
    const OpInfo& facts = info(m.ops[id].opcode);
    if (!found.valid() && (facts.barrier() || m.ops[id].opcode == Opcode::shared)) found = id;
  });
  return found;
}

Module lower_threads(const Module& m, const Target&) {
  PK_CHECK(!find_needs_of_others(m).valid(), "threads of this kernel meet");
  Rewriter rewriter(m);
  Builder& b = rewriter.builder();
  for (const ValueId p : m.params()) rewriter.map(p, b.param(m.type(p), m.values[p].name));
  const Type index{.dtype = DType::i64};
  std::array<ValueId, 3> blocks, threads, block, thread;
  for (size_t a = 0; a < 3; ++a) blocks[a] = b.param(index, "blocks_" + std::string(1, "xyz"[a]));
  for (size_t a = 0; a < 3; ++a) threads[a] = b.param(index, "threads_" + std::string(1, "xyz"[a]));
  const BlockId body = b.new_block();
  for (size_t a = 3; a-- > 0;) block[a] = b.block_param(body, index);
  for (size_t a = 3; a-- > 0;) thread[a] = b.block_param(body, index);
  b.set_insertion_block(body);
  rewriter.splice(Module::body(), [&](Rewriter& r, OpId id) -> std::optional<std::vector<ValueId>> {
    const Op& op = r.from().ops[id];
    if (op.opcode == Opcode::thread_id) return {{thread[op.attribute]}};
    if (op.opcode == Opcode::block_id) return {{block[op.attribute]}};
    if (op.opcode == Opcode::block_dim) return {{threads[op.attribute]}};
    if (op.opcode == Opcode::grid_dim) return {{blocks[op.attribute]}};
    if (op.opcode == Opcode::check_index || op.opcode == Opcode::return_)
      return std::vector<ValueId>{};
    return std::nullopt;
  });
  b.set_insertion_block(Module::body());
  b.op_with_regions(Opcode::parallel,
                    {blocks[2], blocks[1], blocks[0], threads[2], threads[1], threads[0]}, {body});
  b.return_values({});
  return std::move(rewriter.to());
}

}  // namespace picokernel::passes
