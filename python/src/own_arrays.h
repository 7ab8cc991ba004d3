// Calls on the arrays of a source backend's own library, which stay where they are.
#pragma once

#include "mlx_arrays.h"
#include "planning.h"

namespace picokernel::python {

/// The backend that computes on arrays of MLX as they are, if the one named does; null: no. `named`
/// is null if where the data is decides.
const backend::Backend* own_arrays_backend(const backend::Backend* named);

// What stands for such arrays while a call is planned: NumPy arrays of their types and shapes, at
// addresses that nobody reads and that differ where the arrays do.
class StandIns {
 public:
  /// The arguments of the call with the library's arrays replaced.
  explicit StandIns(const KernelState& k, const Bound& b);
  const Bound& bound() const { return bound_; }
  /// The array that this one stands for, or the object itself. Borrowed.
  PyObject* original(PyObject* object) const;

 private:
  PyObject* stand_in(PyObject* array, const std::string& what);

  Bound bound_;
  std::vector<std::pair<PyObject*, nb::object>> arrays_;
};

/// Runs the kernel lazily; results are the library's arrays. NumPy arrays beside them are copied
/// there, and back if the kernel writes them.
PyObject* call_on_own_arrays(KernelObject* self, const Bound& b, const backend::Backend& backend);

/// The same for a call like one before, of positional arguments, that writes nothing of the
/// caller's. Null without an error: it is something else.
PyObject* call_like_before_on_own_arrays(KernelObject* self, PyObject* const* args, size_t count);

}  // namespace picokernel::python
