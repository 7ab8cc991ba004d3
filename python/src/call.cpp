// The call path: a call like one before costs reading its arguments, comparing them with that
// call's plan, and the launch. Written against the C API by hand; everything unusual goes to
// bind.cpp.
#include <algorithm>
#include <utility>

#include "kernel_object.h"

namespace picokernel::python {

PyTypeObject* kernel_base_type = nullptr;
std::atomic<uint32_t> special{0};
thread_local int trace_depth = 0;

namespace {

constexpr size_t kMaxArgs = 12;  // hidden ones included; more take the slow path
constexpr size_t kMaxOuts = 4;

PyObject* out_keyword = nullptr;  // "out", interned

// MLX refuses such arrays.
bool has_negative_stride(const driver::Arg& arg) {
  return std::any_of(arg.strides, arg.strides + arg.rank, [](int64_t s) { return s < 0; });
}

// Lets other Python threads run meanwhile.
class Unlocked {
 public:
  explicit Unlocked(bool wanted) : state_(wanted ? PyEval_SaveThread() : nullptr) {}
  ~Unlocked() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

bool same_constants(const Entry& entry, PyObject* const* args) noexcept {
  for (size_t i = 0; i < entry.constants.size(); ++i)
    if (entry.constants[i] != nullptr && entry.constants[i] != args[i]) return false;
  return true;
}

// Reads positional arguments; false: something difficult. Constants are left for same_constants.
bool read_all(const KernelState& k, PyObject* const* args, size_t count, driver::Arg* out,
              PyObject** objects, size_t& n, size_t& constants) noexcept {
  for (size_t i = 0; i < count; ++i) {
    PyObject* const object = args[i];
    const Read read =
        is_fixed_number(k.parameters[i], object) ? Read::constant : read_argument(object, out[n]);
    if (read == Read::difficult) return false;
    if (read == Read::constant) {
      ++constants;
      continue;
    }
    out[n].name = nullptr;
    objects[n++] = object;
  }
  return true;
}

// Arguments that the user does not pass; objects are borrowed from what holds them.
bool read_hidden(const KernelState& k, const FixedState& fixed, driver::Arg* out,
                 PyObject** objects, size_t& n) noexcept {
  for (const Hidden& h : fixed.hidden) {
    PyObject* const object = h.constant != nullptr ? h.constant : k.watches[h.watch].value;
    if (n == kMaxArgs || object == nullptr || read_array(object, out[n]) != Read::done)
      return false;
    out[n].name = nullptr;
    objects[n++] = object;
  }
  return true;
}

size_t count_constants(const Entry& entry) noexcept {
  size_t n = 0;
  for (const PyObject* o : entry.constants) n += o != nullptr;
  return n;
}

// A new reference, null with an error set, or Py_NotImplemented: take the slow path.
PyObject* call_like_before(KernelObject* self, PyObject* const* args, size_t count,
                           PyObject* keywords) {
  KernelState& k = *self->state;
  PyObject* out = nullptr;
  if (keywords != nullptr && PyTuple_GET_SIZE(keywords) != 0) {
    if (PyTuple_GET_SIZE(keywords) != 1 || PyTuple_GET_ITEM(keywords, 0) != out_keyword)
      return Py_NotImplemented;
    out = args[count];
    if (!PyArray_CheckExact(out)) return Py_NotImplemented;
  }
  if (count != k.parameters.size() || count > kMaxArgs || k.recent[0] == nullptr)
    return Py_NotImplemented;
  const backend::Backend* backend = nullptr;
  if (special.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    if (trace_depth != 0) return Py_NotImplemented;
    backend = &backend_of(k);
  } else {
    backend = k.plain_backend;
  }
  if (!k.watches.empty() && !captures_unchanged(k)) return Py_NotImplemented;

  // Not initialised: reading fills what is used.
  alignas(driver::Arg) unsigned char value_bytes[kMaxArgs * sizeof(driver::Arg)];
  alignas(driver::Arg) unsigned char out_bytes[kMaxOuts * sizeof(driver::Arg)];
  auto* const values = reinterpret_cast<driver::Arg*>(value_bytes);
  auto* const outs = reinterpret_cast<driver::Arg*>(out_bytes);
  PyObject* objects[kMaxArgs];
  size_t n = 0, constants = 0;
  if (!read_all(k, args, count, values, objects, n, constants)) return Py_NotImplemented;
  PyObject* out_objects[kMaxOuts] = {};
  size_t out_count = 0;
  if (out != nullptr) {
    if (read_array(out, outs[0]) != Read::done) return Py_NotImplemented;
    outs[0].name = nullptr;
    out_objects[out_count++] = out;
  }

  const size_t own = n;
  for (size_t i = 0; i < KernelState::kRecent && k.recent[i] != nullptr; ++i) {
    Entry& entry = *k.recent[i];
    if (entry.backend != backend) continue;
    if (constants != 0 || !entry.constants.empty()) {
      if (count_constants(entry) != constants || !same_constants(entry, args)) continue;
    }
    n = own;
    if (!entry.fixed->hidden.empty() && !read_hidden(k, *entry.fixed, values, objects, n)) continue;
    if (!entry.plan->matches({values, n}, {outs, out_count})) continue;
    if (i != 0) {
      for (size_t j = i; j != 0; --j) k.recent[j] = k.recent[j - 1];
      k.recent[0] = &entry;
    }
    if (out_count != 0 && entry.writes_out_only && !trace::enabled()) [[likely]] {
      entry.plan->launch({values, n}, {outs, out_count});
      Py_INCREF(out);
      return out;
    }
    const size_t outputs = entry.plan->outputs().size();
    if (outputs > kMaxOuts) return Py_NotImplemented;
    for (; out_count < outputs; ++out_count) outs[out_count] = {};
    return run(entry, {values, n}, objects, {outs, outputs}, out_objects);
  }
  return Py_NotImplemented;
}

PyObject* call(PyObject* callable, PyObject* const* args, size_t nargsf,
               PyObject* keywords) noexcept {
  auto* self = reinterpret_cast<KernelObject*>(callable);
  const auto count = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  try {
    PyObject* result = call_like_before(self, args, count, keywords);
    if (result != Py_NotImplemented) [[likely]]
      return result;
    return call_slowly(self, args, count, keywords);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

}  // namespace

PyObject* run(Entry& entry, std::span<const driver::Arg> args, PyObject* const* objects,
              std::span<driver::Arg> outs, PyObject** out_objects) {
  // Owned: outputs made here, and arguments that others could drop: captured ones when their name
  // is bound anew, any of them while Python code runs or the lock is free.
  std::vector<nb::object> kept;
  if (entry.source != nullptr || entry.release_lock || !entry.fixed->hidden.empty()) {
    kept.reserve(args.size() + outs.size());
    for (size_t i = 0; i < args.size(); ++i) kept.push_back(nb::borrow(objects[i]));
  }
  if (entry.source != nullptr && !entry.twin_ready && trace::enabled()) prepare_twin(entry);
  const trace::Span call_span(trace::Category::call, entry.span, entry.elements,
                              entry.trace_backend);
  const bool scalars = out_objects[0] == nullptr;
  const std::span<const driver::OutputSpec> specs = entry.plan->outputs();
  for (size_t i = 0; i < specs.size(); ++i) {
    if (out_objects[i] != nullptr) continue;
    static const trace::NameId name = trace::intern("output");
    trace::Span span(trace::Category::alloc, name);
    out_objects[i] = new_output(specs[i]);
    if (out_objects[i] == nullptr) return nullptr;
    kept.push_back(nb::steal(out_objects[i]));
    read_array(out_objects[i], outs[i]);
    if (span.recording())
      span.set_arg(
          static_cast<uint64_t>(PyArray_NBYTES(reinterpret_cast<PyArrayObject*>(out_objects[i]))));
  }
  if (entry.source != nullptr) {
    std::vector<PyObject*> given(objects, objects + args.size());
    std::vector<size_t> copies = entry.plan->inputs_to_copy(args, outs);
    copies.insert(copies.end(), entry.reversed.begin(), entry.reversed.end());
    for (const size_t i : copies) {
      static const trace::NameId name = trace::intern("copy of an argument");
      trace::Span span(trace::Category::alloc, name);
      PyObject* copy = PyArray_NewCopy(reinterpret_cast<PyArrayObject*>(given[i]), NPY_CORDER);
      if (copy == nullptr) return nullptr;
      kept.push_back(nb::steal(copy));
      given[i] = copy;
      if (span.recording())
        span.set_arg(static_cast<uint64_t>(PyArray_NBYTES(reinterpret_cast<PyArrayObject*>(copy))));
    }
    std::vector<PyObject*> results(out_objects, out_objects + outs.size());
    std::vector<std::pair<PyObject*, PyObject*>> reversed;  // what is written, and its copy
    for (const size_t i : entry.reversed)
      if (entry.plan->written()[i]) reversed.emplace_back(objects[i], given[i]);
    for (size_t i = 0; i < outs.size(); ++i) {
      if (entry.backend->name != "mlx" || !has_negative_stride(outs[i])) continue;
      PyObject* copy = PyArray_NewLikeArray(reinterpret_cast<PyArrayObject*>(results[i]),
                                            NPY_CORDER, nullptr, 0);
      if (copy == nullptr) return nullptr;
      kept.push_back(nb::steal(copy));
      reversed.emplace_back(results[i], copy);
      results[i] = copy;
    }
    const auto take_apart = [&](std::vector<PyObject*>& list, std::span<const driver::Arg> seen) {
      for (size_t i = 0; i < seen.size(); ++i) {
        if (!is_complex(seen[i].dtype)) continue;
        list[i] = as_pairs(list[i]);
        if (list[i] == nullptr) return false;
        kept.push_back(nb::steal(list[i]));
      }
      return true;
    };
    if (!take_apart(given, args) || !take_apart(results, outs)) return nullptr;
    const nb::object nothing =
        nb::steal(run_source(entry, args, given.data(), results.data(), outs.size()));
    if (!nothing.is_valid()) return nullptr;
    for (const auto& [out, copy] : reversed)
      if (PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(out),
                           reinterpret_cast<PyArrayObject*>(copy)) < 0)
        return nullptr;
  } else {
    const Unlocked unlocked(entry.release_lock);
    entry.plan->launch(args, outs);
  }
  return results(*entry.note, objects, out_objects, scalars);
}

PyObject* results(const Note& note, PyObject* const* objects, PyObject* const* out_objects,
                  bool scalars) {
  const auto one = [&](int slot) -> PyObject* {
    PyObject* object = slot >= 0 ? out_objects[slot] : objects[-1 - slot];
    Py_INCREF(object);
    // As ufuncs do: a fresh 0-d result is a NumPy scalar.
    return slot >= 0 && scalars ? PyArray_Return(reinterpret_cast<PyArrayObject*>(object)) : object;
  };
  if (note.kind == Note::Kind::nothing) Py_RETURN_NONE;
  if (note.kind == Note::Kind::value) return one(note.slots[0]);
  const auto n = static_cast<Py_ssize_t>(note.slots.size());
  PyObject* sequence = note.kind == Note::Kind::tuple ? PyTuple_New(n) : PyList_New(n);
  if (sequence == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = one(note.slots[static_cast<size_t>(i)]);
    if (item == nullptr) {
      Py_DECREF(sequence);
      return nullptr;
    }
    if (note.kind == Note::Kind::tuple)
      PyTuple_SET_ITEM(sequence, i, item);
    else
      PyList_SET_ITEM(sequence, i, item);
  }
  return sequence;
}

namespace {

PyObject* new_kernel(PyTypeObject* type, PyObject*, PyObject*) noexcept {
  auto* self = reinterpret_cast<KernelObject*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->vectorcall = call;
  self->state = nullptr;
  try {
    self->state = new KernelState;
  } catch (...) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  return reinterpret_cast<PyObject*>(self);
}

}  // namespace

// Called by Kernel's __init__, which has looked at the function.
int init_kernel(PyObject* self, PyObject* args, PyObject* keywords) noexcept;
extern PyMethodDef kernel_methods[];
extern PyGetSetDef kernel_properties[];

namespace {

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const KernelState* k = reinterpret_cast<KernelObject*>(self)->state;
  if (k == nullptr) return 0;
  return k->visit([&](PyObject* o) { return o == nullptr ? 0 : visit(o, arg); });
}

int clear(PyObject* self) {
  auto* object = reinterpret_cast<KernelObject*>(self);
  KernelState* k = std::exchange(object->state, nullptr);
  if (k == nullptr) return 0;
  for (const auto& [artifact, source] : k->sources) close_source(source.get());
  std::vector<PyObject*> owned;
  k->visit([&](PyObject* o) {
    if (o != nullptr) owned.push_back(o);
    return 0;
  });
  for (const Parameter& p : k->parameters) Py_XDECREF(p.name);
  for (const Watch& w : k->watches) Py_XDECREF(w.name);
  // A kernel that is still called during collection of its cycle finds an empty state.
  object->state = new (std::nothrow) KernelState;
  delete k;
  for (PyObject* o : owned) Py_DECREF(o);
  return 0;
}

void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear(self);
  auto* object = reinterpret_cast<KernelObject*>(self);
  delete std::exchange(object->state, nullptr);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

}  // namespace

void bind_kernel(nb::module_& m) {
  out_keyword = PyUnicode_InternFromString("out");
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(KernelObject, vectorcall), READONLY, nullptr},
      {}};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_kernel)},
                         {Py_tp_init, reinterpret_cast<void*>(init_kernel)},
                         {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                         {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(clear)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                         {Py_tp_members, members},
                         {Py_tp_methods, kernel_methods},
                         {Py_tp_getset, kernel_properties},
                         {0, nullptr}};
  PyType_Spec spec{.name = "picokernel._core.KernelBase",
                   .basicsize = sizeof(KernelObject),
                   .itemsize = 0,
                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
                            Py_TPFLAGS_HAVE_VECTORCALL,
                   .slots = slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw nb::python_error();
  kernel_base_type = reinterpret_cast<PyTypeObject*>(type);
  m.attr("KernelBase") = nb::handle(type);

  // Before 3.12 a class made in Python does not inherit the flag. It inherits everything that the
  // flag promises: the offset of the vectorcall slot, and tp_call, unless it defines __call__.
  m.def("_use_vectorcall", [](nb::handle cls) {
    auto* t = reinterpret_cast<PyTypeObject*>(cls.ptr());
    if (!PyType_IsSubtype(t, kernel_base_type) || t->tp_call != PyVectorcall_Call ||
        t->tp_vectorcall_offset != kernel_base_type->tp_vectorcall_offset)
      throw nb::type_error("not a plain subclass of KernelBase");
    t->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    PyType_Modified(t);
  });
}

}  // namespace picokernel::python
