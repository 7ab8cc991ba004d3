// Transparent calls on MLX: NumPy's memory as MLX's arrays, without a copy.
#pragma once

#include "kernel_object.h"

namespace picokernel::python {

/// Has arrays of `given` (the arguments as the printed source gets them) stand for their own memory
/// in MLX, where nothing writes to it meanwhile. Owners go to `kept`. Throws ErrorSet.
void lend_to_mlx(const Entry& entry, std::span<const driver::Arg> args,
                 std::span<const driver::Arg> outs, std::vector<PyObject*>& given,
                 std::vector<nb::object>& kept);

/// Whether calls of the entry do so with argument i, but for arrays that overlap results.
bool lends_to_mlx(const Entry& entry, size_t i);

}  // namespace picokernel::python
