// Page faults of threads: what fresh memory costs beyond the copy into it.
#pragma once

#include <cstdint>

#include <picokernel/api.h>

namespace picokernel::trace {

/// Page faults so far, minor and major: of the calling thread on Linux, of the process on systems
/// that do not count them by thread. A system call of some 0.1 to 0.4 us.
PK_API uint64_t page_faults() noexcept;

}  // namespace picokernel::trace
