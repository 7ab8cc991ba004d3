// Which arguments of fused loops may be one array.
#pragma once

#include "passes/lower/nests.h"

namespace picokernel::passes {

/// Every element of parameter `read` is read before the same element of parameter `written` is
/// written. So the two may be one array: equal base, strides and dtype.
bool pointwise(const ir::Module& graph, const Nests& nests, size_t read, size_t written);

}  // namespace picokernel::passes
