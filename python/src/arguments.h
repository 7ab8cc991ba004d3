// Python objects of a call as the driver's arguments.
#pragma once

#include <optional>

#include "driver/kernel.h"
#include "numpy_api.h"

namespace picokernel::python {

/// By NumPy's type number, in native byte order.
std::optional<DType> dtype_of_number(int type_number) noexcept;
int number_of_dtype(DType dtype) noexcept;

inline bool is_native(const PyArray_Descr* descr) noexcept {
  return PyArray_ISNBO(descr->byteorder);
}

enum class Read : uint8_t {
  done,
  constant,  // no array and no number: fixed while tracing
  difficult  // needs the slow path: a subclass, foreign byte order, unaligned, too large, not
             // supported
};

/// Fills `arg` from an array or a number; `name` is left alone. Never sets a Python error.
Read read_argument(PyObject* object, driver::Arg& arg) noexcept;
/// The same for arrays only.
Read read_array(PyObject* object, driver::Arg& arg) noexcept;

/// From now on arrays of this subclass of NumPy's are read as NumPy's own.
void read_as_array(PyTypeObject* subclass) noexcept;

/// What stands for a difficult argument: an owned, plain, aligned array, possibly one that is
/// written back, or a number. Throws LaunchError if kernels do not take it; `what` names it in
/// messages.
PyObject* plain_argument(PyObject* object, const std::string& what, bool may_write);

/// Bits of a Python float, and of an int if it fits; false if not.
bool read_number(PyObject* object, driver::Arg& arg) noexcept;

/// A complex array or number as an array of its real type with a last dimension of 2, over the same
/// memory. A new reference; null with an error set.
PyObject* as_pairs(PyObject* object) noexcept;

/// A new array for an output. Large ones come from the runtime's pool. Null with an error set.
PyObject* new_output(const driver::OutputSpec& spec) noexcept;
/// An uninitialised array of so many bytes from the runtime's pool; strides may be null. Takes
/// `descr`. Null with an error set.
PyObject* new_pooled(PyArray_Descr* descr, int rank, const npy_intp* shape, const npy_intp* strides,
                     size_t bytes) noexcept;

}  // namespace picokernel::python
