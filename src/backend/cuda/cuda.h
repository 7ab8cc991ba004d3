// The backend cuda: array kernels as CUDA C++.
#pragma once

#include "backend/backend.h"

namespace picokernel::backend {

extern const Backend cuda_backend;

}  // namespace picokernel::backend
