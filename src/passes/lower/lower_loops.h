// Graph -> kernel.
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

}  // namespace picokernel::passes
