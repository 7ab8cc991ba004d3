// Calibration of the trace clock.
#include "trace/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace picokernel::trace {

namespace {

int64_t steady_ns() noexcept {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

// As early as possible: the longer the stretch between two readings, the better the line.
const ClockPair kLoaded = read_clocks();

}  // namespace

ClockPair read_clocks() noexcept {
  ClockPair best;
  uint64_t best_width = ~uint64_t{0};
  for (int i = 0; i < 4; ++i) {
    const uint64_t before = now();
    const int64_t ns = steady_ns();
    const uint64_t width = now() - before;
    if (width >= best_width) continue;
    best_width = width;
    best = {before + width / 2, ns};
  }
  return best;
}

double nanoseconds_per_tick() noexcept {
  constexpr int64_t kShortestNs = 1'000'000;
  ClockPair end = read_clocks();
  while (end.steady_ns - kLoaded.steady_ns < kShortestNs) end = read_clocks();
  return static_cast<double>(end.steady_ns - kLoaded.steady_ns) /
         static_cast<double>(end.ticks - kLoaded.ticks);
}

const char* clock_description() noexcept {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool invariant = __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
  return invariant ? "invariant tsc" : "tsc, not declared invariant by this cpu";
#elif defined(__aarch64__)
  return "cntvct_el0";
#else
  return "steady_clock";
#endif
}

}  // namespace picokernel::trace
