// Chrome Trace Event JSON, as Perfetto reads it: writing it and checking it.
#pragma once

#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <picokernel/api.h>

#include "trace/events.h"

namespace picokernel::trace {

/// Writes one file that Perfetto imports with no error and no loss, whatever the events: spans are
/// made to nest, nothing lies before 0, text is escaped and made valid UTF-8. `metadata` goes to
/// otherData.
PK_API void write_chrome_json(std::ostream& out, std::span<const Event> events,
                              const Metadata& metadata = {});

/// What is wrong with a trace file, one sentence each; empty: nothing. A strict JSON parse, then
/// the rules of the format, stricter than viewers that drop or bend what they dislike without a
/// word:
///  - X has ts and dur; per (pid, tid) slices nest or are disjoint in whole nanoseconds; B and E
///  pair up;
///  - counters have numeric arguments; flows start once, end after they start, and touch slices;
///  - numbers are finite, times are not negative, names and ids are there; there is at least one
///  event.
PK_API std::vector<std::string> check_chrome_json(std::string_view text);

}  // namespace picokernel::trace
