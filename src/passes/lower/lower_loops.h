// Graph -> kernel, and kernels of threads -> loops.
#pragma once

#include <optional>

#include "passes/pass.h"

namespace picokernel::passes {

/// One `parallel` loop per nest, with the parameters of kernel_params(). Expects bind_outputs and
/// materialize.
ir::Module lower_loops(const ir::Module& graph, const Target& target);

/// The same with the graph's own parameters, for code that is called without a launch: pointers to
/// contiguous arrays and scalars in the graph's order, then the sizes n0, n1, ... Scratch is
/// allocated. The kernel's notes say what is expected of the parameters.
ir::Module lower_arrays(const ir::Module& graph, const Target& target);

/// A kernel of threads as loops: over blocks and threads where the threads do not meet, else over
/// blocks, and in them over threads between barriers. Six parameters come last: blocks and threads
/// of a block, up to 1024, along x, y and z. Expects a kernel that why_not_loops finds nothing in.
ir::Module lower_threads(const ir::Module& kernel, const Target& target);
/// What stands in the way of lower_threads.
std::optional<Diagnostic> why_not_loops(const ir::Module& kernel);
/// Before that, of kernels whose threads meet and have arrays of constant sizes of their own: these
/// become shared memory, an element for each thread that a block may have.
ir::Module spread_locals(const ir::Module& kernel);
inline constexpr int64_t kMaxThreadsOfBlock = 1024;
/// The part of lower_threads for kernels whose threads meet.
ir::Module split_barriers(const ir::Module& kernel);

}  // namespace picokernel::passes
