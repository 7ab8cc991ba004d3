// Reading tensors by DLPack, buffers and array-likes, and exporting results by DLPack.
#include "foreign.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "dlpack.h"
#include "own_arrays.h"
#include "support/check.h"

namespace picokernel::python {

namespace {

enum class How : uint8_t {
  exchange,    // DLPack's C functions
  buffer,      // the buffer protocol
  dlpack,      // __dlpack__
  array_like,  // __array_interface__, __array_struct__ or __array__
  cuda         // __cuda_array_interface__ alone
};

}  // namespace

struct Reader {
  How how = How::buffer;
  const DLPackExchangeApi* api = nullptr;
  bool has_dlpack = false;
  bool versioned = true;  // __dlpack__ takes max_version=, as far as we know
  std::string package;    // of the type: "torch", "jax", "pandas"
  bool imports = false;   // results become arrays of that package
};

namespace {

// ---- Types -------------------------------------------------------------------------------------

bool type_has(PyObject* object, const char* name) {
  return PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), name) != 0;
}

std::string module_of(PyTypeObject* type) {
  const nb::object module =
      nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__"));
  if (!module.is_valid()) PyErr_Clear();
  return module.is_valid() && PyUnicode_Check(module.ptr()) ? nb::cast<std::string>(module) : "";
}

std::string package_of(PyTypeObject* type) {
  const std::string module = module_of(type);
  const std::string package = module.substr(0, module.find('.'));
  return package == "jaxlib" ? "jax" : package;
}

const DLPackExchangeApi* exchange_api_of(PyObject* object) {
  const nb::object capsule = nb::steal(PyObject_GetAttrString(
      reinterpret_cast<PyObject*>(Py_TYPE(object)), "__dlpack_c_exchange_api__"));
  void* api = nullptr;
  if (capsule.is_valid()) api = PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api");
  if (api == nullptr) PyErr_Clear();
  const auto* found = static_cast<const DLPackExchangeApi*>(api);
  while (found != nullptr && found->version.major > kDLMajor) found = found->previous;
  return found != nullptr && found->version.major == kDLMajor ? found : nullptr;
}

// Null: no array.
const Reader* reader_of(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  static auto& known = *new std::unordered_map<PyTypeObject*, std::unique_ptr<Reader>>;
  if (const auto found = known.find(type); found != known.end()) return found->second.get();
  auto r = std::make_unique<Reader>();
  r->api = exchange_api_of(object);
  r->has_dlpack = type_has(object, "__dlpack__");
  const bool array_like = type_has(object, "__array__") || type_has(object, "__array_struct__") ||
                          PyObject_HasAttrString(object, "__array_interface__") != 0;
  if (r->api != nullptr)
    r->how = How::exchange;
  else if (PyObject_CheckBuffer(object))
    r->how = How::buffer;
  else if (r->has_dlpack)
    r->how = How::dlpack;
  else if (array_like)
    r->how = How::array_like;
  else if (type_has(object, "__cuda_array_interface__"))
    r->how = How::cuda;
  else
    return nullptr;
  r->package = package_of(type);
  r->imports =
      r->api != nullptr ||
      (r->has_dlpack && (r->package == "torch" || type_has(object, "__array_namespace__")));
  Py_INCREF(type);  // another type must not be found at its address
  return known.emplace(type, std::move(r)).first->second.get();
}

std::string text_of_type(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  if (package_of(type) == "jax") return "jax.Array";
  if (PyArray_Check(object)) return "numpy.ndarray";
  const std::string module = module_of(type), name = type->tp_name;
  const std::string last = name.substr(name.rfind('.') + 1);
  return module.empty() || module == "builtins" ? last : module + "." + last;
}

// A value of a call, for messages.
struct Where {
  const Adopted& call;
  Adopted::Place place;
  std::string text() const { return call.describe(place); }
};

// ---- Refusals ----------------------------------------------------------------------------------

// The Python error that is set, which is cleared, as a sentence without its end.
std::string taken_error() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const nb::object owned[] = {nb::steal(type), nb::steal(value), nb::steal(traceback)};
  const nb::object text = nb::steal(value == nullptr ? nullptr : PyObject_Str(value));
  if (!text.is_valid()) {
    PyErr_Clear();
    return "it gives no reason";
  }
  std::string line = nb::cast<std::string>(text);
  line = line.substr(0, line.find('\n'));
  while (!line.empty() && (line.back() == '.' || line.back() == ' ')) line.pop_back();
  return line.empty() ? reinterpret_cast<PyTypeObject*>(type)->tp_name : line;
}

