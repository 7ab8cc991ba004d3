// Facts of this machine's caches.
#pragma once

#include <cstdint>

namespace picokernel {

/// Bytes of the last-level cache that one core can fill; 32 MiB where the system does not say.
int64_t last_level_cache_bytes();

}  // namespace picokernel
