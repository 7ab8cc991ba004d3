// OpenCL C of kernels of threads, and devices that run it.
#pragma once

#include "backend/backend.h"

namespace picokernel::backend {

extern const Backend opencl_backend;

}  // namespace picokernel::backend
