// Python integers have no bounds, kernels' have: what a kernel computes from Python ints is
// computed once more, exactly, before each launch.
#pragma once

#include "driver/kernel.h"

namespace picokernel::driver {

/// Throws LaunchError if an integer computed from arguments and sizes does not fit, divides by zero
/// or shifts by a negative count. `traced` is the module with its CallChecks.
void check_integers(const std::string& kernel, const ir::Module& traced, std::span<const Arg> args,
                    std::span<const int64_t> symbols);

}  // namespace picokernel::driver
