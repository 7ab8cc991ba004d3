#if defined(__linux__)
#include <sys/resource.h>

#include "trace/page_faults.h"

namespace picokernel::trace {

uint64_t page_faults() noexcept {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_minflt + usage.ru_majflt);
}

}  // namespace picokernel::trace
#endif
