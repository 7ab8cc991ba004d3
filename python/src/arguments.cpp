// Reading NumPy arrays and numbers, refusing what kernels do not take, and allocating outputs.
#include "arguments.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include <numpy/arrayscalars.h>

#include "core.h"
#include "runtime/buffer.h"

namespace picokernel::python {

namespace {

// bfloat16 has a number of its own in each process, which ml_dtypes gets from NumPy.
constexpr int kUserDefined = -1;
constexpr int kNumbers[] = {NPY_BOOL,     NPY_INT8,    NPY_INT16,   NPY_INT32,     NPY_INT64,
                            NPY_UINT8,    NPY_UINT16,  NPY_UINT32,  NPY_UINT64,    NPY_FLOAT16,
                            kUserDefined, NPY_FLOAT32, NPY_FLOAT64, NPY_COMPLEX64, NPY_COMPLEX128};
static_assert(std::size(kNumbers) == kDTypeCount);

constexpr uint8_t kNone = 0xff;

// NPY_LONG and NPY_LONGLONG are different numbers of one type.
constexpr auto kTable = [] {
  std::array<uint8_t, 32> table{};
  for (uint8_t& t : table) t = kNone;
  for (size_t i = 0; i < kDTypeCount; ++i)
    if (kNumbers[i] != kUserDefined)
      table[static_cast<size_t>(kNumbers[i])] = static_cast<uint8_t>(i);
  const auto same = [&](int number, size_t bytes, bool sign) {
    for (size_t i = 0; i < kDTypeCount; ++i) {
      const auto t = static_cast<DType>(i);
      if (is_integer(t) && size_of(t) == bytes && is_signed(t) == sign)
        table[static_cast<size_t>(number)] = static_cast<uint8_t>(i);
    }
  };
  same(NPY_INT, sizeof(int), true);
  same(NPY_UINT, sizeof(int), false);
  same(NPY_LONG, sizeof(long), true);
  same(NPY_ULONG, sizeof(long), false);
  same(NPY_LONGLONG, sizeof(long long), true);
  same(NPY_ULONGLONG, sizeof(long long), false);
  return table;
}();

static_assert(sizeof(npy_intp) == sizeof(int64_t));

// ml_dtypes is imported when the first bfloat16 is met or made; its type numbers start here.
std::atomic<int> bfloat16_number{kUserDefined};

int import_bfloat16() noexcept {
  int number = bfloat16_number.load(std::memory_order_relaxed);
  if (number != kUserDefined) return number;
  const nb::object module = nb::steal(PyImport_ImportModule("ml_dtypes"));
  const nb::object type = module.is_valid()
                              ? nb::steal(PyObject_GetAttrString(module.ptr(), "bfloat16"))
                              : nb::object();
  PyArray_Descr* descr = type.is_valid() ? PyArray_DescrFromTypeObject(type.ptr()) : nullptr;
  if (descr == nullptr) {
    PyErr_Clear();
    return kUserDefined;
  }
  number = descr->type_num;
  Py_DECREF(descr);
  bfloat16_number.store(number, std::memory_order_relaxed);
  return number;
}

std::string supported_types() {
  std::string text;
  for (size_t i = 0; i < kDTypeCount; ++i)
    text += (i == 0 ? "" : ", ") + std::string(numpy_name(static_cast<DType>(i)));
  return text;
}

std::string text_of(PyObject* object) {
  const nb::object text = nb::steal(PyObject_Str(object));
  if (!text.is_valid()) {
    PyErr_Clear();
    return "?";
  }
  return nb::cast<std::string>(text);
}

// Of simt.to_device: a subclass whose arrays behave as NumPy's do. Set once, while it is imported.
PyTypeObject* device_array = nullptr;

bool is_plain_subclass(PyObject* object) {
  // Maps of files and records behave as arrays do; masked arrays, matrices and units do not.
  if (PyArray_CheckExact(object) || Py_TYPE(object) == device_array) return true;
  const std::string name = Py_TYPE(object)->tp_name;
  return name == "numpy.memmap" || name == "memmap" || name == "numpy.rec.recarray" ||
         name == "recarray";
}

[[noreturn]] void refuse_dtype(PyArray_Descr* descr, const std::string& what) {
  const std::string name = text_of(reinterpret_cast<PyObject*>(descr));
  if (dtype_of_number(descr->type_num) && !is_native(descr))
    throw_launch_error(what + " has dtype " + name + ", which is in foreign byte order",
                       {"kernels take arrays in this machine's byte order",
                        "hint: convert it by x.astype(x.dtype.newbyteorder('='))"});
  std::string hint = "hint: convert it by astype";
  if (descr->type_num == NPY_OBJECT)
    hint = "hint: give the array a number type: np.asarray(x, dtype=np.float64)";
  throw_launch_error(what + " has dtype " + name, {"supported: " + supported_types(), hint});
}

}  // namespace

std::optional<DType> dtype_of_number(int type_number) noexcept {
  if (type_number >= NPY_USERDEF)
    return type_number == import_bfloat16() ? std::optional(DType::bf16) : std::nullopt;
  if (type_number < 0 || type_number >= static_cast<int>(kTable.size())) return std::nullopt;
  const uint8_t t = kTable[static_cast<size_t>(type_number)];
  return t == kNone ? std::nullopt : std::optional(static_cast<DType>(t));
}

int number_of_dtype(DType dtype) noexcept {
  return dtype == DType::bf16 ? import_bfloat16() : kNumbers[static_cast<size_t>(dtype)];
}

namespace {

// Elements need not be aligned, but stand whole elements apart.
bool whole_strides(const PyArrayObject_fields* array, DType dtype) noexcept {
  if (array->flags & NPY_ARRAY_ALIGNED) [[likely]]
    return true;
  const auto size = static_cast<npy_intp>(size_of(real_of(dtype)));
  return std::all_of(array->strides, array->strides + array->nd,
                     [&](npy_intp stride) { return stride % size == 0; });
}

}  // namespace

void read_as_array(PyTypeObject* subclass) noexcept { device_array = subclass; }

Read read_array(PyObject* object, driver::Arg& arg) noexcept {
  if (!PyArray_CheckExact(object) && Py_TYPE(object) != device_array) return Read::difficult;
  const auto* array = reinterpret_cast<PyArrayObject_fields*>(object);
  const auto type = static_cast<unsigned>(array->descr->type_num);
  uint8_t dtype = kNone;
  if (type < kTable.size()) [[likely]]
    dtype = kTable[type];
  else if (const auto user = dtype_of_number(array->descr->type_num))
    dtype = static_cast<uint8_t>(*user);
  if (dtype == kNone || !is_native(array->descr) ||
      !whole_strides(array, static_cast<DType>(dtype)))
    return Read::difficult;
  arg.kind = driver::Arg::Kind::array;
  arg.dtype = static_cast<DType>(dtype);
  arg.weak = false;
  arg.writeable = (array->flags & NPY_ARRAY_WRITEABLE) != 0;
  arg.rank = static_cast<uint8_t>(array->nd);
  arg.data = array->data;
  arg.shape = reinterpret_cast<const int64_t*>(array->dimensions);
  arg.strides = reinterpret_cast<const int64_t*>(array->strides);
  arg.bits = 0;
  return Read::done;
}

bool read_number(PyObject* object, driver::Arg& arg) noexcept {
  arg.kind = driver::Arg::Kind::scalar;
  arg.weak = true;
  arg.writeable = false;
  arg.rank = 0;
  arg.data = nullptr;
  arg.shape = arg.strides = nullptr;
  if (PyFloat_CheckExact(object)) {
    arg.dtype = DType::f64;
    arg.bits = std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(object));
    return true;
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  arg.dtype = DType::i64;
  arg.bits = static_cast<uint64_t>(value);
  if (overflow == 0) return true;
  if (overflow < 0) return false;
  arg.dtype = DType::u64;
  arg.bits = PyLong_AsUnsignedLongLong(object);
  if (arg.bits != ~uint64_t{0} || PyErr_Occurred() == nullptr) return true;
  PyErr_Clear();
  return false;
}

namespace {

// A complex number is an array of rank 0 in the object itself.
void read_complex(void* data, DType dtype, bool weak, driver::Arg& arg) noexcept {
  arg.kind = driver::Arg::Kind::array;
  arg.dtype = dtype;
  arg.weak = weak;
  arg.writeable = false;
  arg.rank = 0;
  arg.data = data;
  arg.shape = arg.strides = nullptr;
  arg.bits = 0;
}

}  // namespace

Read read_argument(PyObject* object, driver::Arg& arg) noexcept {
  if (PyArray_CheckExact(object) || Py_TYPE(object) == device_array) return read_array(object, arg);
  if (PyFloat_CheckExact(object) || PyLong_CheckExact(object))
    return read_number(object, arg) ? Read::done : Read::difficult;
  if (PyComplex_CheckExact(object)) {
    read_complex(&reinterpret_cast<PyComplexObject*>(object)->cval, DType::c128, true, arg);
    return Read::done;
  }
  if (PyArray_IsScalar(object, CFloat)) {
    read_complex(&PyArrayScalar_VAL(object, CFloat), DType::c64, false, arg);
    return Read::done;
  }
  if (PyArray_IsScalar(object, CDouble)) {
    read_complex(&PyArrayScalar_VAL(object, CDouble), DType::c128, false, arg);
    return Read::done;
  }
  if (PyArray_IsScalar(object, Generic)) {
    PyArray_Descr* descr = PyArray_DescrFromScalar(object);
    if (descr == nullptr) {
      PyErr_Clear();
      return Read::difficult;
    }
    const std::optional<DType> dtype = dtype_of_number(descr->type_num);
    Py_DECREF(descr);
    if (!dtype) return Read::difficult;
    arg.kind = driver::Arg::Kind::scalar;
    arg.dtype = *dtype;
    arg.weak = false;
    arg.writeable = false;
    arg.rank = 0;
    arg.data = nullptr;
    arg.shape = arg.strides = nullptr;
    uint64_t raw = 0;
    if (*dtype == DType::bf16) {  // of types from outside NumPy gives the address
      const void* value = nullptr;
      PyArray_ScalarAsCtype(object, &value);
      std::memcpy(&raw, value, size_of(*dtype));
    } else {
      PyArray_ScalarAsCtype(object, &raw);
    }
    arg.bits = raw;
    if (is_signed(*dtype)) {
      // Integers are kept sign-extended.
      const unsigned shift = 64 - 8 * static_cast<unsigned>(size_of(*dtype));
      arg.bits = static_cast<uint64_t>(static_cast<int64_t>(raw << shift) >> shift);
    }
    return Read::done;
  }
  return PyArray_Check(object) || (PyLong_Check(object) && !PyBool_Check(object)) ||
                 PyFloat_Check(object)
             ? Read::difficult
             : Read::constant;
}

PyObject* plain_argument(PyObject* object, const std::string& what, bool may_write) {
  driver::Arg number;
  if (PyLong_Check(object) && read_number(object, number))  // of a subclass
    return number.dtype == DType::u64 ? PyLong_FromUnsignedLongLong(number.bits)
                                      : PyLong_FromLongLong(static_cast<long long>(number.bits));
  if (PyLong_Check(object))
    throw_launch_error(
        what + " is the integer " + text_of(object) + ", which fits neither int64 nor uint64",
        {"hint: pass a float if rounding is fine"});
  if (PyFloat_Check(object)) return PyFloat_FromDouble(PyFloat_AS_DOUBLE(object));
  if (!PyArray_Check(object)) {
    const nb::object descr =
        nb::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(object)));
    refuse_dtype(reinterpret_cast<PyArray_Descr*>(descr.ptr()), what);
  }
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  if (!is_plain_subclass(object))
    throw_launch_error(what + " is a " + Py_TYPE(object)->tp_name +
                           ", a kind of array that computes in its own way",
                       {"hint: pass np.asarray(x)"});
  PyArray_Descr* descr = PyArray_DESCR(array);
  if (!dtype_of_number(descr->type_num) || !is_native(descr)) refuse_dtype(descr, what);
  if (whole_strides(reinterpret_cast<PyArrayObject_fields*>(array),
                    *dtype_of_number(descr->type_num)))
    return PyArray_View(array, nullptr, &PyArray_Type);
  const bool write_back = may_write && PyArray_ISWRITEABLE(array);
  Py_INCREF(descr);
  PyObject* copy = PyArray_FromArray(
      array, descr,
      NPY_ARRAY_ALIGNED | NPY_ARRAY_ENSUREARRAY | (write_back ? NPY_ARRAY_WRITEBACKIFCOPY : 0));
  if (copy != nullptr && !write_back && !PyArray_ISWRITEABLE(array))
    PyArray_CLEARFLAGS(reinterpret_cast<PyArrayObject*>(copy), NPY_ARRAY_WRITEABLE);
  return copy;
}

