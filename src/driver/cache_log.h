// What lookups of compiled kernels found, for people: in traces, and on stderr where
// PICOKERNEL_LOG=cache.
#pragma once

#include <string>
#include <string_view>

#include "runtime/disk_cache.h"
#include "runtime/kernel_cache.h"

namespace picokernel::driver {

enum class Found : uint8_t { in_memory, on_disk, nowhere };

/// Throws LaunchError if PICOKERNEL_LOG holds anything else.
bool logs_lookups();

/// How the key differs from the nearest one on disk; `otherwise` if there is none.
std::string nearest_on_disk(const runtime::DiskCache& disk, const runtime::CacheKey& key,
                            std::string otherwise);

/// `difference`: of the key, where nothing was found and somebody logs.
void record_lookup(std::string_view kernel, std::string_view backend, Found found,
                   const std::string& difference);

}  // namespace picokernel::driver
