// Arrays of other libraries: read in place as NumPy arrays, results handed back as theirs.
#pragma once

#include <string>
#include <vector>

#include "planning.h"

namespace picokernel::python {

struct Reader;  // how the arrays of one Python type are read

/// Arrays that are not NumPy's: DLPack tensors, buffers, and what NumPy calls array-like.
bool any_foreign(PyObject* const* args, size_t count, PyObject* keywords);

// The arguments of one call with something foreign among them. All arrays belong to one library,
// whose arrays the results will be: tensors of torch, jax and other libraries that import DLPack
// tensors; everything else counts as NumPy's.
class Adopted {
 public:
  /// At most one value per parameter. Throws LaunchError if two libraries' arrays are among them.
  Adopted(const KernelState& k, PyObject* const* args, size_t count, PyObject* keywords);

  /// The arrays are those of MLX, whose backend takes them as they are.
  bool of_mlx() const;
  /// Puts NumPy arrays in the place of all that is foreign, but for what a library's own backend
  /// takes. Throws LaunchError for an array that cannot be read in place.
  void read(bool own_arrays);
  /// The values of the call: positional, then keywords'.
  PyObject* const* values() const { return values_.data(); }
  /// What the call returned, in terms of what was passed: new arrays as the library's, the views as
  /// the objects that they stand for. Takes the reference; null stays null.
  PyObject* give_back(PyObject* result) const;

  // Which of the values, for messages; an item of the tuple of out= if `item` >= 0.
  struct Place {
    size_t value = 0;
    Py_ssize_t item = -1;
  };
  std::string describe(Place place) const;

 private:
  struct View {
    PyObject* theirs;  // borrowed from the call
    nb::object array;
  };
  bool is_outs(size_t value) const;
  void meet(PyObject* object, Place place);
  PyObject* view_of(PyObject* object, Place place, bool own_arrays);
  PyObject* one_given_back(PyObject* item) const;

  const KernelState& k_;
  const size_t count_;
  PyObject* const keywords_;
  std::vector<PyObject*> values_;
  std::vector<View> views_;
  nb::object outs_;                  // the tuple that stands for the one of out=
  const Reader* library_ = nullptr;  // null: NumPy
  PyObject* example_ = nullptr;      // an array of that library, or the first NumPy array
  Place example_place_;
};

/// A call with something foreign among its arguments.
PyObject* call_foreign(KernelObject* self, PyObject* const* args, size_t count, PyObject* keywords);

void bind_foreign(nb::module_& m);

}  // namespace picokernel::python
