// A call with something unusual about it: keywords, defaults, constants, captures that changed, a first call. It ends
// in the plan that later calls of the kind find at once.
#include <algorithm>
#include <optional>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "driver/backends.h"
#include "frontend/tracer.h"
#include "ir/text.h"
#include "kernel_object.h"
#include "plan_view.h"
#include "support/check.h"

namespace picokernel::python {

namespace {

PyObject* retrace_signal = nullptr;  // raised to start a trace again with more arguments fixed or hidden

// What the trace in progress on this thread may add to.
struct TraceContext {
  KernelState* kernel = nullptr;
  FixedState* fixed = nullptr;
};
thread_local TraceContext tracing;

std::string describe_kernel(const KernelState& k) {
  std::string file = k.place.file.substr(k.place.file.rfind('/') + 1);
  return "kernel '" + k.name + "' (" + file + ":" + std::to_string(k.place.line) + ")";
}

const char* utf8(PyObject* text) {
  const char* s = PyUnicode_AsUTF8(text);
  if (s == nullptr) throw ErrorSet{};
  return s;
}

std::string list_parameters(const KernelState& k) {
  std::string text;
  for (const Parameter& p : k.parameters) text += (text.empty() ? "" : ", ") + std::string(utf8(p.name));
  return text;
}

std::string describe_argument(const KernelState& k, size_t i) {
  return "argument " + std::to_string(i + 1) + " '" + utf8(k.parameters[i].name) + "' of " + describe_kernel(k);
}

// The arguments of a call, one per parameter, and its options. Borrowed from the call, but for what `kept` holds.
struct Bound {
  std::vector<PyObject*> values;
  PyObject* out = nullptr;
  PyObject* backend = nullptr;
  std::vector<nb::object> kept;
};

Bound bind(const KernelState& k, PyObject* const* args, size_t count, PyObject* keywords) {
  const size_t total = k.parameters.size(), positional = total - k.keyword_only;
  Bound b;
  b.values.resize(total, nullptr);
  if (count > positional)
    throw_launch_error(describe_kernel(k) + " takes " + std::to_string(positional) + " positional arguments, " +
                           std::to_string(count) + " were given",
                       {"parameters: " + list_parameters(k)});
  std::copy_n(args, count, b.values.begin());
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GET_ITEM(keywords, i);
    PyObject* const value = args[count + static_cast<size_t>(i)];
    const auto p = std::find_if(k.parameters.begin(), k.parameters.end(),
                                [&](const Parameter& x) { return PyUnicode_Compare(x.name, name) == 0; });
    if (p != k.parameters.end()) {
      PyObject*& slot = b.values[static_cast<size_t>(p - k.parameters.begin())];
      if (slot != nullptr)
        throw_launch_error(describe_kernel(k) + " got argument '" + utf8(name) + "' twice",
                           {"parameters: " + list_parameters(k)});
      slot = value;
    } else if (PyUnicode_CompareWithASCIIString(name, "out") == 0) {
      b.out = value == Py_None ? nullptr : value;
    } else if (PyUnicode_CompareWithASCIIString(name, "backend") == 0) {
      b.backend = value == Py_None ? nullptr : value;
    } else {
      throw_launch_error(describe_kernel(k) + " has no parameter '" + utf8(name) + "'",
                         {"parameters: " + list_parameters(k) + "; options of every call: out, backend"});
    }
  }
  for (size_t i = 0; i < total; ++i) {
    if (b.values[i] != nullptr) continue;
    b.values[i] = k.parameters[i].fallback;
    if (b.values[i] == nullptr)
      throw_launch_error(describe_kernel(k) + " misses argument " + std::to_string(i + 1) + " '" +
                             utf8(k.parameters[i].name) + "'",
                         {"parameters: " + list_parameters(k)});
  }
  return b;
}

// ---- Captures and constants --------------------------------------------------------------------------------------

bool equal_numbers(PyObject* a, PyObject* b) noexcept {
  if (a == nullptr || b == nullptr || Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
  }
  return (PyLong_CheckExact(a) || PyUnicode_CheckExact(a)) && PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

// Equal numbers and texts in other objects are no change.
bool renew_equal(KernelState& k) noexcept {
  nb::object kept;
  for (Watch& w : k.watches) {
    PyObject* const now = w.current(kept);
    if (now == w.value) continue;
    if (!equal_numbers(now, w.value)) return false;
    Py_INCREF(now);
    Py_SETREF(w.value, now);
  }
  return true;
}

// Finds out what the function captures, again whenever something of that was bound to another object.
void walk_captures(KernelState& k) {
  PyObject* walk = own_attribute("picokernel.captures", "captures");
  if (walk == nullptr) throw ErrorSet{};
  const nb::object absent = nb::borrow(own_attribute("picokernel.captures", "absent"));
  const nb::object found = nb::steal(PyObject_CallOneArg(walk, k.roots));
  if (!found.is_valid()) throw ErrorSet{};
  std::vector<Watch> watches;
  for (const nb::handle item : nb::borrow<nb::list>(found[0])) {
    Watch w;
    w.container = nb::object(item[0]).release().ptr();
    nb::object name = item[1], value = item[2];
    w.kind = PyDict_Check(w.container) ? Watch::Kind::dict
             : PyCell_Check(w.container) ? Watch::Kind::cell
                                         : Watch::Kind::attribute;
    w.name = name.is_none() ? nullptr : name.release().ptr();
    w.value = value.is(absent) ? nullptr : value.release().ptr();
    w.shown = nb::cast<std::string>(item[3]);
    watches.push_back(std::move(w));
  }
  std::swap(watches, k.watches);
  k.captured_arrays = nb::cast<std::vector<size_t>>(found[2]);
  Py_XSETREF(k.captured_key, nb::object(found[1]).release().ptr());
  k.recent = {};
  k.walked = true;
  for (const Watch& w : watches) {
    Py_XDECREF(w.container);
    Py_XDECREF(w.name);
    Py_XDECREF(w.value);
  }
}

// Functions among the arguments capture too.
void add_roots(KernelState& k, const nb::list& constants) {
  PyObject* functions_in = own_attribute("picokernel.captures", "functions_in");
  if (functions_in == nullptr) throw ErrorSet{};
  const nb::object functions = nb::steal(PyObject_CallOneArg(functions_in, constants.ptr()));
  if (!functions.is_valid()) throw ErrorSet{};
  for (const nb::handle function : functions) {
    bool known = false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(k.roots); ++i) known |= PyList_GET_ITEM(k.roots, i) == function.ptr();
    if (known) continue;
    if (PyList_Append(k.roots, function.ptr()) != 0) throw ErrorSet{};
    k.walked = false;
  }
}

bool is_constant(const KernelState& k, size_t i, PyObject* value) {
  driver::Arg unused;
  return k.parameters[i].is_static || read_argument(value, unused) == Read::constant;
}

FixedState& fixed_state(KernelState& k, const Bound& b) {
  nb::list constants, key;
  for (size_t i = 0; i < b.values.size(); ++i) {
    if (!is_constant(k, i, b.values[i])) continue;
    PyObject* freeze = own_attribute("picokernel.captures", "freeze");
    if (freeze == nullptr) throw ErrorSet{};
    constants.append(nb::borrow(b.values[i]));
    key.append(i);
    key.append(nb::borrow(freeze)(nb::borrow(b.values[i]), describe_argument(k, i)));
  }
  if (constants.size() != 0) add_roots(k, constants);
  if (!k.walked || (!captures_unchanged(k) && !renew_equal(k))) walk_captures(k);
  const nb::tuple whole = nb::make_tuple(nb::tuple(key), nb::borrow(k.captured_key));
  const nb::object index = nb::borrow(PyDict_GetItemWithError(k.keys, whole.ptr()));
  if (index.is_valid()) return *k.fixed[nb::cast<size_t>(index)];
  if (PyErr_Occurred()) throw ErrorSet{};
  auto state = std::make_unique<FixedState>();
  state->key = k.fixed.size();
  for (const size_t w : k.captured_arrays) state->hidden.push_back({.watch = w});
  if (PyDict_SetItem(k.keys, whole.ptr(), nb::int_(k.fixed.size()).ptr()) != 0) throw ErrorSet{};
  k.fixed.push_back(std::move(state));
  return *k.fixed.back();
}

// ---- The trace ---------------------------------------------------------------------------------------------------

// What one planning hands to the trace and back.
struct Planning {
  KernelObject* self;
  const Bound& bound;
  FixedState& fixed;
  const std::vector<PyObject*>& hidden_objects;
  bool outs_given;
};

void check_outs(const KernelState& k, const Note& note) {
  if (note.kind == Note::Kind::nothing)
    throw_launch_error(describe_kernel(k) + " returns nothing, so out= has nowhere to go",
                       {"hint: pass the array as the argument that the kernel stores into"});
  if (note.hands_back_argument)
    throw_launch_error(describe_kernel(k) + " returns one of its arguments itself, so out= is not possible",
                       {"hint: pass the array as that argument"});
}

class TraceScope {
 public:
  TraceScope(KernelState& k, FixedState& fixed) : outer_(tracing) {
    tracing = {&k, &fixed};
    ++trace_depth;
    special.fetch_add(1, std::memory_order_relaxed);
  }
  ~TraceScope() {
    special.fetch_sub(1, std::memory_order_relaxed);
    --trace_depth;
    tracing = outer_;
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  TraceContext outer_;
};

// Runs the Python function on traced arrays, with the interpreter lock held. Python's errors leave as ErrorSet.
driver::Traced trace_function(const Planning& p, std::span<const frontend::ArgSpec> specs) {
  KernelState& k = *p.self->state;
  const TraceScope scope(k, p.fixed);
  try {
    auto* tracer = new frontend::Tracer(k.name, specs, k.place);
    const nb::object tracer_object = nb::cast(tracer, nb::rv_policy::take_ownership);
    nb::list values, hidden;
    size_t n = 0;
    for (size_t i = 0; i < p.bound.values.size(); ++i) {
      if (is_constant(k, i, p.bound.values[i]))
        values.append(nb::borrow(p.bound.values[i]));
      else
        values.append(tracer->argument(n++));
    }
    for (size_t i = 0; i < p.hidden_objects.size(); ++i)
      hidden.append(nb::make_tuple(nb::borrow(p.hidden_objects[i]), tracer->argument(n++),
                                   p.fixed.hidden[i].constant != nullptr));
    const nb::object result = nb::borrow(reinterpret_cast<PyObject*>(p.self)).attr("_trace")(tracer_object, values, hidden);
    auto note = std::make_shared<Note>();
    note->kind = static_cast<Note::Kind>(nb::cast<int>(result[1]));
    note->slots = nb::cast<std::vector<int>>(result[2]);
    note->hands_back_argument = std::any_of(note->slots.begin(), note->slots.end(), [](int s) { return s < 0; });
    if (p.outs_given) check_outs(k, *note);
    return {.graph = std::move(nb::cast<ir::Module&>(result[0])), .note = note};
  } catch (nb::python_error& e) {
    e.restore();
    throw ErrorSet{};
  }
}

// ---- Planning ----------------------------------------------------------------------------------------------------

// A planned call: everything that `run` takes.
struct Planned {
  Entry* entry = nullptr;
  std::vector<driver::Arg> args, outs;
  std::vector<PyObject*> objects, out_objects;
  std::vector<nb::object> kept;

