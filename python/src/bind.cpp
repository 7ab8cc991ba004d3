// A call with something unusual about it: keywords, defaults, constants, captures that changed, a
// first call.
#include <algorithm>

#include "automatic.h"
#include "foreign.h"
#include "own_arrays.h"

namespace picokernel::python {

std::string describe_kernel(const KernelState& k) {
  std::string file = k.place.file.substr(k.place.file.rfind('/') + 1);
  return "kernel '" + k.name + "' (" + file + ":" + std::to_string(k.place.line) + ")";
}

const char* utf8(PyObject* text) {
  const char* s = PyUnicode_AsUTF8(text);
  if (s == nullptr) throw ErrorSet{};
  return s;
}

namespace {

std::string list_parameters(const KernelState& k) {
  std::string text;
  for (const Parameter& p : k.parameters)
    text += (text.empty() ? "" : ", ") + std::string(utf8(p.name.ptr()));
  return text;
}

}  // namespace

std::string describe_argument(const KernelState& k, size_t i) {
  return "argument " + std::to_string(i + 1) + " '" + utf8(k.parameters[i].name.ptr()) + "' of " +
         describe_kernel(k);
}

Bound bind(const KernelState& k, PyObject* const* args, size_t count, PyObject* keywords) {
  const size_t total = k.parameters.size(), positional = total - k.keyword_only;
  Bound b;
  b.values.resize(total, nullptr);
  if (count > positional)
    throw_launch_error(describe_kernel(k) + " takes " + std::to_string(positional) +
                           " positional arguments, " + std::to_string(count) + " were given",
                       {"parameters: " + list_parameters(k)});
  std::copy_n(args, count, b.values.begin());
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GET_ITEM(keywords, i);
    PyObject* const value = args[count + static_cast<size_t>(i)];
    const auto p = std::find_if(k.parameters.begin(), k.parameters.end(), [&](const Parameter& x) {
      return PyUnicode_Compare(x.name.ptr(), name) == 0;
    });
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
      throw_launch_error(
          describe_kernel(k) + " has no parameter '" + utf8(name) + "'",
          {"parameters: " + list_parameters(k) + "; options of every call: out, backend"});
    }
  }
  for (size_t i = 0; i < total; ++i) {
    if (b.values[i] != nullptr) continue;
    b.values[i] = k.parameters[i].fallback.ptr();
    if (b.values[i] == nullptr)
      throw_launch_error(describe_kernel(k) + " misses argument " + std::to_string(i + 1) + " '" +
                             utf8(k.parameters[i].name.ptr()) + "'",
                         {"parameters: " + list_parameters(k)});
  }
  return b;
}

const backend::Backend* named_backend_for(const KernelState& k, const Bound& b) {
  if (b.backend == nullptr) return named_backend_of(k);
  if (!PyUnicode_Check(b.backend))
    throw_launch_error(std::string("backend= is a ") + Py_TYPE(b.backend)->tp_name,
                       {"it takes a backend's name"});
  return &backend_named(utf8(b.backend));
}

const backend::Backend& backend_for(const KernelState& k, const Bound& b) {
  return b.backend == nullptr ? backend_of(k) : *named_backend_for(k, b);
}

void remember(KernelState& k, Entry* entry) noexcept {
  Captures& captures = *entry->fixed->captures;
  auto& recent = captures.recent;
  auto end = std::find(recent.begin(), recent.end(), entry);
  if (end == recent.end()) --end;
  std::move_backward(recent.begin(), end, end + 1);
  recent[0] = entry;
  entry->fixed->last_use = ++k.clock;
  std::swap(k.captures[0],
            *std::ranges::find(k.captures, &captures, &std::unique_ptr<Captures>::get));
}

namespace {

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
    if (PyArray_Check(o.ptr()) &&
        PyArray_ResolveWritebackIfCopy(reinterpret_cast<PyArrayObject*>(o.ptr())) < 0)
      throw ErrorSet{};
}

}  // namespace

PyObject* call_slowly(KernelObject* self, PyObject* const* args, size_t count, PyObject* keywords) {
  KernelState& k = *self->state;
  if (k.kernel == nullptr) throw_launch_error("this kernel was never initialised");
  const size_t named = keywords == nullptr ? 0 : static_cast<size_t>(PyTuple_GET_SIZE(keywords));
  if (is_inline(args, count + named)) return call_inline(self, args, count, keywords);
  if (named == 0)
    if (PyObject* result = call_like_before_on_own_arrays(self, args, count)) return result;
  if (count <= k.parameters.size() && any_foreign(args, count, keywords))
    return call_foreign(self, args, count, keywords);
  const Bound b = bind(k, args, count, keywords);
  const backend::Backend& named_backend = backend_for(k, b);
  Chosen chosen{&named_backend, {}};
  if (&named_backend == &automatic_backend) chosen = choose(self, args, count, keywords);
  Planned p = plan_call(self, b, *chosen.backend);
  std::shared_ptr<Automatic> seen;  // a first call compiles: there is nothing to learn from it
  if (chosen.choice.is_valid()) {
    std::shared_ptr<Automatic>& automatic = p.entry->automatic;
    if (automatic != nullptr && automatic->is_of(chosen.choice)) {
      seen = automatic;
    } else {
      automatic = std::make_shared<Automatic>(std::move(chosen.choice));
      if (trace::enabled()) automatic->note(*p.entry);
    }
  }
  if (k.plain_backend == nullptr && special.load(std::memory_order_relaxed) == 0 &&
      b.backend == nullptr)
    k.plain_backend = &named_backend;
  remember(k, p.entry);
  const auto launch = [&] {
    return run(*p.entry, p.args, p.objects.data(), p.outs, p.out_objects.data());
  };
  PyObject* result = seen != nullptr ? seen->run(*p.entry, launch) : launch();
  if (result == nullptr) return nullptr;
  const nb::object owned = nb::steal(result);
  resolve_writebacks(p);
  if (p.kept.empty()) return owned.inc_ref().ptr();
  // The user's own objects, not what stood for them.
  std::vector<PyObject*> originals = p.objects;
  for (size_t i = 0, n = 0; i < b.values.size(); ++i)
    if (!is_constant(k, i, b.values[i])) originals[n++] = b.values[i];
  // Fresh results live in what `run` gave, numbers of rank 0 as other objects than it made.
  const Note& note = *p.entry->note;
  for (size_t i = 0; i < note.slots.size(); ++i)
    if (note.slots[i] >= 0)
      p.out_objects[static_cast<size_t>(note.slots[i])] =
          note.kind == Note::Kind::value ? owned.ptr()
          : note.kind == Note::Kind::tuple
              ? PyTuple_GET_ITEM(owned.ptr(), static_cast<Py_ssize_t>(i))
              : PyList_GET_ITEM(owned.ptr(), static_cast<Py_ssize_t>(i));
  if (b.out != nullptr && !PyTuple_Check(b.out)) p.out_objects[0] = b.out;
  if (b.out != nullptr && PyTuple_Check(b.out))
    for (size_t i = 0; i < p.outs.size(); ++i)
      if (PyObject* out = PyTuple_GET_ITEM(b.out, static_cast<Py_ssize_t>(i)); out != Py_None)
        p.out_objects[i] = out;
  if (b.out == nullptr && !note.hands_back_argument) return owned.inc_ref().ptr();
  return results(note, originals.data(), p.out_objects.data(), false);
}

}  // namespace picokernel::python
