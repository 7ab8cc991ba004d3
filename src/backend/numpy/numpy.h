// Backend numpy: Python source made of NumPy ufuncs with out=.
#pragma once

#include "backend/backend.h"

namespace picokernel::backend {

/// The source defines one function of the module's parameters, in order; scalars as
/// py_like/printer.h says. It is run with `np`, NumPy, and `scratch(i, shape, dtype)`, which gives
/// a C-contiguous array of undefined content, the i-th of the call. Arguments must not overlap
/// where passes/graph/hazards.h names the pair.
extern const Backend numpy_backend;

}  // namespace picokernel::backend
