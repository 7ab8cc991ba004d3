// The Python object of a kernel: what it knows of its function, of what that captured, and of calls
// seen before.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "core.h"
#include "driver/deferred.h"
#include "trace/trace.h"

namespace picokernel::python {

class Automatic;
struct Entry;
struct FixedState;

// Printed source as a Python function, and its instrumented twins once a call was recorded: plain,
// and split at each lazy operation. For MLX's arrays, the same function with its operations fused,
// and as a kernel for CUDA: null before it is asked for, None where there is none.
struct SourceKernel {
  nb::object function, twins[2], fused, cuda;
  // Of the twins' operations, by which twin and the values of the size symbols.
  std::map<std::pair<bool, std::vector<int64_t>>, trace::TableId> tables;
};

struct Parameter {
  nb::object name;         // interned
  nb::object fallback;     // the default; null: none
  bool is_static = false;  // an exponent or a bound: some Python numbers are fixed while tracing
};

// A global, a cell or an attribute that the function reads, and what it held when the function was
// walked.
struct Watch {
  enum class Kind : uint8_t { dict, cell, attribute };
  Kind kind = Kind::dict;
  nb::object container;
  nb::object name;   // null for cells
  nb::object value;  // null: nothing there
  // What a class holds under the name, where that tells what reading the attribute gives; else
  // null: the attribute has to be read, which may run Python code.
  nb::object raw;
  // Where PyDict_Next met the name last, and the dict's own object for it.
  mutable Py_ssize_t position = 0;
  mutable nb::object key;
  std::string shown;  // for messages

  /// The same object is there. Runs no Python code: false, too, where that would take some.
  bool unchanged() const noexcept;
  /// What is there now. Never sets a Python error.
  nb::object current() const noexcept;

 private:
  PyObject* look_up() const noexcept;
};

// What one walk over the function found, and what depends on that.
struct Captures {
  uint64_t number = 0;
  nb::object roots;  // a list: the kernel, and the functions among its constants
  nb::object key;    // a tuple: equal only if the same code would be traced
  std::vector<Watch> watches;
  std::vector<size_t> arrays;  // watches, each array once
  // The dicts of watches with their versions when all was last compared; and the other watches.
  mutable std::vector<std::pair<PyObject*, uint64_t>> dicts;
  std::vector<size_t> elsewhere;
  nb::object by_constants;  // a dict: frozen constants -> key in `states`
  std::map<uint64_t, std::unique_ptr<FixedState>> states;  // 0: the one without constants
  static constexpr size_t kRecent = 4;
  std::array<Entry*, kRecent> recent{};  // the last ones used, most recent first; the rest null
  uint32_t uses = 0;                     // by calls in progress: it stays

  bool unchanged() const noexcept;
};

// An argument that the user does not pass: a captured array, read afresh at each call, or one made
// while tracing.
struct Hidden {
  size_t watch = 0;
  nb::object constant;  // null: the watch's object
};

// One set of things fixed while tracing: static values and captures.
struct FixedState {
  Captures* captures = nullptr;
  uint64_t key = 0;      // of its plans and traces in the driver; never used again
  nb::object constants;  // its key in `by_constants`; null: there are none
  std::vector<Hidden> hidden;
  std::map<std::pair<const driver::Plan*, const backend::Backend*>, std::unique_ptr<Entry>> entries;
  uint64_t last_use = 0;
  uint32_t uses = 0;  // by calls in progress: it stays

  /// Borrowed; null if nothing is there.
  PyObject* object(const Hidden& h) const noexcept {
    return h.constant.is_valid() ? h.constant.ptr() : captures->watches[h.watch].value.ptr();
  }
};

// Keeps what a call in progress uses from being forgotten. With the interpreter locked.
class Pin {
 public:
  Pin() = default;
  explicit Pin(uint32_t& uses) : uses_(&uses) { ++uses; }
  Pin(Pin&& other) noexcept : uses_(std::exchange(other.uses_, nullptr)) {}
  Pin& operator=(Pin&& other) noexcept {
    std::swap(uses_, other.uses_);
    return *this;
  }
  ~Pin() {
    if (uses_ != nullptr) --*uses_;
  }

 private:
  uint32_t* uses_ = nullptr;
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
  const backend::Backend* backend = nullptr;  // of the call; the plan's may serve it
  FixedState* fixed = nullptr;
  const Note* note = nullptr;
  bool release_lock = false;          // long enough for other threads to run meanwhile
  std::vector<nb::object> constants;  // per parameter: the static value; null: an argument
  std::shared_ptr<SourceKernel> source;
  nb::object on_cuda;  // what calls on MLX's CUDA devices run; null before any
  // Of calls in MLX's graph: null before any, and the results' layouts.
  std::shared_ptr<driver::DeferredPlans> deferred;
  std::vector<Layout> deferred_outs;
  bool writes_out_only = false;  // a launch with out= is all that there is to do
  std::vector<Layout> layouts;   // of the arguments, hidden ones included
  std::vector<size_t> reversed;  // arguments that the library refuses for their negative strides
  trace::NameId span = 0;
  trace::Work work;  // of the call: elements of the largest array
  trace::BackendId trace_backend = 0;
  struct Twin {
    bool ready = false;
    trace::TableId ops = 0;
  };
  Twin twins[2];                         // as those of the source
  std::shared_ptr<Automatic> automatic;  // of calls with backend="auto"; null: there were none
};

struct KernelState {
  std::string name;
  Location place;
  std::vector<Parameter> parameters;
  size_t keyword_only = 0;
  std::string backend_name;  // of the decorator; empty: none
  FloatMode floats;
  // Of a call with nothing special about it; null before the first one.
  const backend::Backend* plain_backend = nullptr;
  std::unique_ptr<driver::Kernel> kernel;

