// Memory with an owner, and the pool that outputs and scratch come from.
#pragma once

#include <cstddef>
#include <memory>

#include <picokernel/api.h>

#include "runtime/device.h"

namespace picokernel::runtime {

/// A stretch of memory. Copies of a Buffer share it; it is freed with the last owner.
struct Buffer {
  void* data = nullptr;
  size_t bytes = 0;
  Device device;
  std::shared_ptr<void> owner;
};

inline constexpr size_t kDefaultPoolCap = size_t{64} << 20;  // bytes each thread keeps for reuse

/// Uninitialised CPU memory from this thread's pool: on a page boundary, from 4 MiB on at a 2 MiB
/// boundary with huge pages asked for. Freed memory goes to the pool of the thread that frees it,
/// which keeps what was used last, up to its cap. Zero bytes: a null pointer. Throws
/// std::bad_alloc. Recorded as a span of category alloc.
PK_API Buffer allocate(size_t bytes);

struct PoolStats {
  size_t kept_bytes = 0;  // free, kept for reuse
  size_t cap = kDefaultPoolCap;
};

/// This thread's pool.
PK_API PoolStats pool_stats();
/// Returns all that the pools of all threads keep to the system; gives the bytes.
PK_API size_t trim();
/// Changes how much this thread's pool may keep.
PK_API void set_pool_cap(size_t bytes);

}  // namespace picokernel::runtime
