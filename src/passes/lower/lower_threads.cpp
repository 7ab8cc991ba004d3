// Kernels of threads -> loops over the grid.
#include <array>

#include "ir/rewriter.h"
#include "passes/lower/block_values.h"
#include "passes/lower/lower_loops.h"

namespace picokernel::passes {

using namespace ir;

namespace {

constexpr uint64_t kMaxSharedBytes = 256 << 10;  // on a worker's stack

bool threads_meet(const Module& m) {
  bool found = false;
  walk(m, [&](OpId id) {
    found |= info(m.ops[id].opcode).barrier() || m.ops[id].opcode == Opcode::shared;
  });
  return found;
}

}  // namespace

std::optional<Diagnostic> why_not_loops(const Module& m) {
  if (!threads_meet(m)) return std::nullopt;
  std::optional<Diagnostic> found;
  const auto refuse = [&](const Op& op, std::string message, std::string note) {
    if (!found)
      found = Diagnostic{
          .location = m.location(op), .message = std::move(message), .notes = {std::move(note)}};
  };
  uint64_t bytes = 0;
  walk(m, [&](OpId id) {
    const Op& op = m.ops[id];
    if (op.opcode == Opcode::alloc) {
      const Op* count = m.def(op.operands[0]);
      if (count == nullptr || count->opcode != Opcode::constant)
        return refuse(op, "local arrays of unknown size beside barriers", "give a constant");
      bytes += static_cast<uint64_t>(count->scalar().as<int64_t>() * kMaxThreadsOfBlock) *
               size_of(m.type(op.results[0]).dtype);
    } else if (op.opcode == Opcode::shared) {
      bytes += op.attribute * size_of(m.type(op.results[0]).dtype);
    } else {
      return;
    }
    if (op.opcode == Opcode::shared && op.attribute == 0)
      refuse(op, "shared memory whose size the launch gives", "its size has to be a constant");
    if (bytes > kMaxSharedBytes)
      refuse(op, std::to_string(bytes) + " bytes of shared memory and of its threads' local arrays",
             "a block has up to " + std::to_string(kMaxSharedBytes) +
                 "; local arrays beside barriers count for " + std::to_string(kMaxThreadsOfBlock) +
                 " threads");
  });
  if (const OpId id = BlockValues(m).divergent(); id.valid())
    refuse(m.ops[id], "a barrier under a condition that may differ between threads",
           "it has to follow from arguments, block ids, shared elements or syncthreads_or");
  return found;
}

Module lower_threads(const Module& m, const Target&) {
  if (threads_meet(m)) return split_barriers(spread_locals(m));
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
