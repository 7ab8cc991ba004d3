// Lists of trace events: what may be done with them after recording.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <picokernel/profile.h>

namespace picokernel::trace {

using Event = TraceEvent;
/// What a file says about itself, in order.
using Metadata = std::vector<std::pair<std::string, Event::Value>>;

inline bool is_flow(const Event& e) {
  return e.phase == Event::Phase::flow_start || e.phase == Event::Phase::flow_end;
}

/// Orders events by process, thread, begin, parents before children, and shortens what sticks out
/// of its parent, so that the spans of each (pid, tid) nest or are disjoint: viewers drop what
/// overlaps partly. Of two spans over the same time the later one in the list is the parent;
/// neighbours keep their order even if the first has no length.
void order_and_nest(std::vector<Event>& events);

/// Events without a backend take that of the innermost span round them on their thread; then each
/// backend becomes a process (pid 1 is the host). Arrows that lack an end, or a span round one of
/// them, are dropped. Calls order_and_nest.
void assign_processes(std::vector<Event>& events);

/// Both lists side by side, each starting at 0; all pids of the second are fresh. `label` marks the
/// second's processes where the first has one of that name.
std::vector<Event> merge(std::span<const Event> first, std::span<const Event> second,
                         std::string_view label = {});

/// Adds what no phase of a call covers, as spans "rest of the call": then phases sum to their call.
/// The events are in order, and are again.
void add_rests(std::vector<Event>& events);

/// Adds what can be told from the others: arrows from lazy operations to the sync of their call
/// that ran them, and counters of the bytes moved.
void add_flows_and_counters(std::vector<Event>& events);

/// A text summary: for each process, category and name: count, total, mean, share of the process's
/// time in spans, and where events say so their rates and shares of the ceiling, as means over
/// time.
std::string table(std::span<const Event> events);

using SourceLine = Profile::SourceLine;
/// See Profile::lines. The events are in nesting order.
std::string lines(std::span<const Event> events, const SourceLine& source);

}  // namespace picokernel::trace
