// All backends, by name.
#pragma once

#include <span>

#include "backend/backend.h"

namespace picokernel::driver {

std::span<const backend::Backend* const> all_backends();
const backend::Backend* find_backend(std::string_view name);

/// To call before code is made for this host, and before another backend than cpu is chosen for
/// want of it: throws LaunchError if PICOKERNEL_CPU asks for cpu in words that it does not take, or
/// for more than this host is.
void check_environment();

}  // namespace picokernel::driver
