// Backend mlx: Python source made of lazy MLX operations, with NumPy arrays in and out.
#pragma once

#include "backend/backend.h"

namespace picokernel::backend {

/// The source defines one function of the module's parameters, in order; scalars as
/// py_like/printer.h says. It is run with `np`, NumPy, and `mx`, mlx.core. All arguments are copied
/// to MLX before any is written. MLX refuses arrays with negative strides: the caller copies such
/// arguments first.
extern const Backend mlx_backend;

}  // namespace picokernel::backend
