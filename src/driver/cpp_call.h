// What calls of the C++ API share: arguments as the driver takes them, backends by name.
#pragma once

#include <string_view>

#include <picokernel/kernel.h>

#include "backend/backend.h"
#include "driver/kernel.h"

namespace picokernel::driver {

/// Throws LaunchError for an array without memory.
Arg to_arg(const detail::Argument& argument);

/// The backend of that name, or LaunchError at `where`.
const backend::Backend& known_backend(std::string_view name, const Location& where);
/// One that runs kernels of arrays here, or `of_threads`: the one named, that of
/// PICOKERNEL_BACKEND, the fastest. Or LaunchError.
const backend::Backend& live_backend(std::string_view name, const Location& where,
                                     bool of_threads = false);
/// Why it runs no C++ calls here; empty: it does.
std::string why_not_from_cpp(const backend::Backend& backend);

/// The names given, or "p0", "p1", ...; CompileError at `where` if there are too many or few.
std::vector<std::string> parameter_names(std::string_view kernel,
                                         const std::vector<std::string>& given, size_t count,
                                         const Location& where);

}  // namespace picokernel::driver