[[noreturn]] void refuse(PyObject* object, const Where& what, const std::string& why,
                         std::vector<std::string> notes) {
  throw_launch_error(what.text() + " is a " + text_of_type(object) + why, std::move(notes));
}

std::string copy_to_cpu(const std::string& package) {
  if (package == "torch") return "hint: pass x.cpu()";
  if (package == "jax") return "hint: pass jax.device_put(x, jax.devices('cpu')[0])";
  if (package == "cupy") return "hint: pass x.get()";
  if (package == "numba") return "hint: pass x.copy_to_host()";
  return "hint: copy it to the CPU first";
}

[[noreturn]] void refuse_device(PyObject* object, const Where& what, const Reader& r,
                                int32_t device) {
  const char* const name = device == 2    ? "a CUDA device"
                           : device == 4  ? "an OpenCL device"
                           : device == 7  ? "a Vulkan device"
                           : device == 8  ? "a Metal device"
                           : device == 10 ? "a ROCm device"
                           : device == 13 ? "CUDA managed memory"
                           : device == 14 ? "a oneAPI device"
                                          : nullptr;
  refuse(object, what,
         " on " + (name != nullptr ? std::string(name)
                                   : "a device of DLPack's type " + std::to_string(device)),
         {device == kDLCUDA ? "there is no cuda backend in this build: kernels read arrays in the "
                              "CPU's memory"
                            : "kernels read arrays in the CPU's memory",
          copy_to_cpu(r.package)});
}

// `object` cannot hand itself over; the Python error that is set says why.
[[noreturn]] void refuse_handover(PyObject* object, const Where& what, const Reader& r) {
  const std::string reason = taken_error();
  if (r.has_dlpack) {
    const nb::object device = nb::steal(PyObject_CallMethod(object, "__dlpack_device__", nullptr));
    int32_t type = kDLCPU, id = 0;
    if (!device.is_valid() || !PyArg_ParseTuple(device.ptr(), "ii", &type, &id)) PyErr_Clear();
    if (type != kDLCPU && type != kDLCUDAHost && type != kDLROCMHost)
      refuse_device(object, what, r, type);
  }
  std::string hint = "hint: pass np.asarray(x), or a copy of it in plain memory";
  if (r.package == "pandas") hint = "hint: pass x.to_numpy(dtype=np.float64, na_value=np.nan)";
  if (r.package == "torch") hint = "hint: pass a dense tensor on the CPU: x.to_dense().cpu()";
  if (r.package == "jax") hint = "hint: call kernels outside of jax.jit, or by jax.pure_callback";
  refuse(object, what, ", which cannot be read in place: " + reason, {hint});
}

// ---- Element types -----------------------------------------------------------------------------

struct ElementType {
  uint8_t code, bits;
  DType dtype;
};
constexpr ElementType kElementTypes[] = {
    {kDLBool, 8, DType::b1},      {kDLInt, 8, DType::i8},       {kDLInt, 16, DType::i16},
    {kDLInt, 32, DType::i32},     {kDLInt, 64, DType::i64},     {kDLUInt, 8, DType::u8},
    {kDLUInt, 16, DType::u16},    {kDLUInt, 32, DType::u32},    {kDLUInt, 64, DType::u64},
    {kDLBfloat, 16, DType::bf16}, {kDLFloat, 16, DType::f16},   {kDLFloat, 32, DType::f32},
    {kDLFloat, 64, DType::f64},   {kDLComplex, 64, DType::c64}, {kDLComplex, 128, DType::c128},
};
static_assert(std::size(kElementTypes) == kDTypeCount);

// ---- Reading -----------------------------------------------------------------------------------

template <class Managed>
constexpr const char* kCapsule = "dltensor";
template <>
constexpr const char* kCapsule<DLManagedTensorVersioned> = "dltensor_versioned";

// Calls the deleter when the capsule goes.
template <class Managed>
nb::object owner_of(Managed* tensor) {
  PyObject* capsule = PyCapsule_New(tensor, nullptr, [](PyObject* c) {
    auto* owned = static_cast<Managed*>(PyCapsule_GetPointer(c, nullptr));
    if (owned->deleter == nullptr) return;
    // It may run Python code, and an error may be on its way.
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    owned->deleter(owned);
    PyErr_Restore(type, value, traceback);
  });
  if (capsule == nullptr) {
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
    throw ErrorSet{};
  }
  return nb::steal(capsule);
}

