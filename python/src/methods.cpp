// Making a kernel object, and the methods that picokernel/kernel.py is built on.
#include <optional>

#include "automatic.h"
#include "driver/backends.h"
#include "driver/signature.h"
#include "foreign.h"
#include "own_arrays.h"
#include "plan_view.h"
#include "planning.h"

namespace picokernel::python {

int init_kernel(PyObject* object, PyObject* args, PyObject*) noexcept {
  auto* self = reinterpret_cast<KernelObject*>(object);
  try {
    PyObject *name, *names, *defaults, *place, *backend;
    Py_ssize_t keyword_only = 0;
    int fast = 0, fastmath = 0;
    if (!PyArg_ParseTuple(args, "UO!O!nO!Opp", &name, &PyList_Type, &names, &PyList_Type, &defaults,
                          &keyword_only, &PyTuple_Type, &place, &backend, &fast, &fastmath))
      return -1;
    KernelState& k = *self->state;
    if (k.kernel != nullptr) throw_launch_error("this kernel is initialised already");
    k.name = utf8(name);
    k.place = to_location(place);
    k.keyword_only = static_cast<size_t>(keyword_only);
    k.floats = {fast != 0 ? Accuracy::fast : Accuracy::strict, fastmath != 0};
    std::vector<std::string> texts;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names); ++i) {
      PyObject* interned = nb::borrow(PyList_GET_ITEM(names, i)).release().ptr();
      PyUnicode_InternInPlace(&interned);
      Parameter p{.name = nb::steal(interned), .fallback = {}};
      PyObject* fallback = PyList_GET_ITEM(defaults, i);  // () or (value,)
      if (PyTuple_GET_SIZE(fallback) != 0) p.fallback = nb::borrow(PyTuple_GET_ITEM(fallback, 0));
      texts.emplace_back(utf8(interned));
      k.parameters.push_back(std::move(p));
    }
    if (backend != Py_None) {
      if (!PyUnicode_Check(backend))
        throw_launch_error(std::string("backend= is a ") + Py_TYPE(backend)->tp_name,
                           {"it takes a backend's name"});
      if (driver::find_backend(utf8(backend)) == nullptr) backend_named(utf8(backend));  // throws
      k.backend_name = utf8(backend);
    }
    k.by_key = nb::dict();
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

// _plan(backend or None, args, kwargs): the plan of a call that is not made; any backend, live or
// not.
PyObject* method_plan(PyObject* object, PyObject* args) noexcept {
  return guarded([&]() -> PyObject* {
    PyObject *backend_name, *positional, *named;
    if (!PyArg_ParseTuple(args, "OO!O!", &backend_name, &PyTuple_Type, &positional, &PyDict_Type,
                          &named))
      return nullptr;
    auto* self = reinterpret_cast<KernelObject*>(object);
    std::vector<PyObject*> all;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positional); ++i)
      all.push_back(PyTuple_GET_ITEM(positional, i));
    const auto count = all.size();
    const nb::object names = nb::steal(PySequence_Tuple(named));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.ptr()); ++i)
      all.push_back(PyDict_GetItem(named, PyTuple_GET_ITEM(names.ptr(), i)));
    const KernelState& k = *self->state;
    Bound b = bind(k, all.data(), count, names.ptr());
    const backend::Backend* backend =
        backend_name == Py_None ? named_backend_for(k, b) : &backend_to_look_at(utf8(backend_name));
    std::optional<Adopted> adopted;
    if (any_foreign(all.data(), count, names.ptr())) {
      adopted.emplace(k, all.data(), count, names.ptr());
      if (adopted->of_mlx())
        if (const backend::Backend* own = own_arrays_backend(backend)) backend = own;
      adopted->read(backend != nullptr && backend->returns_results);
      b = bind(k, adopted->values(), count, names.ptr());
    }
    if (backend == nullptr) backend = &backend_of(k);
    if (backend == &automatic_backend)
      backend = choose(self, all.data(), count, names.ptr()).backend;
    const StandIns stand_ins(k, b);
    Planned p = plan_call(self, stand_ins.bound(), *backend, false);
    return nb::cast(PlanView{p.plan, backend, nb::borrow(object), std::move(p.pin)})
        .release()
        .ptr();
  });
}

