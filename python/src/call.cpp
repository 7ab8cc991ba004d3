// The call path: a call like one before costs reading its arguments, comparing them with that
// call's plan, and the launch. Written against the C API by hand; everything unusual goes to
// bind.cpp.
#include <algorithm>
#include <utility>

#include "automatic.h"
#include "kernel_object.h"
#include "mlx_lending.h"

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
    if (entry.constants[i].is_valid() && !entry.constants[i].is(args[i])) return false;
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
bool read_hidden(const FixedState& fixed, driver::Arg* out, PyObject** objects,
                 size_t& n) noexcept {
  for (const Hidden& h : fixed.hidden) {
    PyObject* const object = fixed.object(h);
    if (n == kMaxArgs || object == nullptr || read_array(object, out[n]) != Read::done)
      return false;
    out[n].name = nullptr;
    objects[n++] = object;
  }
  return true;
}

size_t count_constants(const Entry& entry) noexcept {
  size_t n = 0;
  for (const nb::object& o : entry.constants) n += o.is_valid();
  return n;
}

// What a call brought. Not initialised: reading fills what is used.
struct Call {
  alignas(driver::Arg) unsigned char value_bytes[kMaxArgs * sizeof(driver::Arg)];
  alignas(driver::Arg) unsigned char out_bytes[kMaxOuts * sizeof(driver::Arg)];
  PyObject* objects[kMaxArgs];
  size_t own, constants, out_count;
  size_t n;  // with hidden arguments

  driver::Arg* values() noexcept { return reinterpret_cast<driver::Arg*>(value_bytes); }
  driver::Arg* outs() noexcept { return reinterpret_cast<driver::Arg*>(out_bytes); }
};

// The entry of a call like this one, which becomes the first of these captures, or null.
inline Entry* find(Captures& captures, const backend::Backend* backend, PyObject* const* args,
                   Call& call) noexcept {
  auto& recent = captures.recent;
  for (size_t i = 0; i < recent.size() && recent[i] != nullptr; ++i) {
    Entry& entry = *recent[i];
    if (entry.backend != backend &&
        !(backend == &automatic_backend && entry.automatic != nullptr && entry.automatic->stands()))
      continue;
    if (call.constants != 0 || !entry.constants.empty()) {
      if (count_constants(entry) != call.constants || !same_constants(entry, args)) continue;
    }
    call.n = call.own;
    if (!entry.fixed->hidden.empty() &&
        !read_hidden(*entry.fixed, call.values(), call.objects, call.n))
      continue;
    if (!entry.plan->matches({call.values(), call.n}, {call.outs(), call.out_count})) continue;
    if (i != 0) std::rotate(recent.begin(), recent.begin() + i, recent.begin() + i + 1);
    return &entry;
  }
  return nullptr;
}

