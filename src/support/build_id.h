// Which build of the core this is.
#pragma once

#include <string>

namespace picokernel {

/// The linker's identification of this library's contents, in hexadecimal: two builds with equal
/// ones are the same code. Empty where the linker wrote none.
const std::string& build_id();

}  // namespace picokernel
