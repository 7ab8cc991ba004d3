// A plan as Python sees it.
#pragma once

#include "kernel_object.h"

namespace picokernel::python {

struct PlanView {
  const driver::Plan* plan = nullptr;
  const backend::Backend* backend = nullptr;
  nb::object kernel;  // keeps the plan alive
  Pin pin;            // so does this
};

/// A backend by name, live or not; throws LaunchError with the known ones.
const backend::Backend& backend_to_look_at(std::string_view name);

}  // namespace picokernel::python
