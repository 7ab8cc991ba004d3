// Graph -> kernel, and kernels of threads -> loops.
#pragma once

#include "passes/pass.h"

namespace picokernel::passes {

/// One `parallel` loop per nest, with the parameters of kernel_params(). Expects bind_outputs and
/// materialize.
ir::Module lower_loops(const ir::Module& graph, const Target& target);

/// The same with the graph's own parameters, for code that is called without a launch: pointers to
/// contiguous arrays and scalars in the graph's order, then the sizes n0, n1, ... Scratch is
/// allocated. The kernel's notes say what is expected of the parameters.
ir::Module lower_arrays(const ir::Module& graph, const Target& target);

/// A kernel of threads as one `parallel` loop over blocks and threads, z outermost. Six parameters
/// come last: blocks and threads of a block along x, y and z. Nothing in the kernel may need other
/// threads: find_needs_of_others says what does.
ir::Module lower_threads(const ir::Module& kernel, const Target& target);
/// The first op that threads meet at, or memory that they share; invalid: there is none.
ir::OpId find_needs_of_others(const ir::Module& kernel);

}  // namespace picokernel::passes
