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

// A permutation: by (pid, tid), begin, longer first; at equal spans the later record first, since
// it is the parent.
std::vector<size_t> nesting_order(const std::vector<Event>& events) {
  std::vector<size_t> order(events.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Event &x = events[a], &y = events[b];
    return std::tuple(x.pid, x.tid, x.begin_ns, -x.duration_ns, b) <
           std::tuple(y.pid, y.tid, y.begin_ns, -y.duration_ns, a);
  });
  return order;
}

int64_t earliest(std::span<const Event> events) {
  int64_t begin = std::numeric_limits<int64_t>::max();
  for (const Event& e : events) begin = std::min(begin, e.begin_ns);
  return begin;
}

}  // namespace

void order_and_nest(std::vector<Event>& events) {
  std::vector<Event> ordered;
  ordered.reserve(events.size());
  for (const size_t i : nesting_order(events)) ordered.push_back(std::move(events[i]));
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
  std::vector<const Event*> open;
  uint32_t tid = 0;
  for (Event& e : events) {
    if (tid != e.tid) open.clear();
    tid = e.tid;
    while (!open.empty() && open.back()->end_ns() <= e.begin_ns) open.pop_back();
    // A counter has one track, whoever was running when it changed.
    const bool inherits = e.backend.empty() && e.phase != Event::Phase::counter;
    if (inherits && !open.empty()) e.backend = open.back()->backend;
    if (is_span(e)) open.push_back(&e);
  }

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

std::vector<Event> merge(std::span<const Event> first, std::span<const Event> second,
                         std::string_view label) {
  std::vector<Event> out(first.begin(), first.end());
  const int64_t first_begin = earliest(first), second_begin = earliest(second);
  std::set<std::string> taken;
  uint32_t last_pid = 0;
  for (Event& e : out) {
    e.begin_ns -= first_begin;
    last_pid = std::max(last_pid, e.pid);
    taken.insert(e.process);
  }
  const std::string suffix = " (" + std::string(label.empty() ? "2" : label) + ")";
  for (Event e : second) {
    e.begin_ns -= second_begin;
    e.pid += last_pid;
    if (taken.count(e.process) != 0) e.process += suffix;
    out.push_back(std::move(e));
  }
  return out;
}

}  // namespace picokernel::trace