nb::object array_of(const DLTensor& t, bool writeable, nb::object owner, PyObject* object,
                    const Where& what, const Reader& r) {
  if (t.device.device_type != kDLCPU && t.device.device_type != kDLCUDAHost &&
      t.device.device_type != kDLROCMHost)
    refuse_device(object, what, r, t.device.device_type);
  const auto type =
      std::find_if(std::begin(kElementTypes), std::end(kElementTypes), [&](const ElementType& e) {
        return e.code == t.dtype.code && e.bits == t.dtype.bits && t.dtype.lanes == 1;
      });
  PyArray_Descr* const descr = type == std::end(kElementTypes)
                                   ? nullptr
                                   : PyArray_DescrFromType(number_of_dtype(type->dtype));
  if (descr == nullptr) {  // bfloat16 needs ml_dtypes
    PyErr_Clear();
    nb::object dtype = nb::steal(PyObject_GetAttrString(object, "dtype"));
    nb::object text = nb::steal(dtype.is_valid() ? PyObject_Str(dtype.ptr()) : nullptr);
    PyErr_Clear();
    refuse(object, what,
           text.is_valid() ? " of dtype " + nb::cast<std::string>(text)
                           : " of DLPack's type code " + std::to_string(t.dtype.code) + " with " +
                                 std::to_string(t.dtype.bits) + " bits",
           {"NumPy has no such element type", "hint: convert it to float32 first"});
  }
  nb::object kept_descr = nb::steal(reinterpret_cast<PyObject*>(descr));
  if (t.ndim < 0 || t.ndim > NPY_MAXDIMS)
    refuse(object, what, " of " + std::to_string(t.ndim) + " dimensions",
           {"at most " + std::to_string(NPY_MAXDIMS) + " can be read"});
  npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
  npy_intp next = type->bits / 8;
  for (int d = t.ndim; d-- > 0;) {
    shape[d] = t.shape[d];
    strides[d] = t.strides != nullptr ? t.strides[d] * (type->bits / 8) : next;
    next *= std::max<npy_intp>(shape[d], 1);
  }
  if (t.data == nullptr && std::find(shape, shape + t.ndim, 0) == shape + t.ndim)
    refuse(object, what, ", which has elements and no memory",
           {"hint: pass a tensor with data, not a fake or symbolic one"});
  // NumPy would allocate for a null pointer, which an empty tensor may have.
  static char nothing[16];
  char* const data = t.data == nullptr ? nothing : static_cast<char*>(t.data) + t.byte_offset;
  PyObject* array = PyArray_NewFromDescr(
      &PyArray_Type, reinterpret_cast<PyArray_Descr*>(kept_descr.release().ptr()), t.ndim, shape,
      strides, data, NPY_ARRAY_ALIGNED | (writeable ? NPY_ARRAY_WRITEABLE : 0), nullptr);
  if (array == nullptr) throw ErrorSet{};
  nb::object owned = nb::steal(array);
  auto* const a = reinterpret_cast<PyArrayObject*>(array);
  PyArray_UpdateFlags(a, NPY_ARRAY_UPDATE_ALL);
  if (PyArray_SetBaseObject(a, owner.release().ptr()) != 0) throw ErrorSet{};
  return owned;
}

// What torch knows of a tensor and DLPack does not.
void check_torch(PyObject* object, const Where& what) {
  static PyObject* const requires_grad = PyUnicode_InternFromString("requires_grad");
  static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
  static PyObject* const is_conj = PyUnicode_InternFromString("is_conj");
  const nb::object grad = nb::steal(PyObject_GetAttr(object, requires_grad)),
                   neg = nb::steal(PyObject_CallMethodNoArgs(object, is_neg)),
                   conj = nb::steal(PyObject_CallMethodNoArgs(object, is_conj));
  if (!grad.is_valid() || !neg.is_valid() || !conj.is_valid()) throw ErrorSet{};
  if (grad.ptr() == Py_True)
    refuse(object, what, " that requires grad",
           {"kernels know nothing of torch's gradients", "hint: pass x.detach()"});
  if (neg.ptr() == Py_True || conj.ptr() == Py_True)
    refuse(object, what, " whose values are not those in its memory (is_neg or is_conj)",
           {"hint: pass x.resolve_conj().resolve_neg()"});
}

