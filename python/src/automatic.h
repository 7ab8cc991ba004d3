// backend="auto": the cost model of picokernel/explain.py chooses, once for each kind of call, and
// learns from some of the calls.
#pragma once

#include <limits>

#include "kernel_object.h"
#include "trace/clock.h"

namespace picokernel::python {

/// Stands for the choice where a backend is named; never runs anything itself.
extern const backend::Backend automatic_backend;

// What an entry that was chosen knows of it. With the interpreter locked.
class Automatic {
 public:
  explicit Automatic(nb::object choice) : choice_(std::move(choice)) {}

  bool is_of(const nb::object& choice) const { return choice_.ptr() == choice.ptr(); }
  /// Runs a call, timed if it is one to learn from. `launch` returns a new reference, or null.
  template <class Launch>
  PyObject* run(const Entry& entry, Launch&& launch) {
    if (trace::enabled()) note(entry);
    if (skip_ != 0) {
      --skip_;
      return launch();
    }
    const uint64_t begin = trace::now();
    PyObject* const result = launch();
    if (result != nullptr && result != Py_NotImplemented) observe(entry, trace::now() - begin);
    return result;
  }
  /// Writes into the trace what was chosen and why.
  void note(const Entry& entry);
  /// Not since another backend turned out to be better: the next call has to choose again.
  bool stands() const noexcept { return stands_; }

 private:
  void observe(const Entry& entry, uint64_t ticks);

  // Of this many calls the fastest one counts; then come calls that are not timed, each time more.
  static constexpr uint32_t kTimed = 4, kMostSkipped = 1 << 16;
  nb::object choice_;
  uint64_t fastest_ = std::numeric_limits<uint64_t>::max();
  uint32_t timed_ = 0, skip_ = 0, pause_ = 16;
  trace::NameId why_ = 0;
  bool stands_ = true;
};

struct Chosen {
  const backend::Backend* backend;
  nb::object choice;
};
/// The backend for this call. Throws CompileError if none takes the kernel.
Chosen choose(KernelObject* self, PyObject* const* args, size_t count, PyObject* keywords);

}  // namespace picokernel::python
