// Calls on arrays of MLX where MLX computes on a GPU or without our bridge: which function is run.
#pragma once

#include "kernel_object.h"

namespace picokernel::python {

/// What computes a call's results in MLX, for results like these: the printed operations under
/// mx.compile; on CUDA one printed kernel where that would make several and one loop nest does it.
/// Throws nb::python_error.
const nb::object& function_on_mlx(Entry& entry, std::span<const driver::Arg> outs);

}  // namespace picokernel::python
