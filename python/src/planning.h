// Planning a call: from the arguments of a call to the entry that later calls of its kind find at
// once.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "kernel_object.h"

namespace picokernel::python {

// The arguments of a call, one per parameter, and its options. Borrowed from the call, but for what
// `kept` holds.
struct Bound {
  std::vector<PyObject*> values;
  PyObject* out = nullptr;
  PyObject* backend = nullptr;
  std::vector<nb::object> kept;
};

Bound bind(const KernelState& k, PyObject* const* args, size_t count, PyObject* keywords);
const backend::Backend& backend_for(const KernelState& k, const Bound& b);
/// The same; null: where the data is decides.
const backend::Backend* named_backend_for(const KernelState& k, const Bound& b);

/// Fixed while tracing, as opposed to an argument of the compiled kernel.
bool is_constant(const KernelState& k, size_t i, PyObject* value);
/// What is fixed for this call: its constants, and what the function captures at this moment. It
/// stays while it is pinned.
FixedState& fixed_state(KernelObject* self, const Bound& b, Pin& pin);
/// Finds out what these functions capture.
std::unique_ptr<Captures> walk(const nb::object& roots);
/// The first watch whose object is another one now; null: all are the same. May run Python code.
const Watch* first_change(const Captures& captures) noexcept;

// A planned call: everything that `run` takes.
struct Planned {
  Pin pin;
  const driver::Plan* plan = nullptr;
  Entry* entry = nullptr;
  std::vector<driver::Arg> args, outs;
  std::vector<PyObject*> objects, out_objects;
  std::vector<nb::object> kept;
  std::deque<std::string> names;  // of hidden arguments

  Planned() = default;
  Planned(Planned&&) = default;
  ~Planned() {
    // What failed is not written back.
    for (const nb::object& o : kept)
      if (o.is_valid() && PyArray_Check(o.ptr()))
        PyArray_DiscardWritebackIfCopy(reinterpret_cast<PyArrayObject*>(o.ptr()));
  }
};

/// Reads the arguments, traces and compiles as needed. Not `to_run`: no entry is made, so that the
/// source of a backend can be read that cannot run here. `called`: the backend that the call is one
/// of, where another one's code serves it.
Planned plan_call(KernelObject* self, const Bound& b, const backend::Backend& backend,
                  bool to_run = true, const backend::Backend* called = nullptr);

/// Without data and names.
std::vector<Layout> layouts_of(std::span<const driver::Arg> args);

/// The entry of such a call for another backend. The kernel has been traced for it: nothing of the
/// user's runs. Throws LaunchError if it has not.
Entry& entry_of_known_trace(KernelState& k, FixedState& fixed, std::vector<nb::object> constants,
                            const backend::Backend& backend, std::span<const driver::Arg> args,
                            std::span<const driver::Arg> outs);

// What the trace in progress on this thread may add to, and the signal that starts it again then.
struct TraceContext {
  KernelState* kernel = nullptr;
  FixedState* fixed = nullptr;
};
TraceContext& trace_in_progress();
extern PyObject* retrace_signal;

// For messages. Throws ErrorSet if a name is no valid text.
std::string describe_kernel(const KernelState& k);
std::string describe_argument(const KernelState& k, size_t i);
const char* utf8(PyObject* text);

}  // namespace picokernel::python
