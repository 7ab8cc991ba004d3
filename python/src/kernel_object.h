// The Python object of a kernel: what it knows of its function, of what that captured, and of calls
// seen before.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "arguments.h"
#include "core.h"
#include "trace/trace.h"

namespace picokernel::python {

// Printed source as a Python function, and its instrumented twin once a call was recorded. Owned.
struct SourceKernel {
  PyObject* function = nullptr;
  PyObject* twin = nullptr;
};

struct Parameter {
  PyObject* name = nullptr;      // interned
  PyObject* fallback = nullptr;  // the default; null: none
  bool is_static = false;  // an exponent or a bound: some Python numbers are fixed while tracing
};

// A global, a cell or an attribute that the function reads, and what it held when the function was
// walked.
struct Watch {
  enum class Kind : uint8_t { dict, cell, attribute };
  Kind kind = Kind::dict;
  PyObject* container = nullptr;
  PyObject* name = nullptr;   // null for cells
  PyObject* value = nullptr;  // null: nothing there
  std::string shown;          // for messages

  /// What is there at this moment; borrowed except for attributes, which `kept` keeps.
  PyObject* current(nb::object& kept) const noexcept;
};

// An argument that the user does not pass: a captured array, read afresh at each call, or one made
// while tracing.
struct Hidden {
  size_t watch = 0;
  PyObject* constant = nullptr;  // owned; null: the watch's object
};

// One set of things fixed while tracing: static values and captures.
struct FixedState {
  uint64_t key = 0;
  std::vector<Hidden> hidden;
};

// How results are handed back: slot s >= 0 is output s, otherwise argument -1 - s itself.
struct Note {
  enum class Kind : uint8_t { nothing, value, tuple, list };
  Kind kind = Kind::nothing;
  std::vector<int> slots;
  bool hands_back_argument = false;
};

// Arguments without their data: enough to plan again.
struct Layout {
  driver::Arg arg;
  std::vector<int64_t> shape, strides;
};

// A call seen before.
struct Entry {
  const driver::Plan* plan = nullptr;
  const backend::Backend* backend = nullptr;
  FixedState* fixed = nullptr;
  const Note* note = nullptr;
  bool release_lock = false;         // long enough for other threads to run meanwhile
  std::vector<PyObject*> constants;  // per parameter: the static value, owned; null: an argument
  SourceKernel* source = nullptr;
  bool writes_out_only = false;  // a launch with out= is all that there is to do
  std::vector<Layout> layouts;   // of the arguments, hidden ones included
  std::vector<size_t> reversed;  // arguments that the library refuses for their negative strides
  uint64_t elements = 0;         // of the largest array
  trace::NameId span = 0;
  trace::BackendId trace_backend = 0;
  trace::TableId ops = 0;  // of the instrumented twin; valid once `twin_ready`
  bool twin_ready = false;
};

struct KernelState {
  std::string name;
  Location place;
  std::vector<Parameter> parameters;
  size_t keyword_only = 0;
  std::string backend_name;  // of the decorator; empty: none
  // Of a call with nothing special about it; null before the first one.
  const backend::Backend* plain_backend = nullptr;
  std::unique_ptr<driver::Kernel> kernel;

  bool walked = false;
  std::vector<Watch> watches;
  std::vector<size_t> captured_arrays;  // watches
  PyObject* captured_key = nullptr;
  PyObject* roots = nullptr;  // a list: the function, and functions passed as arguments
  PyObject* keys = nullptr;   // a dict: fixed things -> index into `fixed`
  std::vector<std::unique_ptr<FixedState>> fixed;

  std::map<std::pair<const driver::Plan*, const FixedState*>, std::unique_ptr<Entry>> entries;
  std::map<const backend::Artifact*, std::unique_ptr<SourceKernel>> sources;
  static constexpr size_t kRecent = 4;
  std::array<Entry*, kRecent> recent{};  // the last ones used, most recent first; the rest null

