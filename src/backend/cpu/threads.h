// How a nest is spread over threads.
#pragma once

#include <cstdint>

#include "runtime/thread_pool.h"

namespace picokernel::backend::cpu {

/// One launch of one nest.
struct NestLaunch {
  void (*function)(const uint64_t* params, const int64_t* lo, const int64_t* hi) = nullptr;
  const uint64_t* params = nullptr;
  const int64_t* lo = nullptr;  // zeros
  const int64_t* hi = nullptr;  // the extents
  uint32_t rank = 0;
  bool long_loops = false;  // kLoopPoints or more of a body that loops
};

// Below this much work a single thread is as fast as several.
inline constexpr double kParallelPicoseconds = 3e6;
// So many points of a body with loops may take long.
inline constexpr double kLoopPoints = 1 << 15;

/// Runs the whole domain of `points`, on as many threads as `picoseconds` of work deserve. Extents
/// are positive. Throws Stopped where a long launch was asked to end.
void run_on_threads(const NestLaunch& launch, double points, double picoseconds);

}  // namespace picokernel::backend::cpu
