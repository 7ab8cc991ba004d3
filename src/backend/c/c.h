// The backend c: kernels as C11, for programs that know nothing of picokernel.
#pragma once

#include "backend/backend.h"

namespace picokernel::backend {

extern const Backend c_backend;

}  // namespace picokernel::backend
