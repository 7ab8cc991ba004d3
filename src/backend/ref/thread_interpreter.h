// Kernels of threads, one thread after another on the caller's own, under checks that no device
// has.
#pragma once

#include <cstdint>
#include <span>

#include "ir/module.h"
#include "runtime/executable.h"

namespace picokernel::backend {

using runtime::Grid;
using runtime::Reach;

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
