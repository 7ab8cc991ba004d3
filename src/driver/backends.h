// All backends, by name.
#pragma once

#include <span>

#include "backend/backend.h"

namespace picokernel::driver {

std::span<const backend::Backend* const> all_backends();
const backend::Backend* find_backend(std::string_view name);

}  // namespace picokernel::driver
