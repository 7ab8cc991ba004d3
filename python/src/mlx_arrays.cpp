// Copies between NumPy and MLX.
#include "mlx_arrays.h"

#include "support/check.h"
#include "trace/trace.h"

namespace picokernel::python {

namespace {

nb::object mlx() {
  PyObject* module = PyImport_ImportModule("mlx.core");
  if (module == nullptr) throw ErrorSet{};
  return nb::steal(module);
}

void copy_back(PyObject* array, nb::handle value) {
  static const trace::NameId name = trace::intern("copy from MLX");
  auto* const a = reinterpret_cast<PyArrayObject*>(array);
  const trace::Span span(trace::Category::d2h, name, static_cast<uint64_t>(PyArray_NBYTES(a)));
  const nb::object host = nb::steal(PyArray_FromAny(value.ptr(), nullptr, 0, 0, 0, nullptr));
  if (!host.is_valid() || PyArray_CopyInto(a, reinterpret_cast<PyArrayObject*>(host.ptr())) < 0)
    throw ErrorSet{};
}

}  // namespace

bool is_mlx_array(PyObject* object) {
  static PyTypeObject* known = nullptr;  // kept by the module, which is never unloaded
  if (known != nullptr) return Py_TYPE(object) == known;
  const std::string_view name = Py_TYPE(object)->tp_name;
  if (name != "mlx.core.array" && name != "array") return false;
  PyObject* const module = PyDict_GetItemString(PyImport_GetModuleDict(), "mlx.core");
  if (module == nullptr) return false;
  const nb::object type = nb::steal(PyObject_GetAttrString(module, "array"));
  if (type.ptr() != reinterpret_cast<PyObject*>(Py_TYPE(object))) return false;
  known = Py_TYPE(object);
  return true;
}

nb::object copied_to_library(PyObject* array) {
  static const trace::NameId name = trace::intern("copy to MLX");
  auto* const a = reinterpret_cast<PyArrayObject*>(array);
  const trace::Span span(trace::Category::h2d, name, static_cast<uint64_t>(PyArray_NBYTES(a)));
  nb::object forward = nb::borrow(array);
  for (int d = 0; d < PyArray_NDIM(a); ++d)
    if (PyArray_STRIDE(a, d) < 0) {  // MLX refuses these
      forward = nb::steal(PyArray_NewCopy(a, NPY_CORDER));
      if (!forward.is_valid()) throw ErrorSet{};
      break;
    }
  const nb::object space = mlx();
  if (PyArray_TYPE(a) == number_of_dtype(DType::bf16))  // which MLX's reader does not know
    return space.attr("array")(forward.attr("view")("uint16")).attr("view")(space.attr("bfloat16"));
  // MLX makes float32 of float64 unless told not to.
  return PyArray_TYPE(a) == NPY_DOUBLE
             ? space.attr("array")(forward, nb::arg("dtype") = space.attr("float64"))
             : space.attr("array")(forward);
}

nb::object pairs_of(PyObject* object, DType dtype) {
  const nb::object space = mlx();
  if (!is_mlx_array(object)) {
    const nb::object pairs = nb::steal(as_pairs(object));
    if (!pairs.is_valid()) throw ErrorSet{};
    return copied_to_library(pairs.ptr());
  }
  PK_CHECK(dtype == DType::c64, numpy_name(dtype));  // all that MLX has
  return space.attr("expand_dims")(nb::borrow(object), -1).attr("view")(space.attr("float32"));
}
nb::object complex_of_pairs(nb::handle pairs) {
  const nb::object space = mlx();
  return space.attr("squeeze")(pairs.attr("view")(space.attr("complex64")), -1);
}

void put_back(PyObject* array, nb::handle value) {
  if (PyArray_Check(array))
    copy_back(array, value);
  else if (PyObject_SetItem(array, Py_Ellipsis, value.ptr()) != 0)
    throw ErrorSet{};
}

}  // namespace picokernel::python