PyObject* as_pairs(PyObject* object) noexcept {
  PyObject* const whole = PyArray_FROM_O(object);
  if (whole == nullptr) return nullptr;
  auto* array = reinterpret_cast<PyArrayObject*>(whole);
  const int rank = PyArray_NDIM(array);
  const int part = PyArray_TYPE(array) == NPY_COMPLEX64 ? NPY_FLOAT32 : NPY_FLOAT64;
  if (rank == NPY_MAXDIMS) {
    Py_DECREF(whole);
    PyErr_SetString(PyExc_ValueError, "complex arrays of 64 dimensions are not supported");
    return nullptr;
  }
  npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
  std::copy_n(PyArray_DIMS(array), rank, shape);
  std::copy_n(PyArray_STRIDES(array), rank, strides);
  shape[rank] = 2;
  strides[rank] = PyArray_ITEMSIZE(array) / 2;
  PyObject* pairs = PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(part), rank + 1,
                                         shape, strides, PyArray_DATA(array),
                                         PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE, nullptr);
  if (pairs == nullptr) {
    Py_DECREF(whole);
    return nullptr;
  }
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(pairs), whole) != 0) {
    Py_DECREF(pairs);
    return nullptr;
  }
  PyArray_UpdateFlags(reinterpret_cast<PyArrayObject*>(pairs),
                      NPY_ARRAY_ALIGNED | NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
  return pairs;
}