  Planned() = default;
  Planned(Planned&&) = default;
  ~Planned() {
    // What failed is not written back.
    for (const nb::object& o : kept)
      if (o.is_valid() && PyArray_Check(o.ptr())) PyArray_DiscardWritebackIfCopy(reinterpret_cast<PyArrayObject*>(o.ptr()));
  }
};

std::vector<Layout> layouts_of(std::span<const driver::Arg> args) {
  std::vector<Layout> layouts;
  for (const driver::Arg& a : args) {
    Layout layout{.arg = a,
                  .shape = std::vector<int64_t>(a.shape, a.shape + a.rank),
                  .strides = std::vector<int64_t>(a.strides, a.strides + a.rank)};
    layout.arg.data = nullptr;
    layout.arg.name = nullptr;
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

Entry& entry_for(KernelState& k, const driver::Plan& plan, const backend::Backend& backend, FixedState& fixed,
                 std::vector<PyObject*> constants, std::span<const driver::Arg> args) {
  for (PyObject* o : constants) Py_XINCREF(o);
  std::unique_ptr<Entry>& entry = k.entries[{&plan, &fixed}];
  if (entry != nullptr) {
    // Equal constants may be other objects now; calls compare pointers.
    std::swap(entry->constants, constants);
    for (PyObject* o : constants) Py_XDECREF(o);
    return *entry;
  }
  entry = std::make_unique<Entry>();
  entry->constants = std::move(constants);
  entry->plan = &plan;
  entry->backend = &backend;
  entry->fixed = &fixed;
  entry->note = static_cast<const Note*>(plan.note());
  // Below some microseconds of work, handing the lock over costs more than it gives.
  constexpr int64_t kLongBytes = int64_t{512} << 10;
  entry->release_lock = plan.bytes() >= kLongBytes;
  entry->layouts = layouts_of(args);
  for (const driver::Arg& a : args) {
    uint64_t n = 1;
    for (size_t d = 0; d < a.rank; ++d) n *= static_cast<uint64_t>(a.shape[d]);
    entry->elements = std::max(entry->elements, n);
  }
  entry->span = trace::intern(k.name);
  entry->trace_backend = trace::intern_backend(backend.name);
  for (size_t i = 0; i < args.size(); ++i)
    if (backend.name == "mlx" && std::any_of(args[i].strides, args[i].strides + args[i].rank, [](int64_t s) { return s < 0; }))
      entry->reversed.push_back(i);
  if (prints_source(backend)) entry->source = open_source(k, *entry);
  entry->writes_out_only = entry->note->kind == Note::Kind::value && !entry->note->hands_back_argument &&
                           entry->source == nullptr && !entry->release_lock;
  return *entry;
}

void read_outs(const KernelState& k, const Bound& b, Planned& p) {
  if (b.out == nullptr) return;
  const bool many = PyTuple_Check(b.out);
  const Py_ssize_t n = many ? PyTuple_GET_SIZE(b.out) : 1;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* const out = many ? PyTuple_GET_ITEM(b.out, i) : b.out;
    driver::Arg arg{.name = "out"};
    if (out == Py_None) {
      p.outs.push_back(arg);
      p.out_objects.push_back(nullptr);
      continue;
    }
    PyObject* plain = out;
    if (read_array(out, arg) != Read::done) {
      const std::string what = many ? "out[" + std::to_string(i) + "]" : "out";
      if (!PyArray_Check(out))
        throw_launch_error(what + " of " + describe_kernel(k) + " is a " + Py_TYPE(out)->tp_name,
                           {"out= takes a NumPy array, or a tuple of arrays and None"});
      plain = plain_argument(out, what + " of " + describe_kernel(k), true);
      if (plain == nullptr) throw ErrorSet{};
      p.kept.push_back(nb::steal(plain));
      read_array(plain, arg);
    }
    p.outs.push_back(arg);
    p.out_objects.push_back(plain);
  }
}

// Reads the arguments and plans their call.
Planned plan_call(KernelObject* self, const Bound& b, const backend::Backend& backend) {
  KernelState& k = *self->state;
  constexpr int kMaxTraces = 16;  // each trace that starts again has fixed or added an argument
  for (int attempt = 0;; ++attempt) {
    Planned p;
    FixedState& fixed = fixed_state(k, b);
    std::vector<PyObject*> constants;
    for (size_t i = 0; i < b.values.size(); ++i) {
      PyObject* value = b.values[i];
      if (is_constant(k, i, value)) {
        constants.resize(b.values.size(), nullptr);
        constants[i] = value;
        continue;
      }
      driver::Arg arg;
      if (read_argument(value, arg) != Read::done) {
        value = plain_argument(value, describe_argument(k, i), true);
        if (value == nullptr) throw ErrorSet{};
        p.kept.push_back(nb::steal(value));
        if (read_argument(value, arg) != Read::done) PK_UNREACHABLE("a plain argument is difficult");
      }
      arg.name = utf8(k.parameters[i].name);
      p.args.push_back(arg);
      p.objects.push_back(value);
    }
    const size_t own = p.objects.size();
    for (const Hidden& h : fixed.hidden) {
      PyObject* value = h.constant != nullptr ? h.constant : k.watches[h.watch].value;
      const std::string what = h.constant != nullptr ? "an array made in " + describe_kernel(k)
                                                     : "the captured array '" + k.watches[h.watch].shown + "'";
      driver::Arg arg;
      if (value == nullptr || read_array(value, arg) != Read::done) {
        value = plain_argument(value, what, false);
        if (value == nullptr) throw ErrorSet{};
        p.kept.push_back(nb::steal(value));
        read_array(value, arg);
      } else {
        p.kept.push_back(nb::borrow(value));
      }
      arg.name = h.constant != nullptr ? "constant" : k.watches[h.watch].shown.c_str();
      p.args.push_back(arg);
      p.objects.push_back(value);
    }
    read_outs(k, b, p);

    const std::vector<PyObject*> hidden(p.objects.begin() + static_cast<ptrdiff_t>(own), p.objects.end());
    const Planning planning{self, b, fixed, hidden, b.out != nullptr};
    const auto plan_with = [&](std::span<const driver::Arg> outs) -> const driver::Plan& {
      // Traces of other threads may hold the driver's lock and wait for the interpreter's.
      const nb::gil_scoped_release unlocked;
      return k.kernel->plan(p.args, outs, backend, fixed.key, [&](std::span<const frontend::ArgSpec> specs) {
        const nb::gil_scoped_acquire locked;
        return trace_function(planning, specs);
      });
    };
    const driver::Plan* plan = nullptr;
    try {
      const auto missing = [](const PyObject* out) { return out == nullptr; };
      if (std::any_of(p.out_objects.begin(), p.out_objects.end(), missing)) {
        const std::span<const driver::OutputSpec> specs = plan_with({}).outputs();
        for (size_t i = 0; i < std::min(specs.size(), p.out_objects.size()); ++i) {
          if (p.out_objects[i] != nullptr) continue;
          p.out_objects[i] = new_output(specs[i]);
          if (p.out_objects[i] == nullptr) throw ErrorSet{};
          p.kept.push_back(nb::steal(p.out_objects[i]));
          read_array(p.out_objects[i], p.outs[i]);
        }
      }
      plan = &plan_with(p.outs);
    } catch (const ErrorSet&) {
      if (!PyErr_ExceptionMatches(retrace_signal) || attempt == kMaxTraces) throw;
      PyErr_Clear();
      continue;
    }
    p.entry = &entry_for(k, *plan, backend, fixed, std::move(constants), p.args);
    if (b.out != nullptr) check_outs(k, *p.entry->note);
    p.outs.resize(plan->outputs().size());
    p.out_objects.resize(plan->outputs().size() + 1, nullptr);  // never empty
    for (size_t i = 0; i < p.objects.size(); ++i)
      if (!plan->written()[i] && PyArray_Check(p.objects[i]))
        PyArray_DiscardWritebackIfCopy(reinterpret_cast<PyArrayObject*>(p.objects[i]));
    return p;
  }
}

const backend::Backend& backend_for(KernelState& k, const Bound& b) {
  if (b.backend == nullptr) return backend_of(k);
  if (!PyUnicode_Check(b.backend))
    throw_launch_error(std::string("backend= is a ") + Py_TYPE(b.backend)->tp_name, {"it takes a backend's name"});
  return backend_named(utf8(b.backend));
}

void remember(KernelState& k, Entry* entry) {
  auto end = std::find(k.recent.begin(), k.recent.end(), entry);
  if (end == k.recent.end()) --end;
  std::move_backward(k.recent.begin(), end, end + 1);
  k.recent[0] = entry;
}

// Inside a trace, kernels are part of the one that is traced.
bool is_inline(PyObject* const* args, size_t count) {
  if (trace_depth != 0) return true;
  PyObject* modules = PyImport_GetModuleDict();
  if (PyDict_GetItemString(modules, "picokernel.traced") == nullptr) return false;
  PyObject* traced = own_attribute("picokernel.traced", "TracedArray");
  for (size_t i = 0; i < count; ++i)
    if (reinterpret_cast<PyObject*>(Py_TYPE(args[i])) == traced) return true;
  return false;
}

PyObject* call_inline(KernelObject* self, PyObject* const* args, size_t count, PyObject* keywords) {
  const nb::object kernel = nb::borrow(reinterpret_cast<PyObject*>(self));
  const nb::object inlined = kernel.attr("inline"), function = kernel.attr("__wrapped__");
  std::vector<PyObject*> all{function.ptr()};
  const size_t named = keywords == nullptr ? 0 : static_cast<size_t>(PyTuple_GET_SIZE(keywords));
  all.insert(all.end(), args, args + count + named);
  return PyObject_Vectorcall(inlined.ptr(), all.data(), count + 1, keywords);
}

void resolve_writebacks(const Planned& p) {
  for (const nb::object& o : p.kept)
    if (PyArray_Check(o.ptr()) && PyArray_ResolveWritebackIfCopy(reinterpret_cast<PyArrayObject*>(o.ptr())) < 0) throw ErrorSet{};
}

}  // namespace

PyObject* call_slowly(KernelObject* self, PyObject* const* args, size_t count, PyObject* keywords) {
  KernelState& k = *self->state;
  if (k.kernel == nullptr) throw_launch_error("this kernel was never initialised");
  const size_t named = keywords == nullptr ? 0 : static_cast<size_t>(PyTuple_GET_SIZE(keywords));
  if (is_inline(args, count + named)) return call_inline(self, args, count, keywords);
  const Bound b = bind(k, args, count, keywords);
  const backend::Backend& backend = backend_for(k, b);
  Planned p = plan_call(self, b, backend);
  if (k.plain_backend == nullptr && special.load(std::memory_order_relaxed) == 0 && b.backend == nullptr)
    k.plain_backend = &backend;
  remember(k, p.entry);
  PyObject* result = run(*p.entry, p.args, p.objects.data(), p.outs, p.out_objects.data());
  if (result == nullptr) return nullptr;
  const nb::object owned = nb::steal(result);
  resolve_writebacks(p);
  if (p.kept.empty()) return owned.inc_ref().ptr();
  // The user's own objects, not what stood for them.
  std::vector<PyObject*> originals = p.objects;
  for (size_t i = 0, n = 0; i < b.values.size(); ++i)
    if (!is_constant(k, i, b.values[i])) originals[n++] = b.values[i];
  if (b.out != nullptr && !PyTuple_Check(b.out)) p.out_objects[0] = b.out;
  if (b.out != nullptr && PyTuple_Check(b.out))
    for (size_t i = 0; i < p.outs.size(); ++i)
      if (PyObject* out = PyTuple_GET_ITEM(b.out, static_cast<Py_ssize_t>(i)); out != Py_None) p.out_objects[i] = out;
  if (b.out == nullptr && !p.entry->note->hands_back_argument) return owned.inc_ref().ptr();
  return results(*p.entry->note, originals.data(), p.out_objects.data(), false);
}

// ---- Methods -----------------------------------------------------------------------------------------------------

int init_kernel(PyObject* object, PyObject* args, PyObject*) noexcept {
  auto* self = reinterpret_cast<KernelObject*>(object);
  try {
    PyObject *name, *names, *defaults, *place, *backend;
    Py_ssize_t keyword_only = 0;
    if (!PyArg_ParseTuple(args, "UO!O!nO!O", &name, &PyList_Type, &names, &PyList_Type, &defaults, &keyword_only,
                          &PyTuple_Type, &place, &backend))
      return -1;
    KernelState& k = *self->state;
    if (k.kernel != nullptr) throw_launch_error("this kernel is initialised already");
    k.name = utf8(name);
    k.place = to_location(place);
    k.keyword_only = static_cast<size_t>(keyword_only);
    std::vector<std::string> texts;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names); ++i) {
      Parameter p{.name = PyList_GET_ITEM(names, i)};
      Py_INCREF(p.name);
      PyUnicode_InternInPlace(&p.name);
      PyObject* fallback = PyList_GET_ITEM(defaults, i);  // () or (value,)
      if (PyTuple_GET_SIZE(fallback) != 0) p.fallback = nb::borrow(PyTuple_GET_ITEM(fallback, 0)).release().ptr();
      k.parameters.push_back(p);
      texts.emplace_back(utf8(p.name));
    }
    if (backend != Py_None) {
      if (!PyUnicode_Check(backend))
        throw_launch_error(std::string("backend= is a ") + Py_TYPE(backend)->tp_name, {"it takes a backend's name"});
      if (driver::find_backend(utf8(backend)) == nullptr) backend_named(utf8(backend));  // throws
      k.backend_name = utf8(backend);
    }
    k.roots = PyList_New(0);
    k.keys = PyDict_New();
    if (k.roots == nullptr || k.keys == nullptr || PyList_Append(k.roots, object) != 0) return -1;
    k.kernel = std::make_unique<driver::Kernel>(k.name, texts, k.place);
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

namespace {

template <class F>
PyObject* guarded(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

// _plan(backend or None, args, kwargs): the plan of a call that is not made; any backend, live or not.
PyObject* method_plan(PyObject* object, PyObject* args) noexcept {
  return guarded([&]() -> PyObject* {
    PyObject *backend_name, *positional, *named;
    if (!PyArg_ParseTuple(args, "OO!O!", &backend_name, &PyTuple_Type, &positional, &PyDict_Type, &named)) return nullptr;
    auto* self = reinterpret_cast<KernelObject*>(object);
    std::vector<PyObject*> all;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positional); ++i) all.push_back(PyTuple_GET_ITEM(positional, i));
    const auto count = all.size();
    const nb::object names = nb::steal(PySequence_Tuple(named));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.ptr()); ++i)
      all.push_back(PyDict_GetItem(named, PyTuple_GET_ITEM(names.ptr(), i)));
    const Bound b = bind(*self->state, all.data(), count, names.ptr());
    const backend::Backend* backend =
        backend_name == Py_None ? &backend_for(*self->state, b) : &backend_to_look_at(utf8(backend_name));
    const Planned p = plan_call(self, b, *backend);
    return nb::cast(PlanView{p.entry->plan, backend, nb::borrow(object)}).release().ptr();
  });
}