nb::object by_exchange(PyObject* object, const Where& what, const Reader& r) {
  if (r.package == "torch") check_torch(object, what);
  DLManagedTensorVersioned* tensor = nullptr;
  if (r.api->from_object(object, &tensor) != 0) refuse_handover(object, what, r);
  nb::object owner = owner_of(tensor);
  return array_of(tensor->dl_tensor, (tensor->flags & kDLReadOnly) == 0, std::move(owner), object,
                  what, r);
}

template <class Managed>
Managed* taken_from(PyObject* capsule) {
  auto* tensor = static_cast<Managed*>(PyCapsule_GetPointer(capsule, kCapsule<Managed>));
  if (tensor == nullptr) throw ErrorSet{};
  static const std::string used = std::string("used_") + kCapsule<Managed>;
  PyCapsule_SetName(capsule, used.c_str());
  PyCapsule_SetDestructor(capsule, nullptr);
  return tensor;
}

nb::object by_dlpack(PyObject* object, const Where& what, const Reader& r) {
  if (r.package == "torch") check_torch(object, what);  // of before 2.10
  static PyObject* const method = PyUnicode_InternFromString("__dlpack__");
  static PyObject* const keywords = Py_BuildValue("(ss)", "max_version", "copy");
  static PyObject* const version = Py_BuildValue("(ii)", 1, 3);
  nb::object capsule;
  if (r.versioned) {
    PyObject* args[] = {object, version, Py_False};
    capsule = nb::steal(
        PyObject_VectorcallMethod(method, args, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords));
    if (!capsule.is_valid() && PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      const_cast<Reader&>(r).versioned = false;  // of before 2024
    }
  }
  if (!r.versioned) capsule = nb::steal(PyObject_CallMethodNoArgs(object, method));
  if (!capsule.is_valid()) refuse_handover(object, what, r);
  if (PyCapsule_IsValid(capsule.ptr(), kCapsule<DLManagedTensor>)) {
    auto* tensor = taken_from<DLManagedTensor>(capsule.ptr());
    nb::object owner = owner_of(tensor);
    // The old form cannot say that a tensor is read-only, and jax's are.
    return array_of(tensor->dl_tensor, r.package != "jax", std::move(owner), object, what, r);
  }
  auto* tensor = taken_from<DLManagedTensorVersioned>(capsule.ptr());
  nb::object owner = owner_of(tensor);
  if (tensor->version.major != kDLMajor)
    refuse(object, what, " that speaks DLPack " + std::to_string(tensor->version.major),
           {"picokernel speaks DLPack 1", "hint: pass np.asarray(x)"});
  if ((tensor->flags & kDLIsCopied) != 0)
    refuse(object, what, ", which hands over a copy of itself",
           {"kernels read arrays in place", "hint: pass np.asarray(x)"});
  return array_of(tensor->dl_tensor, (tensor->flags & kDLReadOnly) == 0, std::move(owner), object,
                  what, r);
}

nb::object by_buffer(PyObject* object, const Where& what, const Reader& r) {
  const nb::object view = nb::steal(PyMemoryView_FromObject(object));
  if (!view.is_valid()) {
    if (!r.has_dlpack) refuse_handover(object, what, r);
    PyErr_Clear();  // an element type that buffers cannot name, or another device
    return by_dlpack(object, what, r);
  }
  nb::object array = nb::steal(PyArray_FromAny(view.ptr(), nullptr, 0, 0, 0, nullptr));
  if (!array.is_valid()) refuse_handover(object, what, r);
  // For elements that it does not know NumPy makes an array of objects.
  if (PyArray_TYPE(reinterpret_cast<PyArrayObject*>(array.ptr())) == NPY_OBJECT)
    refuse(
        object, what,
        std::string(" of the buffer format '") + PyMemoryView_GET_BUFFER(view.ptr())->format + "'",
        {"NumPy has no such element type", "hint: cast it: memoryview(x).cast('B')"});
  // Written values of MLX's arrays would show in others that share the memory.
  if (r.package == "mlx")
    PyArray_CLEARFLAGS(reinterpret_cast<PyArrayObject*>(array.ptr()), NPY_ARRAY_WRITEABLE);
  return array;
}

