// Which backends there are, which can run here, and which one a call takes.

#include "driver/backends.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "automatic.h"
#include "kernel_object.h"
#include "plan_view.h"
#include "runtime/thread_pool.h"
#include "support/nearest.h"

namespace picokernel::python {

namespace {

PyObject* chosen = nullptr;    // a context variable: the name given to pk.use
std::string from_environment;  // PICOKERNEL_BACKEND as it was at import; empty: none
std::map<const backend::Backend*, std::string> reasons;  // why not live, asked once each

const backend::Backend& default_backend() {
  // Where the data lives decides. NumPy arrays: native code, or NumPy itself in builds without a
  // compiler.
  static const backend::Backend* const found = [] {
    driver::check_environment();
    const backend::Backend* cpu = driver::find_backend("cpu");
    return cpu != nullptr && cpu->why_not_live().empty() ? cpu : driver::find_backend("numpy");
  }();
  return *found;
}

const char* library_of(const backend::Backend& backend) {
  return backend.name == "mlx" ? "mlx.core" : nullptr;
}

}  // namespace

bool prints_source(const backend::Backend& backend) {
  return backend.level == ir::Level::graph && backend.open == nullptr;
}

std::string why_not_live(const backend::Backend& backend) {
  if (const auto known = reasons.find(&backend); known != reasons.end()) return known->second;
  std::string reason = backend.why_not_live != nullptr ? backend.why_not_live() : "";
  if (reason.empty() && prints_source(backend)) {
    if (const char* library = library_of(backend)) {
      const nb::object module = nb::steal(PyImport_ImportModule(library));
      if (!module.is_valid()) {
        nb::python_error error;
        reason = std::string(error.what());
        reason = "cannot import " + std::string(library) + " (" +
                 reason.substr(reason.rfind('\n') + 1) +
                 "): pip install mlx, with mlx[cpu] on Linux";
      }
    }
  }
  reasons[&backend] = reason;
  return reason;
}

const backend::Backend& backend_to_look_at(std::string_view name) {
  if (const backend::Backend* found = driver::find_backend(name)) return *found;
  std::string known;
  std::vector<std::string_view> names;
  for (const backend::Backend* b : driver::all_backends()) {
    known += (known.empty() ? "" : ", ") + std::string(b->name);
    names.push_back(b->name);
  }
  known += ", and auto";
  names.push_back(automatic_backend.name);
  std::vector<std::string> notes{"backends: " + known};
  if (const auto near = nearest(name, names))
    notes.push_back("did you mean '" + std::string(*near) + "'?");
  throw_launch_error("there is no backend '" + std::string(name) + "'", std::move(notes));
}

const backend::Backend& backend_named(std::string_view name) {
  if (name == automatic_backend.name) return automatic_backend;
  const backend::Backend& backend = backend_to_look_at(name);
  if (const std::string reason = why_not_live(backend); !reason.empty())
    throw_launch_error("backend '" + std::string(name) + "' cannot run here", {reason});
  return backend;
}

namespace {

// `decorated`: what the kernel's decorator names; empty: nothing.
const backend::Backend* named_backend(const std::string& decorated) {
  PyObject* name = nullptr;
  if (PyContextVar_Get(chosen, Py_None, &name) != 0) throw ErrorSet{};
  const nb::object owned = nb::steal(name);
  if (!owned.is_none()) return &backend_named(nb::cast<std::string_view>(owned));
  if (!decorated.empty()) return &backend_named(decorated);
  if (!from_environment.empty()) return &backend_named(from_environment);
  return nullptr;
}

}  // namespace

const backend::Backend* named_backend_of(const KernelState& k) {
  return named_backend(k.backend_name);
}

const backend::Backend& backend_of_threads(const std::string& decorated) {
  const backend::Backend* const named = named_backend(decorated);
  return named != nullptr && named != &automatic_backend ? *named : default_backend();
}

const backend::Backend& backend_of(const KernelState& k) {
  const backend::Backend* named = named_backend_of(k);
  return named != nullptr ? *named : default_backend();
}

void bind_backends(nb::module_& m) {
  // Asks the processor, which takes long in virtual machines: at import, not in a first call.
  if (const backend::Backend* cpu = driver::find_backend("cpu")) cpu->why_not_live();
  chosen = PyContextVar_New("picokernel.use", nullptr);
  if (chosen == nullptr) throw nb::python_error();
  m.attr("_chosen_backend") = nb::handle(chosen);
  if (const char* name = std::getenv("PICOKERNEL_BACKEND"); name != nullptr && *name != '\0') {
    from_environment = name;
    special.fetch_add(1, std::memory_order_relaxed);
  }
  // Blocks of pk.use on any thread make all calls look at the context variable.
  m.def("_look_at_chosen_backend",
        [](bool begins) { special.fetch_add(begins ? 1u : ~0u, std::memory_order_relaxed); });
  m.def(
      "check_backend", [](std::string_view name) { backend_named(name); },
      "Raises LaunchError if there is no such backend, or if it cannot run here.");
  m.def(
      "backends",
      [] {
        nb::dict all;
        for (const backend::Backend* b : driver::all_backends())
          if (!b->prints_only && !b->threads_only) all[nb::cast(b->name)] = why_not_live(*b);
        return all;
      },
      "Every backend of kernels of arrays by name: '' if it can run here, else why not.");
  m.def(
      "thread_backends",
      [] {
        nb::dict all;
        for (const backend::Backend* b : driver::all_backends())
          if (b->threads != backend::Threads::none && !b->prints_only)
            all[nb::cast(b->name)] = why_not_live(*b);
        return all;
      },
      "Those that run kernels of threads, likewise.");
  m.def(
      "backend_summaries",
      [] {
        nb::dict all;
        for (const backend::Backend* b : driver::all_backends())
          all[nb::cast(b->name)] = b->summary;
        return all;
      },
      "Every backend by name, in a sentence.");
}

}  // namespace picokernel::python