// _last_plan(backend or None): the same for the arguments of the last call; None if there was none.
PyObject* method_last_plan(PyObject* object, PyObject* backend_name) noexcept {
  return guarded([&]() -> PyObject* {
    auto* self = reinterpret_cast<KernelObject*>(object);
    KernelState& k = *self->state;
    const Entry* last = k.recent[0];
    if (last == nullptr) Py_RETURN_NONE;
    const backend::Backend* backend = backend_name == Py_None ? last->backend : &backend_to_look_at(utf8(backend_name));
    const driver::Plan* plan = last->plan;
    if (backend != last->backend) {
      std::vector<driver::Arg> args;
      for (const Layout& layout : last->layouts) {
        driver::Arg arg = layout.arg;
        arg.shape = layout.shape.data();
        arg.strides = layout.strides.data();
        args.push_back(arg);
      }
      // The trace is known: this does not call back.
      const nb::gil_scoped_release unlocked;
      plan = &k.kernel->plan(args, {}, *backend, last->fixed->key,
                             [&](std::span<const frontend::ArgSpec>) -> driver::Traced {
                               throw LaunchError("call the kernel again before asking for its source");
                             });
    }
    return nb::cast(PlanView{plan, backend, nb::borrow(object)}).release().ptr();
  });
}

// _add_constant(array): the trace in progress starts again with this array as one more argument.
PyObject* method_add_constant(PyObject*, PyObject* array) noexcept {
  return guarded([&]() -> PyObject* {
    if (tracing.fixed == nullptr) throw_launch_error("no trace is in progress");
    Py_INCREF(array);
    tracing.fixed->hidden.push_back({.constant = array});
    PyErr_SetNone(retrace_signal);
    return nullptr;
  });
}

