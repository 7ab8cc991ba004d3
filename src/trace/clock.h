// The clock of all traces: raw ticks while running, a calibrated line to nanoseconds afterwards.
#pragma once

#include <chrono>
#include <cstdint>

namespace picokernel::trace {

/// Ticks of this machine's invariant counter: TSC on x86, the virtual counter on arm64, else
/// steady_clock's nanoseconds. Not serialising: work of some tens of cycles may move across a
/// stamp.
inline uint64_t now() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

/// One moment on both clocks.
struct ClockPair {
  uint64_t ticks = 0;
  int64_t steady_ns = 0;  // std::chrono::steady_clock
};

/// Takes the tightest of a few readings, so that the two clocks differ by tens of nanoseconds at
/// most.
ClockPair read_clocks() noexcept;

/// Nanoseconds a tick, from the moment the library was loaded until now. Waits until that stretch
/// is a millisecond long, which bounds the error to some 1e-5.
double nanoseconds_per_tick() noexcept;

/// What `now` reads, in words; says so where the counter is not known to tick at a constant rate.
const char* clock_description() noexcept;

}  // namespace picokernel::trace
