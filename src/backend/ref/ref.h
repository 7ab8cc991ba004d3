// The reference backend: interprets lowered kernels. Oracle of every test.
#pragma once

#include "backend/backend.h"

namespace picokernel::backend {

extern const Backend ref_backend;

}  // namespace picokernel::backend
