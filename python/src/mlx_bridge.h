// MLX's arrays in C++, through the bridge that is compiled for the MLX of this process.
#pragma once

#include <memory>

#include "../picokernel/bridge/mlx_bridge.h"
#include "core.h"

namespace picokernel::python {

/// Null: there is none, which a warning has said once. Throws ErrorSet where warnings are errors.
const graph::Bridge* mlx_bridge();
/// The same, or null where nobody has asked for it yet.
const graph::Bridge* known_mlx_bridge() noexcept;
/// The current stream of this thread is a CPU's.
bool on_mlx_cpu();
/// For calls that do without: the bridge if it was compiled before and the current stream is a
/// CPU's.
const graph::Bridge* built_mlx_bridge();
/// The array of C++ inside of an array of Python, whose type has been checked.
void* array_in(PyObject* array) noexcept;
/// A new array of Python, to be bound.
nb::object new_mlx_array();

/// Objects that a call held and that may be dropped only with the interpreter locked.
class Remains {
 public:
  virtual ~Remains() = default;
};
/// Drops them: at once if this thread has the interpreter's lock, else when it is free. Any thread.
void bury(std::unique_ptr<Remains> remains) noexcept;

}  // namespace picokernel::python
