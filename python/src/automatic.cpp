// Asking the cost model, and telling it how long calls took.
#include "automatic.h"

#include <algorithm>

#include "driver/backends.h"

namespace picokernel::python {

const backend::Backend automatic_backend = {
    .name = "auto",
    .summary = "the backend that is predicted, then measured, to be the fastest",
    .level = ir::Level::graph,
    .legalize = {},
    .check = nullptr,
    .emit = nullptr,
    .open = nullptr,
    .why_not_live = nullptr,
};

void Automatic::note(const Entry& entry) {
  if (why_ == 0) {
    const nb::object why = nb::steal(PyObject_CallMethod(choice_.ptr(), "why", nullptr));
    if (!why.is_valid()) return PyErr_Clear();
    why_ = trace::intern(nb::cast<std::string_view>(why));
  }
  trace::instant(trace::Category::call, why_, 0, entry.trace_backend);
}

void Automatic::observe(const Entry& entry, uint64_t ticks) {
  fastest_ = std::min(fastest_, ticks);
  if (++timed_ < kTimed) return;
  const double seconds = static_cast<double>(fastest_) * trace::nanoseconds_per_tick() * 1e-9;
  timed_ = 0;
  fastest_ = std::numeric_limits<uint64_t>::max();
  skip_ = pause_;
  pause_ = std::min(pause_ * 4, kMostSkipped);
  why_ = 0;
  const std::string backend(entry.backend->name);
  const nb::object better =
      nb::steal(PyObject_CallMethod(choice_.ptr(), "observe", "sd", backend.c_str(), seconds));
  if (better.is_valid())
    stands_ = better.ptr() == Py_True;
  else
    PyErr_Clear();
}

Chosen choose(KernelObject* self, PyObject* const* args, size_t count, PyObject* keywords) {
  PyObject* function = own_attribute("picokernel.explain", "choose");
  if (function == nullptr) throw ErrorSet{};
  nb::list positional;
  for (size_t i = 0; i < count; ++i) positional.append(nb::borrow(args[i]));
  nb::dict named;
  for (Py_ssize_t i = 0; keywords != nullptr && i < PyTuple_GET_SIZE(keywords); ++i)
    named[nb::borrow(PyTuple_GET_ITEM(keywords, i))] =
        nb::borrow(args[count + static_cast<size_t>(i)]);
  try {
    const nb::object chosen = nb::borrow(function)(nb::borrow(reinterpret_cast<PyObject*>(self)),
                                                   nb::tuple(positional), named);
    return {&backend_named(nb::cast<std::string_view>(chosen[0])), nb::borrow(chosen[1])};
  } catch (nb::python_error& e) {
    e.restore();
    throw ErrorSet{};
  }
}

}  // namespace picokernel::python