  // Unordered but for the first, which calls compare with before the others.
  std::vector<std::unique_ptr<Captures>> captures;
  nb::object by_key;         // a dict: keys of captures -> their numbers
  uint64_t last_number = 0;  // of captures and fixed states
  uint64_t clock = 0;        // of FixedState::last_use
  size_t state_count = 0, entry_count = 0;
  std::map<const backend::Artifact*, std::weak_ptr<SourceKernel>> sources;

  /// What the calls after the last one try first; null before any.
  Captures* front() const { return captures.empty() ? nullptr : captures.front().get(); }
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
void remember(KernelState& k, Entry* entry) noexcept;
/// Equal numbers and texts, and other arrays in the place of arrays, are no change: they become
/// what is watched, and the objects before them are left in `replaced`, as dropping them may run
/// Python code. False, and nothing changed: something else changed.
bool renew(Captures& captures, std::vector<nb::object>& replaced);
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
std::shared_ptr<SourceKernel> open_source(KernelState& k, const Entry& entry);
/// Makes the instrumented twin if there is none; throws ErrorSet.
void prepare_twin(Entry& entry);
/// Calls the printed function, or its twin while somebody records, and gives what that returns;
/// null with an error set. `other`: calls that function instead.
PyObject* run_source(const Entry& entry, std::span<const driver::Arg> args,
                     PyObject* const* objects, PyObject* const* outs, size_t out_count,
                     const nb::object& other = {});

/// A Python number that this parameter fixes while tracing: ints choose a power's type and whether
/// it is allowed; for these floats NumPy has functions of their own.
inline bool is_fixed_number(const Parameter& p, PyObject* object) noexcept {
  if (!p.is_static) return false;
  if (!PyFloat_CheckExact(object)) return PyLong_CheckExact(object);
  const double value = PyFloat_AS_DOUBLE(object);
  return value == 0.5 || value == 2 || value == 1 || value == 0 || value == -1;
}

inline bool Watch::unchanged() const noexcept {
  if (kind == Kind::cell) return PyCell_GET(container.ptr()) == value.ptr();
  if (kind == Kind::attribute) {
    auto* const type = reinterpret_cast<PyTypeObject*>(container.ptr());
    return raw.is_valid() && _PyType_Lookup(type, name.ptr()) == raw.ptr();
  }
  // A dict keeps its entries in places: reading the place of the last time is faster than a lookup,
  // and its key tells whether it is the right one.
  Py_ssize_t at = position;
  PyObject *met = nullptr, *now = nullptr;
  if (value.is_valid() && PyDict_Next(container.ptr(), &at, &met, &now) && met == key.ptr())
      [[likely]]
    return now == value.ptr();
  return look_up() == value.ptr();
}

// Another number after each change of a dict; 0 where Python does not count them.
inline uint64_t version_of(PyObject* dict) noexcept {
#if PY_VERSION_HEX < 0x030E0000
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#pragma GCC diagnostic pop
#else
  static_cast<void>(dict);
  return 0;
#endif
}

inline bool Captures::unchanged() const noexcept {
  bool same = true;
  for (const auto& [dict, version] : dicts)
    same = same && version != 0 && version_of(dict) == version;
  if (same) [[likely]] {
    for (const size_t i : elsewhere)
      if (!watches[i].unchanged()) return false;
    return true;
  }
  for (const Watch& w : watches)
    if (!w.unchanged()) return false;
  for (auto& [dict, version] : dicts) version = version_of(dict);
  return true;
}

template <class F>
int KernelState::visit(F&& f) const {
  const auto all = [&](auto... objects) {
    int r = 0;
    static_cast<void>(((r = objects == nullptr ? 0 : f(objects)) || ...));
    return r;
  };
  for (const Parameter& p : parameters)
    if (const int r = all(p.fallback.ptr())) return r;
  if (const int r = all(by_key.ptr())) return r;
  for (const auto& c : captures) {
    if (const int r = all(c->roots.ptr(), c->key.ptr(), c->by_constants.ptr())) return r;
    for (const Watch& w : c->watches)
      if (const int r = all(w.container.ptr(), w.value.ptr(), w.raw.ptr())) return r;
    for (const auto& [number, state] : c->states) {
      if (const int r = all(state->constants.ptr())) return r;
      for (const Hidden& h : state->hidden)
        if (const int r = all(h.constant.ptr())) return r;
      for (const auto& [key, entry] : state->entries)
        for (const nb::object& o : entry->constants)
          if (const int r = all(o.ptr())) return r;
    }
  }
  return 0;
}

}  // namespace picokernel::python
