// Graph -> kernel.
#pragma once

#include "passes/pass.h"

namespace picokernel::passes {

/// One `parallel` loop per nest, with the parameters of kernel_params(). Expects bind_outputs and
/// materialize.
ir::Module lower_loops(const ir::Module& graph, const Target& target);

}  // namespace picokernel::passes
