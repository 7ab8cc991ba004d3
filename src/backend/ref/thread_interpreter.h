// Kernels of threads, one thread after another on the caller's own, under checks that no device
// has.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ir/module.h"

namespace picokernel::backend {

struct Grid {
  std::array<int64_t, 3> blocks{1, 1, 1}, threads{1, 1, 1};  // x, y, z; threads of a block
  int64_t shared_bytes = 0;                                  // of dynamic shared memory
};

// What an array parameter may be used at: the elements [low, high) from its pointer. Scalars:
// unused.
struct Reach {
  int64_t low = 0, high = 0;
};

/// Runs the kernel for each thread of the grid. Parameters are 8-byte slots as for run_kernel, with
/// a reach each. Threads take turns at barriers and atomics, in an order that follows from `seed`,
/// as does that of blocks.
///
/// Throws KernelError at the place of the first access out of bounds, of the first element of
/// shared or local memory that is read before it was written, of two accesses to one element by two
/// threads with no barrier between them, one of them a write that is no atomic and changes it, and
/// of barriers that some threads of a block do not reach. What was written before stays.
void run_threads(const ir::Module& kernel, std::span<const uint64_t> params,
                 std::span<const Reach> reach, const Grid& grid, uint64_t seed);

}  // namespace picokernel::backend
