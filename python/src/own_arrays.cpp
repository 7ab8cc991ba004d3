// Planning with stand-ins, and the call of the printed function on the library's arrays.
#include "own_arrays.h"

#include <algorithm>

#include "automatic.h"
#include "support/check.h"

namespace picokernel::python {

namespace {

// "float32" of mlx.core.float32.
std::string dtype_name_of(PyObject* array) {
  const nb::object dtype = nb::steal(PyObject_GetAttrString(array, "dtype"));
  const nb::object text = nb::steal(dtype.is_valid() ? PyObject_Str(dtype.ptr()) : nullptr);
  if (!text.is_valid()) throw ErrorSet{};
  const auto name = nb::cast<std::string>(text);
  const std::string last = name.substr(name.rfind('.') + 1);
  return last == "bool_" ? "bool" : last;
}

std::string supported_types() {
  std::string text;
  for (size_t i = 0; i < kDTypeCount; ++i)
    text += (i == 0 ? "" : ", ") + std::string(numpy_name(static_cast<DType>(i)));
  return text;
}

nb::object mlx() {
  PyObject* module = PyImport_ImportModule("mlx.core");
  if (module == nullptr) throw ErrorSet{};
  return nb::steal(module);
}

// A NumPy array's copy there.
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

// A complex array or number of MLX or NumPy as MLX's pairs of reals, and back.
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

void copy_back(PyObject* array, nb::handle value) {
  static const trace::NameId name = trace::intern("copy from MLX");
  auto* const a = reinterpret_cast<PyArrayObject*>(array);
  const trace::Span span(trace::Category::d2h, name, static_cast<uint64_t>(PyArray_NBYTES(a)));
  const nb::object host = nb::steal(PyArray_FromAny(value.ptr(), nullptr, 0, 0, 0, nullptr));
  if (!host.is_valid() || PyArray_CopyInto(a, reinterpret_cast<PyArrayObject*>(host.ptr())) < 0)
    throw ErrorSet{};
}

void put_back(PyObject* array, nb::handle value) {
  if (PyArray_Check(array))
    copy_back(array, value);
  else if (PyObject_SetItem(array, Py_Ellipsis, value.ptr()) != 0)
    throw ErrorSet{};
}

void refuse_complex128(DType dtype, const KernelState& k) {
  if (dtype == DType::c128)
    throw_launch_error("a result of " + describe_kernel(k) + " is complex128, which MLX lacks",
                       {"complex64 arrays are fine", "hint: z.astype(np.complex64)"});
}

// The n-th of addresses that nobody reads: beyond all of processes, and an array's reach apart.
void* unread_address(size_t n) {
  return reinterpret_cast<void*>((uintptr_t{1} << 62) + (uintptr_t{n} << 48));
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

const backend::Backend* own_arrays_backend(const backend::Backend* named) {
  // Where the data is decides: nothing is copied there, and results stay lazy.
  const bool free = named == nullptr || named == &automatic_backend;
  return (free ? backend_named("mlx") : *named).own_arrays;
}

StandIns::StandIns(const KernelState& k, const Bound& b) : bound_(b) {
  for (size_t i = 0; i < bound_.values.size(); ++i)
    if (is_mlx_array(bound_.values[i]))
      bound_.values[i] = stand_in(bound_.values[i], describe_argument(k, i));
  if (b.out == nullptr) return;
  if (is_mlx_array(b.out)) bound_.out = stand_in(b.out, "out of " + describe_kernel(k));
  if (!PyTuple_Check(b.out)) return;
  const Py_ssize_t n = PyTuple_GET_SIZE(b.out);
  const nb::object outs = nb::steal(PyTuple_New(n));
  if (!outs.is_valid()) throw ErrorSet{};
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* out = PyTuple_GET_ITEM(b.out, i);
    if (is_mlx_array(out))
      out = stand_in(out, "out[" + std::to_string(i) + "] of " + describe_kernel(k));
    Py_INCREF(out);
    PyTuple_SET_ITEM(outs.ptr(), i, out);
  }
  bound_.kept.push_back(outs);
  bound_.out = outs.ptr();
}

PyObject* StandIns::original(PyObject* object) const {
  for (const auto& [theirs, ours] : arrays_)
    if (ours.ptr() == object) return theirs;
  return object;
}

// Borrowed from `arrays_`.
PyObject* StandIns::stand_in(PyObject* array, const std::string& what) {
  for (const auto& [theirs, ours] : arrays_)
    if (theirs == array) return ours.ptr();
  const std::string name = dtype_name_of(array);
  const std::optional<DType> dtype = dtype_from_numpy(name);
  if (!dtype)
    throw_launch_error(what + " is an mlx.core.array of dtype " + name,
                       {"supported: " + supported_types(), "hint: x.astype(mx.float32)"});
  const nb::object shape = nb::steal(PyObject_GetAttrString(array, "shape"));
  if (!shape.is_valid() || !PyTuple_Check(shape.ptr())) throw ErrorSet{};
  const Py_ssize_t rank = PyTuple_GET_SIZE(shape.ptr());
  npy_intp dims[NPY_MAXDIMS];
  for (Py_ssize_t d = 0; d < rank; ++d)
    dims[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape.ptr(), d));
  PyObject* made =
      PyArray_New(&PyArray_Type, static_cast<int>(rank), dims, number_of_dtype(*dtype), nullptr,
                  unread_address(arrays_.size()), 0, NPY_ARRAY_CARRAY, nullptr);
  if (made == nullptr) throw ErrorSet{};
  arrays_.emplace_back(array, nb::steal(made));
  return made;
}

PyObject* call_on_own_arrays(KernelObject* self, const Bound& b, const backend::Backend& backend) {
  const StandIns stand_ins(*self->state, b);
  Planned p = plan_call(self, stand_ins.bound(), backend);
  Entry& entry = *p.entry;
  remember(*self->state, &entry);
  for (size_t i = 0; i < p.outs.size(); ++i)
    if (p.outs[i].data == nullptr) p.outs[i].data = unread_address(p.args.size() + i);
  entry.plan->inputs_to_copy(p.args, p.outs);  // its checks; MLX copies nothing
  if (trace::enabled()) prepare_twin(entry);
  const trace::Span span(trace::Category::call, entry.span, entry.elements, entry.trace_backend);

  const size_t n = p.args.size();
  std::vector<PyObject*> given(n), originals(n);
  std::vector<nb::object> kept;
  for (size_t i = 0; i < n; ++i) {
    given[i] = originals[i] = stand_ins.original(p.objects[i]);
    if (is_complex(p.args[i].dtype)) {
      kept.push_back(pairs_of(given[i], p.args[i].dtype));
      given[i] = kept.back().ptr();
      continue;
    }
    if (!PyArray_Check(given[i])) continue;
    kept.push_back(copied_to_library(given[i]));
    given[i] = kept.back().ptr();
  }
  const nb::object results_tuple = nb::steal(run_source(entry, p.args, given.data(), nullptr, 0));
  if (!results_tuple.is_valid()) return nullptr;
  for (size_t i = 0; i < n; ++i)
    if (entry.plan->written()[i] && given[i] != originals[i])
      put_back(originals[i], is_complex(p.args[i].dtype) ? complex_of_pairs(nb::borrow(given[i]))
                                                         : nb::borrow(given[i]));
  std::vector<PyObject*> outs(entry.plan->outputs().size() + 1, nullptr);
  const bool many = b.out != nullptr && PyTuple_Check(b.out);
  for (size_t i = 0; i + 1 < outs.size(); ++i) {
    PyObject* value = PyTuple_GET_ITEM(results_tuple.ptr(), static_cast<Py_ssize_t>(i));
    PyObject* const out = many ? PyTuple_GET_ITEM(b.out, static_cast<Py_ssize_t>(i)) : b.out;
    const bool own = out == nullptr || out == Py_None;
    const DType dtype = own ? entry.plan->outputs()[i].dtype : p.outs[i].dtype;
    if (is_complex(dtype)) {
      refuse_complex128(dtype, *self->state);
      kept.push_back(complex_of_pairs(nb::borrow(value)));
      value = kept.back().ptr();
    }
    outs[i] = own ? value : out;
    if (outs[i] != value) put_back(out, nb::borrow(value));
  }
  return results(*entry.note, originals.data(), outs.data(), false);
}

}  // namespace picokernel::python