nb::object by_array(PyObject* object, const Where& what, const Reader& r) {
  nb::object array =
      nb::steal(PyArray_FromAny(object, nullptr, 0, 0, NPY_ARRAY_ENSURENOCOPY, nullptr));
  if (!array.is_valid()) refuse_handover(object, what, r);
  if (PyArray_TYPE(reinterpret_cast<PyArrayObject*>(array.ptr())) == NPY_OBJECT &&
      r.package == "pandas")
    refuse(object, what, " of Python objects",
           {"hint: pass x.to_numpy(dtype=np.float64, na_value=np.nan)"});
  return array;
}

nb::object read_foreign(PyObject* object, const Where& what, const Reader& r) {
  switch (r.how) {
    case How::exchange:
      return by_exchange(object, what, r);
    case How::buffer:
      return by_buffer(object, what, r);
    case How::dlpack:
      return by_dlpack(object, what, r);
    case How::array_like:
      return by_array(object, what, r);
    case How::cuda:
      refuse_device(object, what, r, kDLCUDA);
  }
  __builtin_unreachable();
}

// ---- Exporting ---------------------------------------------------------------------------------

// A tensor that shares the array's memory and keeps it.
template <class Managed>
Managed* exported(PyArrayObject* array) {
  struct Export {
    Managed tensor = {};
    PyObject* array = nullptr;
    std::vector<int64_t> dims;
  };
  const auto type = std::find_if(
      std::begin(kElementTypes), std::end(kElementTypes),
      [&](const ElementType& e) { return dtype_of_number(PyArray_TYPE(array)) == e.dtype; });
  PK_CHECK(type != std::end(kElementTypes), "a result of an unknown type");
  auto made = std::make_unique<Export>();
  const int rank = PyArray_NDIM(array);
  made->dims.assign(PyArray_DIMS(array), PyArray_DIMS(array) + rank);
  for (int d = 0; d < rank; ++d)
    made->dims.push_back(PyArray_STRIDE(array, d) / PyArray_ITEMSIZE(array));
  made->tensor.dl_tensor = {.data = PyArray_DATA(array),
                            .device = {},
                            .ndim = rank,
                            .dtype = {type->code, type->bits, 1},
                            .shape = made->dims.data(),
                            .strides = made->dims.data() + rank};
  made->tensor.manager_ctx = made.get();
  made->tensor.deleter = [](Managed* self) {
    if (!Py_IsInitialized()) return;  // the memory goes with the process
    const PyGILState_STATE state = PyGILState_Ensure();
    auto* const owned = static_cast<Export*>(self->manager_ctx);
    Py_DECREF(owned->array);
    delete owned;
    PyGILState_Release(state);
  };
  made->array = reinterpret_cast<PyObject*>(array);
  Py_INCREF(array);
  return &made.release()->tensor;
}

template <class Managed>
nb::object exported_capsule(PyObject* array) {
  auto* tensor = exported<Managed>(reinterpret_cast<PyArrayObject*>(array));
  PyObject* capsule = PyCapsule_New(tensor, kCapsule<Managed>, [](PyObject* c) {
    if (!PyCapsule_IsValid(c, kCapsule<Managed>)) return;  // taken
    auto* left = static_cast<Managed*>(PyCapsule_GetPointer(c, kCapsule<Managed>));
    left->deleter(left);
  });
  if (capsule == nullptr) {
    tensor->deleter(tensor);
    throw ErrorSet{};
  }
  return nb::steal(capsule);
}

// A result on its way to another library, which asks it for its memory.
struct Handover {
  nb::object array;
};

PyObject* in_library(PyObject* item, const Reader& library, PyObject* example) {
  nb::object array = nb::borrow(item);
  if (!PyArray_Check(item)) array = nb::steal(PyArray_FromScalar(item, nullptr));
  if (!array.is_valid()) throw ErrorSet{};
  if (library.api != nullptr) {
    void* made = nullptr;
    auto* tensor =
        exported<DLManagedTensorVersioned>(reinterpret_cast<PyArrayObject*>(array.ptr()));
    if (library.api->to_object(tensor, &made) != 0) throw ErrorSet{};
    return static_cast<PyObject*>(made);
  }
  const nb::object space = nb::steal(
      library.package == "torch" ? PyImport_ImportModule("torch")
                                 : PyObject_CallMethod(example, "__array_namespace__", nullptr));
  if (!space.is_valid()) throw ErrorSet{};
  const nb::object handover = nb::cast(Handover{std::move(array)});
  PyObject* made = PyObject_CallMethod(space.ptr(), "from_dlpack", "O", handover.ptr());
  if (made == nullptr) throw ErrorSet{};
  return made;
}

