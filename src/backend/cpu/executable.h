// A loaded kernel.
#pragma once

#include <memory>

#include "backend/cpu/kernel_info.h"
#include "runtime/executable.h"

namespace picokernel::backend::cpu {

/// A kernel that returns values has one more slot for each of them,
/// behind its parameters: a pointer to the uint64_t that takes the value's bits.
std::unique_ptr<runtime::Executable> make_executable(const std::string& kernel,
                                                     const KernelInfo& info,
                                                     std::string_view object);

}  // namespace picokernel::backend::cpu
