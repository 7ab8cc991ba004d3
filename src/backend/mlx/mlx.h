// Backend mlx: Python source made of lazy MLX operations, with NumPy arrays in and out, or with
// MLX's own.
#pragma once

#include "backend/backend.h"

namespace picokernel::backend {

/// The source defines one function of the module's parameters, in order; scalars as
/// py_like/printer.h says. It is run with `np`, NumPy, and `mx`, mlx.core. All arguments are copied
/// to MLX before any is written. MLX refuses arrays with negative strides: the caller copies such
/// arguments first.
extern const Backend mlx_backend;

/// The same of MLX arrays: nothing is copied or evaluated. The function returns a tuple of new
/// arrays, the results; what a kernel stores into an argument is bound to it by `a[...] = v`.
extern const Backend mlx_own_arrays_backend;

}  // namespace picokernel::backend