// ---- Calls -------------------------------------------------------------------------------------

// How to read what is neither NumPy's nor a number nor fixed while tracing; null for all others.
const Reader* foreign_reader(PyObject* object) {
  const PyTypeObject* const type = Py_TYPE(object);
  if (type == &PyArray_Type || type == &PyFloat_Type || type == &PyLong_Type ||
      type == &PyBool_Type || type == &PyUnicode_Type || type == &PyTuple_Type || object == Py_None)
    return nullptr;
  // These have a buffer or attributes of arrays.
  if (PyArray_Check(object) || PyArray_IsScalar(object, Generic) || PyLong_Check(object) ||
      PyFloat_Check(object) || PyBytes_Check(object) || PyType_Check(object) ||
      PyFunction_Check(object))
    return nullptr;
  return reader_of(object);
}

}  // namespace

bool any_foreign(PyObject* const* args, size_t count, PyObject* keywords) {
  const size_t named = keywords == nullptr ? 0 : static_cast<size_t>(PyTuple_GET_SIZE(keywords));
  for (size_t i = 0; i < count + named; ++i) {
    if (foreign_reader(args[i]) != nullptr) return true;
    if (i < count || !PyTuple_Check(args[i])) continue;
    PyObject** const items = &PyTuple_GET_ITEM(args[i], 0);  // of out=
    if (std::any_of(items, items + PyTuple_GET_SIZE(args[i]), foreign_reader)) return true;
  }
  return false;
}

bool Adopted::is_outs(size_t value) const {
  return value >= count_ && PyTuple_Check(values_[value]) &&
         PyUnicode_CompareWithASCIIString(
             PyTuple_GET_ITEM(keywords_, static_cast<Py_ssize_t>(value - count_)), "out") == 0;
}

std::string Adopted::describe(Place place) const {
  if (place.item >= 0) return "out[" + std::to_string(place.item) + "] of " + describe_kernel(k_);
  if (place.value < count_) return describe_argument(k_, place.value);
  PyObject* const name = PyTuple_GET_ITEM(keywords_, static_cast<Py_ssize_t>(place.value - count_));
  for (size_t p = 0; p < k_.parameters.size(); ++p)
    if (PyUnicode_Compare(k_.parameters[p].name.ptr(), name) == 0) return describe_argument(k_, p);
  return std::string(utf8(name)) + " of " + describe_kernel(k_);
}

// One more value of the call: all arrays are of one library, numbers stand beside any.
void Adopted::meet(PyObject* object, Place place) {
  const Reader* reader = foreign_reader(object);
  if (reader == nullptr &&
      (!PyArray_Check(object) || PyArray_NDIM(reinterpret_cast<PyArrayObject*>(object)) == 0))
    return;
  if (reader != nullptr && !reader->imports) reader = nullptr;
  if (example_ != nullptr) {
    const bool same = reader == nullptr || library_ == nullptr
                          ? reader == library_
                          : reader->package == library_->package;
    const bool beside_mlx = (reader == nullptr && of_mlx()) ||
                            (library_ == nullptr && reader != nullptr && reader->package == "mlx");
    if (!same && !beside_mlx) {
      const std::string first = describe(example_place_);
      throw_launch_error(
          first.substr(0, first.find(" of kernel")) + " is a " + text_of_type(example_) + ", " +
              describe(place) + " a " + text_of_type(object),
          {"a call takes the arrays of one library and gives back that library's; numbers and 0-d "
           "NumPy arrays may stand beside them",
           "hint: np.from_dlpack, torch.from_dlpack and jax.numpy.from_dlpack convert without a "
           "copy"});
    }
    if (reader == nullptr || library_ != nullptr) return;
  }
  library_ = reader;
  example_ = object;
  example_place_ = place;
}

Adopted::Adopted(const KernelState& k, PyObject* const* args, size_t count, PyObject* keywords)
    : k_(k), count_(count), keywords_(keywords) {
  const size_t named = keywords == nullptr ? 0 : static_cast<size_t>(PyTuple_GET_SIZE(keywords));
  values_.assign(args, args + count + named);
  views_.reserve(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) {
    if (is_outs(i))
      for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(values_[i]); ++n)
        meet(PyTuple_GET_ITEM(values_[i], n), {i, n});
    else
      meet(values_[i], {i});
  }
}