// _last_plan(backend or None): the same for the arguments of the last call; None if there was none.
PyObject* method_last_plan(PyObject* object, PyObject* backend_name) noexcept {
  return guarded([&]() -> PyObject* {
    auto* self = reinterpret_cast<KernelObject*>(object);
    KernelState& k = *self->state;
    const Entry* last = k.front() != nullptr ? k.front()->recent[0] : nullptr;
    if (last == nullptr) Py_RETURN_NONE;
    Pin pin(last->fixed->uses);
    const driver::Plan* plan = last->plan;
    const backend::Backend* backend = backend_name == Py_None ? &plan->backend()
                                      : utf8(backend_name) == last->backend->name
                                          ? last->backend
                                          : &backend_to_look_at(utf8(backend_name));
    if (backend != &plan->backend()) {
      std::vector<driver::Arg> args;
      for (const Layout& layout : last->layouts) {
        driver::Arg arg = layout.arg;
        arg.shape = layout.shape.data();
        arg.strides = layout.strides.data();
        args.push_back(arg);
      }
      // The trace is known: this does not call back.
      const nb::gil_scoped_release unlocked;
      plan =
          &k.kernel->plan(args, {}, *backend, last->fixed->key,
                          [&](std::span<const frontend::ArgSpec>) -> driver::Traced {
                            throw LaunchError("call the kernel again before asking for its source");
                          });
    }
    return nb::cast(PlanView{plan, backend, nb::borrow(object), std::move(pin)}).release().ptr();
  });
}

// What a call brought for each parameter: "float32 (3, 4)", "a Python int", or the constant itself.
nb::list describe_call(const KernelState& k, const Entry& entry) {
  nb::list texts;
  size_t n = 0;
  for (size_t i = 0; i < k.parameters.size(); ++i) {
    if (!entry.constants.empty() && entry.constants[i].is_valid()) {
      texts.append(nb::repr(entry.constants[i]));
      continue;
    }
    const Layout& layout = entry.layouts[n++];
    driver::Arg arg = layout.arg;
    arg.shape = layout.shape.data();
    texts.append(driver::describe(arg));
  }
  return texts;
}

// _recent_calls(): (backend, one text per parameter) of the kinds of call seen last, the latest
// first.
PyObject* method_recent_calls(PyObject* object, PyObject*) noexcept {
  return guarded([&]() -> PyObject* {
    const KernelState& k = *reinterpret_cast<KernelObject*>(object)->state;
    nb::list calls;
    if (k.front() == nullptr) return calls.release().ptr();
    for (const Entry* entry : k.front()->recent)
      if (entry != nullptr)
        calls.append(nb::make_tuple(entry->backend->name, describe_call(k, *entry)));
    return calls.release().ptr();
  });
}

// _kept(): (plans, sets of constants and captures) that the kernel holds.
PyObject* method_kept(PyObject* object, PyObject*) noexcept {
  const KernelState& k = *reinterpret_cast<KernelObject*>(object)->state;
  return Py_BuildValue("nn", k.entry_count, k.state_count);
}

// _add_constant(array): the trace in progress starts again with this array as one more argument.
PyObject* method_add_constant(PyObject*, PyObject* array) noexcept {
  return guarded([&]() -> PyObject* {
    if (trace_in_progress().fixed == nullptr) throw_launch_error("no trace is in progress");
    trace_in_progress().fixed->hidden.push_back({.constant = nb::borrow(array)});
    PyErr_SetNone(retrace_signal);
    return nullptr;
  });
}

// _fix_numbers(parameter numbers): if any of these was not known to be static, the trace in
// progress starts again.
PyObject* method_fix_numbers(PyObject*, PyObject* numbers) noexcept {
  return guarded([&]() -> PyObject* {
    bool any = false;
    for (const nb::handle n : nb::borrow(numbers)) {
      if (trace_in_progress().kernel == nullptr) throw_launch_error("no trace is in progress");
      Parameter& p = trace_in_progress().kernel->parameters.at(nb::cast<size_t>(n));
      any = any || !p.is_static;
      p.is_static = true;
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
      names.append(p.name);
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
                                {"_recent_calls", method_recent_calls, METH_NOARGS, nullptr},
                                {"_kept", method_kept, METH_NOARGS, nullptr},
                                {"_add_constant", method_add_constant, METH_O, nullptr},
                                {"_fix_numbers", method_fix_numbers, METH_O, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyGetSetDef kernel_properties[] = {
    {"parameters", get_parameters, nullptr, "Names of the parameters, in order.", nullptr},
    {"default_backend", get_default_backend, nullptr,
     "The backend named by the decorator, or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

void init_binding(nb::module_& m) {
  retrace_signal = PyErr_NewException("picokernel._core.Retrace", PyExc_BaseException, nullptr);
  m.attr("Retrace") = nb::handle(retrace_signal);
}

}  // namespace picokernel::python
