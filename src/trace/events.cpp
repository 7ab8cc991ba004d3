// Nesting, processes and merging of trace events.
#include "trace/events.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace picokernel::trace {

namespace {

constexpr std::string_view kHostProcess = "host";

bool is_span(const Event& e) { return e.phase == Event::Phase::complete; }

// Clocks tick every 10 ns on some machines, so that neighbours often begin in the same tick. Spans
// of no length come first there: of two operations that follow each other the first may be so
// short. Of others the longer is the parent, at equal lengths the one recorded later: spans are
// recorded when they end. An end of an arrow lies in the span that begins with it.
auto nesting_key(const Event& e, size_t index) {
  const bool has_length = e.duration_ns != 0 || is_flow(e);
  return std::tuple(e.pid, e.tid, e.begin_ns, has_length, -e.duration_ns,
                    has_length ? -static_cast<int64_t>(index) : static_cast<int64_t>(index));
}

int64_t earliest(std::span<const Event> events) {
  int64_t begin = std::numeric_limits<int64_t>::max();
  for (const Event& e : events) begin = std::min(begin, e.begin_ns);
  return begin;
}

// Gives events without a backend that of the innermost span round them; the events are in nesting
// order.
void inherit_backends(std::vector<Event>& events) {
  std::vector<const Event*> open;
  std::vector<Event*> unclaimed;  // of no length, at the begin that `events` has come to, in no
                                  // span that began before
  for (Event& e : events) {
    if (!open.empty() && open.back()->tid != e.tid) open.clear();
    if (!unclaimed.empty() && (unclaimed[0]->tid != e.tid || unclaimed[0]->begin_ns != e.begin_ns))
      unclaimed.clear();
    const bool has_length = e.duration_ns != 0;
    // What has no length and stands at a span's end lies inside it: so does one at the begin of a
    // span.
    while (!open.empty() && (open.back()->end_ns() < e.begin_ns ||
                             (open.back()->end_ns() == e.begin_ns && has_length)))
      open.pop_back();
    // A counter has one track, whoever was running when it changed.
    if (e.phase == Event::Phase::counter) continue;
    if (is_flow(e)) {
      e.flow = open.empty() ? 0 : e.flow;
      e.backend = open.empty() ? "" : open.back()->backend;
      continue;
    }
    if (e.backend.empty() && !open.empty()) e.backend = open.back()->backend;
    if (has_length) {
      for (Event* at_begin : unclaimed)
        if (at_begin->backend.empty()) at_begin->backend = e.backend;
      open.push_back(&e);
    } else {
      unclaimed.push_back(&e);
    }
  }
}

}  // namespace

void order_and_nest(std::vector<Event>& events) {
  std::vector<size_t> order(events.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return nesting_key(events[a], a) < nesting_key(events[b], b);
  });
  std::vector<Event> ordered;
  ordered.reserve(events.size());
  for (const size_t i : order) ordered.push_back(std::move(events[i]));
  events = std::move(ordered);

  std::vector<int64_t> open_until;
  std::pair<uint32_t, uint32_t> track{};
  for (Event& e : events) {
    if (!is_span(e)) continue;
    if (track != std::pair(e.pid, e.tid)) open_until.clear();
    track = {e.pid, e.tid};
    while (!open_until.empty() && open_until.back() <= e.begin_ns) open_until.pop_back();
    if (!open_until.empty() && e.end_ns() > open_until.back())
      e.duration_ns = open_until.back() - e.begin_ns;
    open_until.push_back(e.end_ns());
  }
}

void assign_processes(std::vector<Event>& events) {
  // First nest whole threads, whatever the backends: that tells which call each event belongs to.
  for (Event& e : events) e.pid = 0;
  order_and_nest(events);
  inherit_backends(events);
  std::map<uint64_t, std::set<Event::Phase>> ends;
  for (const Event& e : events) ends[e.flow].insert(e.phase);
  std::erase_if(events, [&](const Event& e) {
    return is_flow(e) && (e.flow == 0 || ends[e.flow].size() < 2);
  });

  // In order of first appearance in time, so that equal programs give equal rows.
  std::map<std::string, std::pair<int64_t, uint32_t>> first_seen;
  for (const Event& e : events) {
    auto& [begin, pid] = first_seen.try_emplace(e.backend, e.begin_ns, 1).first->second;
    begin = std::min(begin, e.begin_ns);
  }
  std::vector<std::pair<int64_t, std::string>> backends;
  for (const auto& [backend, seen] : first_seen)
    if (!backend.empty()) backends.emplace_back(seen.first, backend);
  std::sort(backends.begin(), backends.end());
  for (size_t i = 0; i < backends.size(); ++i)
    first_seen[backends[i].second].second = static_cast<uint32_t>(i) + 2;
  for (Event& e : events) {
    e.pid = first_seen[e.backend].second;
    e.process = e.backend.empty() ? std::string(kHostProcess) : e.backend;
  }
  order_and_nest(events);
}

