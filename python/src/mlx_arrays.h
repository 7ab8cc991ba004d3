// Arrays of MLX as Python objects, and copies between NumPy and MLX. All throw ErrorSet.
#pragma once

#include "arguments.h"
#include "core.h"

namespace picokernel::python {

/// An array of mlx.core.
bool is_mlx_array(PyObject* object);
/// A NumPy array's copy in MLX.
nb::object copied_to_library(PyObject* array);
/// A complex array or number of MLX or NumPy as MLX's pairs of reals, and back.
nb::object pairs_of(PyObject* object, DType dtype);
nb::object complex_of_pairs(nb::handle pairs);
/// `array[...] = value` for arrays of MLX and NumPy.
void put_back(PyObject* array, nb::handle value);

}  // namespace picokernel::python