// Signal handlers run during launches, and may call this kernel and bind its globals anew.
class Kept {
 public:
  Kept(Entry& entry, const Call& call) noexcept : pin_(entry.fixed->uses), call_(call) {
    for (size_t i = call.own; i < call.n; ++i) Py_INCREF(call.objects[i]);
  }
  ~Kept() {
    for (size_t i = call_.own; i < call_.n; ++i) Py_DECREF(call_.objects[i]);
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

 private:
  Pin pin_;
  const Call& call_;
};

// Runs a call of that entry.
inline PyObject* launch(Entry& entry, Call& call, PyObject* out) {
  const std::span<const driver::Arg> values(call.values(), call.n);
  if (out != nullptr && entry.writes_out_only && !trace::enabled()) [[likely]] {
    const Kept kept(entry, call);
    entry.plan->launch(values, {call.outs(), 1});
    Py_INCREF(out);
    return out;
  }
  const size_t outputs = entry.plan->outputs().size();
  if (outputs > kMaxOuts) return Py_NotImplemented;
  PyObject* out_objects[kMaxOuts] = {out};
  for (size_t i = call.out_count; i < outputs; ++i) call.outs()[i] = {};
  return run(entry, values, call.objects, {call.outs(), outputs}, out_objects);
}

// The same for calls with backend="auto", some of which are timed.
inline PyObject* launch_for(const backend::Backend* backend, Entry& entry, Call& call,
                            PyObject* out) {
  if (backend != &automatic_backend) [[likely]]
    return launch(entry, call, out);
  const Pin pin(entry.fixed->uses);
  const std::shared_ptr<Automatic> automatic = entry.automatic;
  return automatic->run(entry, [&] { return launch(entry, call, out); });
}

// Captures change back: a call like one that was not the last one. Its captures become the first.
[[gnu::noinline]] PyObject* call_like_earlier(KernelState& k, const backend::Backend* backend,
                                              PyObject* const* args, Call& call, PyObject* out) {
  std::vector<nb::object> replaced;  // dropped after the call: that may run Python code
  for (const bool renewing : {false, true})
    for (size_t i = 0; i < k.captures.size(); ++i) {
      Captures& c = *k.captures[i];
      if (renewing ? !renew(c, replaced) : !c.unchanged()) continue;
      Entry* const entry = find(c, backend, args, call);
      if (entry == nullptr) continue;
      std::swap(k.captures[0], k.captures[i]);
      entry->fixed->last_use = ++k.clock;
      return launch_for(backend, *entry, call, out);
    }
  return Py_NotImplemented;
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
  if (count != k.parameters.size() || count > kMaxArgs || k.captures.empty())
    return Py_NotImplemented;
  const backend::Backend* backend = nullptr;
  if (special.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    if (trace_depth != 0) return Py_NotImplemented;
    backend = &backend_of(k);
  } else {
    backend = k.plain_backend;
  }

  Call call;
  call.own = call.constants = call.out_count = 0;
  if (!read_all(k, args, count, call.values(), call.objects, call.own, call.constants))
    return Py_NotImplemented;
  if (out != nullptr) {
    if (read_array(out, call.outs()[0]) != Read::done) return Py_NotImplemented;
    call.outs()[0].name = nullptr;
    call.out_count = 1;
  }
  Captures& front = *k.captures[0];
  if (front.unchanged()) [[likely]]
    if (Entry* const entry = find(front, backend, args, call))
      return launch_for(backend, *entry, call, out);
  return call_like_earlier(k, backend, args, call, out);
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

static uint64_t bytes_of(const driver::OutputSpec& spec) {
  uint64_t bytes = size_of(spec.dtype);
  for (const int64_t size : spec.shape) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

PyObject* run(Entry& entry, std::span<const driver::Arg> args, PyObject* const* objects,
              std::span<driver::Arg> outs, PyObject** out_objects) {
  const Pin pin(entry.fixed->uses);
  // Owned: outputs made here, and arguments that others could drop: captured ones when their name
  // is bound anew, any of them while Python code runs or the lock is free.
  std::vector<nb::object> kept;
  if (entry.source != nullptr || entry.release_lock || !entry.fixed->hidden.empty()) {
    kept.reserve(args.size() + outs.size());
    for (size_t i = 0; i < args.size(); ++i) kept.push_back(nb::borrow(objects[i]));
  }
  if (entry.source != nullptr && trace::enabled()) prepare_twin(entry);
  const trace::KernelSpan call_span(trace::Category::call, entry.span, entry.work,
                                    entry.trace_backend);
  const bool scalars = out_objects[0] == nullptr;
  const std::span<const driver::OutputSpec> specs = entry.plan->outputs();
  for (size_t i = 0; i < specs.size(); ++i) {
    if (out_objects[i] != nullptr) continue;
    static const trace::NameId name = trace::intern("output");
    const trace::Span span(trace::Category::alloc, name, trace::enabled() ? bytes_of(specs[i]) : 0);
    out_objects[i] = new_output(specs[i]);
    if (out_objects[i] == nullptr) return nullptr;
    kept.push_back(nb::steal(out_objects[i]));
    read_array(out_objects[i], outs[i]);
  }
  if (entry.source != nullptr) {
    std::vector<PyObject*> given(objects, objects + args.size());
    std::vector<size_t> copies = entry.plan->inputs_to_copy(args, outs);
    copies.insert(copies.end(), entry.reversed.begin(), entry.reversed.end());
    for (const size_t i : copies) {
      static const trace::NameId name = trace::intern("copy of an argument");
      auto* const original = reinterpret_cast<PyArrayObject*>(given[i]);
      const trace::Span span(trace::Category::alloc, name,
                             static_cast<uint64_t>(PyArray_NBYTES(original)));
      PyObject* copy = PyArray_NewCopy(original, NPY_CORDER);
      if (copy == nullptr) return nullptr;
      kept.push_back(nb::steal(copy));
      given[i] = copy;
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
    if (entry.backend->name == "mlx") lend_to_mlx(entry, args, outs, given, kept);
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
  return k->visit([&](PyObject* o) { return visit(o, arg); });
}

int clear(PyObject* self) {
  auto* object = reinterpret_cast<KernelObject*>(self);
  // A kernel that is still called during collection of its cycle finds an empty state.
  if (object->state != nullptr) delete std::exchange(object->state, new (std::nothrow) KernelState);
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
