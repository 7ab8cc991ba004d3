// Memory that picokernel keeps for reuse.
#pragma once

#include <cstddef>

#include <picokernel/api.h>

namespace picokernel {

/// Results, copies and scratch come from pools: each thread keeps the memory that was freed on it
/// last, up to 64 MiB. This returns what the pools of all threads keep to the system and gives the
/// number of bytes. Arrays in use are not affected.
PK_API size_t trim();

}  // namespace picokernel
