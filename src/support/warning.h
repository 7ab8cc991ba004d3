// What a user should know although nothing has failed.
#pragma once

#include <string>

namespace picokernel {

using WarningHandler = void (*)(const std::string& message) noexcept;

/// Where warnings go from now on; at first, to stderr.
void set_warning_handler(WarningHandler handler);
/// Call it with no lock held that the handler may need, such as an interpreter's.
void warn(const std::string& message) noexcept;

}  // namespace picokernel