PyObject* new_output(const driver::OutputSpec& spec) noexcept {
  // Fresh pages cost more than most kernels; the pool keeps them. Small arrays are NumPy's own
  // business.
  constexpr size_t kPooled = size_t{1} << 20;
  PyArray_Descr* descr = PyArray_DescrFromType(number_of_dtype(spec.dtype));
  size_t bytes = size_of(spec.dtype);
  for (const int64_t n : spec.shape) bytes *= static_cast<size_t>(n);
  const auto* shape = reinterpret_cast<const npy_intp*>(spec.shape.data());
  const auto* strides = reinterpret_cast<const npy_intp*>(spec.strides.data());
  const int rank = static_cast<int>(spec.shape.size());
  if (bytes < kPooled)
    return PyArray_NewFromDescr(&PyArray_Type, descr, rank, shape, strides, nullptr, 0, nullptr);
  return new_pooled(descr, rank, shape, strides, bytes);
}

PyObject* new_pooled(PyArray_Descr* descr, int rank, const npy_intp* shape, const npy_intp* strides,
                     size_t bytes) noexcept {
  runtime::Buffer* buffer = nullptr;
  try {
    buffer = new runtime::Buffer(runtime::allocate(bytes));
  } catch (...) {
    Py_DECREF(descr);
    return PyErr_NoMemory();
  }
  PyObject* owner = PyCapsule_New(buffer, nullptr, [](PyObject* capsule) {
    delete static_cast<runtime::Buffer*>(PyCapsule_GetPointer(capsule, nullptr));
  });
  if (owner == nullptr) {
    delete buffer;
    Py_DECREF(descr);
    return nullptr;
  }
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descr, rank, shape, strides, buffer->data,
                                         NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED, nullptr);
  if (array == nullptr ||
      PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), owner) != 0) {
    if (array == nullptr) Py_DECREF(owner);  // SetBaseObject takes it even when it fails
    Py_XDECREF(array);
    return nullptr;
  }
  PyArray_UpdateFlags(reinterpret_cast<PyArrayObject*>(array),
                      NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
  return array;
}

}  // namespace picokernel::python