void add_rests(std::vector<Event>& events) {
  std::vector<Event> rests;
  const Event* call = nullptr;
  int64_t covered = 0;
  const auto rest_until = [&](int64_t end) {
    if (end <= covered) return;
    Event& rest = rests.emplace_back(*call);
    rest.name = "rest of the call";
    rest.category = "rest";
    rest.begin_ns = covered;
    rest.duration_ns = end - covered;
    rest.args.clear();
  };
  for (const Event& e : events) {
    if (!is_span(e)) continue;
    if (call != nullptr && (std::pair(call->pid, call->tid) != std::pair(e.pid, e.tid) ||
                            e.begin_ns >= call->end_ns())) {
      rest_until(call->end_ns());
      call = nullptr;
    }
    if (call != nullptr) {
      rest_until(e.begin_ns);
      covered = std::max(covered, e.end_ns());
    } else if (e.category == "call") {
      call = &e;
      covered = e.begin_ns;
    }
  }
  if (call != nullptr) rest_until(call->end_ns());
  std::ranges::move(rests, std::back_inserter(events));
  order_and_nest(events);
}

void add_flows_and_counters(std::vector<Event>& events) {
  std::vector<Event> added;
  uint64_t flow = 0;
  for (const Event& e : events) flow = std::max(flow, e.flow);
  const auto point = [&](const Event& of, Event::Phase phase, int64_t at) -> Event& {
    Event& e = added.emplace_back(of);
    e.phase = phase;
    e.begin_ns = at;
    e.duration_ns = 0;
    e.args.clear();
    return e;
  };
  std::vector<const Event*> lazy, moves;
  for (const Event& e : events) {
    if (e.category == "call") lazy.clear();
    if (e.category == "op_lazy") lazy.push_back(&e);
    if (e.category == "sync")
      for (const Event* from : std::exchange(lazy, {})) {
        const bool long_enough = from->duration_ns > 1 && e.duration_ns > 1;
        if (!long_enough) continue;  // at its end it would belong to the neighbour
        ++flow;
        for (const Event* end : {from, &e}) {
          Event& p = point(*end, end == from ? Event::Phase::flow_start : Event::Phase::flow_end,
                           end->begin_ns + (end == from ? end->duration_ns / 2 : 1));
          p.flow = flow;
          p.name = "evaluated in";
          p.category = "flow";
        }
      }
    const bool moved =
        e.category == "h2d" || e.category == "d2h" || e.category == "op" || e.category == "launch";
    if (moved && is_span(e)) moves.push_back(&e);
  }
  std::ranges::stable_sort(moves, {}, &Event::end_ns);
  std::map<std::pair<uint32_t, std::string>, int64_t> totals;
  for (const Event* e : moves) {
    const auto bytes =
        std::ranges::find(e->args, "bytes", &std::pair<std::string, Event::Value>::first);
    if (bytes == e->args.end()) continue;
    const bool copy = e->category == "h2d" || e->category == "d2h";
    const std::string key = copy ? e->category : "kernels";
    int64_t& total = totals[{e->pid, key}] += std::get<int64_t>(bytes->second);
    Event& counter = point(*e, Event::Phase::counter, e->end_ns());
    counter.name = "bytes moved";
    counter.category.clear();
    counter.args = {{key, total}};
  }
  std::ranges::move(added, std::back_inserter(events));
}

std::vector<Event> merge(std::span<const Event> first, std::span<const Event> second,
                         std::string_view label) {
  std::vector<Event> out(first.begin(), first.end());
  const int64_t first_begin = earliest(first), second_begin = earliest(second);
  std::set<std::string> taken;
  uint32_t last_pid = 0;
  uint64_t last_flow = 0;
  for (Event& e : out) {
    e.begin_ns -= first_begin;
    last_flow = std::max(last_flow, e.flow);
    last_pid = std::max(last_pid, e.pid);
    taken.insert(e.process);
  }
  const std::string suffix = " (" + std::string(label.empty() ? "2" : label) + ")";
  for (Event e : second) {
    e.begin_ns -= second_begin;
    e.pid += last_pid;
    if (is_flow(e)) e.flow += last_flow;
    if (taken.count(e.process) != 0) e.process += suffix;
    out.push_back(std::move(e));
  }
  return out;
}

}  // namespace picokernel::trace
