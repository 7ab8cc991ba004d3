// This machine's first OpenCL device, found at run time, and kernels opened on it.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace picokernel::backend::opencl {

/// Empty, or why there is no device and what to install.
std::string why_not_live();
/// Compiles the text. Throws Error with the compiler's words if it does not take it.
std::unique_ptr<runtime::Executable> open(const Artifact& artifact, const ir::Module& m);

}  // namespace picokernel::backend::opencl