// _make_static(parameter numbers): the trace in progress starts again with these numbers fixed; does nothing if none.
PyObject* method_make_static(PyObject*, PyObject* numbers) noexcept {
  return guarded([&]() -> PyObject* {
    bool any = false;
    for (const nb::handle n : nb::borrow(numbers)) {
      if (tracing.kernel == nullptr) throw_launch_error("no trace is in progress");
      tracing.kernel->parameters.at(nb::cast<size_t>(n)).is_static = any = true;
    }
    if (!any) Py_RETURN_NONE;
    PyErr_SetNone(retrace_signal);
    return nullptr;
  });
}

PyObject* get_parameters(PyObject* object, void*) noexcept {
  return guarded([&] {
    nb::list names;
    for (const Parameter& p : reinterpret_cast<KernelObject*>(object)->state->parameters)
      names.append(nb::borrow(p.name));
    return nb::tuple(names).release().ptr();
  });
}

PyObject* get_default_backend(PyObject* object, void*) noexcept {
  const std::string& name = reinterpret_cast<KernelObject*>(object)->state->backend_name;
  if (name.empty()) Py_RETURN_NONE;
  return PyUnicode_FromString(name.c_str());
}

}  // namespace

PyMethodDef kernel_methods[] = {{"_plan", method_plan, METH_VARARGS, nullptr},
                                {"_last_plan", method_last_plan, METH_O, nullptr},
                                {"_add_constant", method_add_constant, METH_O, nullptr},
                                {"_make_static", method_make_static, METH_O, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyGetSetDef kernel_properties[] = {
    {"parameters", get_parameters, nullptr, "Names of the parameters, in order.", nullptr},
    {"default_backend", get_default_backend, nullptr, "The backend named by the decorator, or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

void init_binding(nb::module_& m) {
  retrace_signal = PyErr_NewException("picokernel._core.Retrace", PyExc_BaseException, nullptr);
  m.attr("Retrace") = nb::handle(retrace_signal);
}

}  // namespace picokernel::python
