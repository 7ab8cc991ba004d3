// How near to the machine's ceilings kernels came.
#pragma once

#include <vector>

#include "trace/events.h"

namespace picokernel::trace {

/// Gives events with a rate, of backends whose ceiling is known, their share of it: "% of ceiling",
/// and in "ceiling" which one they are nearer to, that of memory or of compute.
void add_shares(std::vector<Event>& events);

}  // namespace picokernel::trace