bool Adopted::of_mlx() const { return library_ != nullptr && library_->package == "mlx"; }

// Borrowed.
PyObject* Adopted::view_of(PyObject* object, Place place, bool own_arrays) {
  const Reader* reader = foreign_reader(object);
  if (reader == nullptr || (own_arrays && reader->package == "mlx")) return object;
  for (const View& v : views_)
    if (v.theirs == object) return v.array.ptr();
  views_.push_back({object, read_foreign(object, {*this, place}, *reader)});
  return views_.back().array.ptr();
}

void Adopted::read(bool own_arrays) {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!is_outs(i)) {
      values_[i] = view_of(values_[i], {i}, own_arrays);
      continue;
    }
    PyObject* const theirs = values_[i];
    outs_ = nb::steal(PyTuple_New(PyTuple_GET_SIZE(theirs)));
    if (!outs_.is_valid()) throw ErrorSet{};
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(theirs); ++n) {
      PyObject* const array = view_of(PyTuple_GET_ITEM(theirs, n), {i, n}, own_arrays);
      Py_INCREF(array);
      PyTuple_SET_ITEM(outs_.ptr(), n, array);
    }
    values_[i] = outs_.ptr();
  }
}

// A new reference.
PyObject* Adopted::one_given_back(PyObject* item) const {
  for (const View& v : views_)
    if (v.array.ptr() == item) return nb::borrow(v.theirs).release().ptr();
  bool passed = std::find(values_.begin(), values_.end(), item) != values_.end();
  for (Py_ssize_t n = 0; outs_.is_valid() && n < PyTuple_GET_SIZE(outs_.ptr()); ++n)
    passed = passed || PyTuple_GET_ITEM(outs_.ptr(), n) == item;
  if (library_ != nullptr && !passed && (PyArray_Check(item) || PyArray_IsScalar(item, Generic)))
    return in_library(item, *library_, example_);
  return nb::borrow(item).release().ptr();
}

PyObject* Adopted::give_back(PyObject* result) const {
  const nb::object owned = nb::steal(result);
  if (result == nullptr) return nullptr;
  const bool tuple = PyTuple_CheckExact(result);
  if (!tuple && !PyList_CheckExact(result)) return one_given_back(result);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(result);
  const nb::object items = nb::steal(tuple ? PyTuple_New(n) : PyList_New(n));
  if (!items.is_valid()) throw ErrorSet{};
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* const item = one_given_back(PySequence_Fast_GET_ITEM(result, i));
    if (tuple)
      PyTuple_SET_ITEM(items.ptr(), i, item);
    else
      PyList_SET_ITEM(items.ptr(), i, item);
  }
  return nb::borrow(items).release().ptr();
}

PyObject* call_foreign(KernelObject* self, PyObject* const* args, size_t count,
                       PyObject* keywords) {
  const KernelState& k = *self->state;
  Adopted adopted(k, args, count, keywords);
  if (adopted.of_mlx()) {
    const backend::Backend* named = named_backend_for(k, bind(k, args, count, keywords));
    if (const backend::Backend* own = own_arrays_backend(named)) {
      adopted.read(true);
      return adopted.give_back(
          call_on_own_arrays(self, bind(k, adopted.values(), count, keywords), *own));
    }
  }
  adopted.read(false);
  return adopted.give_back(
      self->vectorcall(reinterpret_cast<PyObject*>(self), adopted.values(), count, keywords));
}

void bind_foreign(nb::module_& m) {
  // NumPy's arrays do the same, but for the types that NumPy does not know.
  nb::class_<Handover>(m, "_Handover", "A result on its way to another library.")
      .def("__dlpack__",
           [](const Handover& h, nb::args, nb::kwargs options) {
             const nb::object version =
                 options.contains("max_version") ? nb::object(options["max_version"]) : nb::none();
             try {
               return version.is_none() || nb::cast<int>(version[0]) < 1
                          ? exported_capsule<DLManagedTensor>(h.array.ptr())
                          : exported_capsule<DLManagedTensorVersioned>(h.array.ptr());
             } catch (const ErrorSet&) {
               throw nb::python_error();
             }
           })
      .def("__dlpack_device__", [](const Handover&) { return nb::make_tuple(int{kDLCPU}, 0); });
}

}  // namespace picokernel::python