  template <class F>
  int visit(F&& f) const;
};

struct KernelObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  KernelState* state;
};

extern PyTypeObject* kernel_base_type;

// Reasons to look closer at each call: blocks of pk.use, a backend from the environment, traces in
// progress.
extern std::atomic<uint32_t> special;
/// Nested traces on this thread.
extern thread_local int trace_depth;

// The parts of a call, between call.cpp (the common case), bind.cpp (all others) and
// source_kernel.cpp.

/// The call of a kernel with anything unusual about it.
PyObject* call_slowly(KernelObject* self, PyObject* const* args, size_t count, PyObject* keywords);
/// The entry becomes the one that calls try first.
void remember(KernelState& k, Entry* entry);
/// The backend of a call that names none: pk.use, then the decorator, then the environment, then
/// where the data is.
const backend::Backend& backend_of(const KernelState& k);
/// The same; null: where the data is decides.
const backend::Backend* named_backend_of(const KernelState& k);

/// Runs a planned call. A first recorded one makes the instrumented twin. `objects`: the arguments,
/// hidden ones included; `outs` and `out_objects`: one per output, with null data where an array is
/// still to be made. Returns what the kernel returns; null with an error set.
PyObject* run(Entry& entry, std::span<const driver::Arg> args, PyObject* const* objects,
              std::span<driver::Arg> outs, PyObject** out_objects);
/// A single output, or the objects of several results, from what was written.
PyObject* results(const Note& note, PyObject* const* objects, PyObject* const* out_objects,
                  bool scalars);

/// The printed source of the plan's backend as a Python function.
SourceKernel* open_source(KernelState& k, const Entry& entry);
void close_source(SourceKernel* source) noexcept;
/// Makes the instrumented twin if there is none; throws ErrorSet.
void prepare_twin(Entry& entry);
/// Calls the printed function, or its twin while somebody records, and gives what that returns;
/// null with an error set.
PyObject* run_source(const Entry& entry, std::span<const driver::Arg> args,
                     PyObject* const* objects, PyObject* const* outs, size_t out_count);

/// A Python number that this parameter fixes while tracing: ints choose a power's type and whether
/// it is allowed; for these floats NumPy has functions of their own.
inline bool is_fixed_number(const Parameter& p, PyObject* object) noexcept {
  if (!p.is_static) return false;
  if (!PyFloat_CheckExact(object)) return PyLong_CheckExact(object);
  const double value = PyFloat_AS_DOUBLE(object);
  return value == 0.5 || value == 2 || value == 1 || value == 0 || value == -1;
}

inline PyObject* Watch::current(nb::object& kept) const noexcept {
  switch (kind) {
    case Kind::dict:
      return PyDict_GetItemWithError(container, name);
    case Kind::cell:
      return PyCell_GET(container);
    case Kind::attribute:
      kept = nb::steal(PyObject_GetAttr(container, name));
      if (!kept.is_valid()) PyErr_Clear();
      return kept.ptr();
  }
  return nullptr;
}

inline bool captures_unchanged(const KernelState& k) noexcept {
  nb::object kept;
  for (const Watch& w : k.watches)
    if (w.current(kept) != w.value) return false;
  return true;
}

template <class F>
int KernelState::visit(F&& f) const {
  for (const Parameter& p : parameters)
    if (const int r = f(p.fallback)) return r;
  for (const Watch& w : watches)
    for (PyObject* o : {w.container, w.value})
      if (const int r = f(o)) return r;
  for (PyObject* o : {captured_key, roots, keys})
    if (const int r = f(o)) return r;
  for (const auto& state : fixed)
    for (const Hidden& h : state->hidden)
      if (const int r = f(h.constant)) return r;
  for (const auto& [key, entry] : entries)
    for (PyObject* o : entry->constants)
      if (const int r = f(o)) return r;
  return 0;
}

}  // namespace picokernel::python
