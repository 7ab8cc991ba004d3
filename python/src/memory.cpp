// Arrays from the runtime's pool, and giving back what the pools keep.
#include <memory>

#include <picokernel/memory.h>

#include "arguments.h"
#include "core.h"
#include "mlx_bridge.h"

namespace picokernel::python {

namespace {

nb::object empty(nb::handle shape, nb::handle dtype) {
  PyArray_Dims dims{};
  PyArray_Descr* descr = nullptr;
  if (!PyArray_IntpConverter(shape.ptr(), &dims)) throw nb::python_error();
  const auto free = [](npy_intp* sizes) { PyDimMem_FREE(sizes); };
  const std::unique_ptr<npy_intp, decltype(free)> sizes(dims.ptr, free);
  if (!PyArray_DescrConverter(dtype.ptr(), &descr)) throw nb::python_error();
  const nb::object owned = nb::steal(reinterpret_cast<PyObject*>(descr));
  npy_intp bytes = PyDataType_ELSIZE(descr);
  for (int d = 0; d < dims.len; ++d) {
    if (sizes.get()[d] < 0) throw nb::value_error("negative dimensions are not allowed");
    if (__builtin_mul_overflow(bytes, sizes.get()[d], &bytes))
      throw nb::value_error("array is too big");
  }
  // NumPy clears references, and gives sizes to types without one.
  const bool plain = !PyDataType_REFCHK(descr) && PyDataType_SUBARRAY(descr) == nullptr;
  Py_INCREF(descr);
  PyObject* array = plain && bytes != 0 ? new_pooled(descr, dims.len, sizes.get(), nullptr,
                                                     static_cast<size_t>(bytes))
                                        : PyArray_Empty(dims.len, sizes.get(), descr, 0);
  if (array == nullptr) throw nb::python_error();
  return nb::steal(array);
}

}  // namespace

void bind_memory(nb::module_& m) {
  m.def("empty", &empty, nb::arg("shape"), nb::arg("dtype") = nb::none(),
        "An uninitialised NumPy array in C order, as numpy.empty gives, whose memory begins on a "
        "page boundary and from 4 MiB on lies in huge pages where the system has them. It comes "
        "from the pool of results, and goes there when the array is dropped.");
  m.def(
      "trim",
      [] {
        const graph::Bridge* const bridge = known_mlx_bridge();
        return trim() + (bridge == nullptr ? 0 : bridge->trim());
      },
      "Returns what the pools keep to the system; gives the bytes.");
}

}  // namespace picokernel::python
