// The text summary of a list of events.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <tuple>

#include "trace/events.h"
#include "trace/text.h"

namespace picokernel::trace {

namespace {

// Columns of means over time, of those events that say so: key of the argument, heading, width.
struct Rate {
  const char *key, *heading;
  size_t width;
};
constexpr std::array kRates = {Rate{"GB/s", "GB/s", 9}, Rate{"GFLOP/s", "GFLOP/s", 9},
                               Rate{"% of ceiling", "of ceiling", 12}};
using Rates = std::array<double, kRates.size()>;

Rates rates_of(const Event& e) {
  Rates rates{};
  for (const auto& [key, value] : e.args)
    for (size_t i = 0; i < kRates.size(); ++i)
      if (const auto* rate = std::get_if<double>(&value); rate != nullptr && key == kRates[i].key)
        rates[i] = *rate;
  return rates;
}

struct Row {
  uint32_t pid;
  const std::string* process;
  const std::string* category;
  const std::string* name;
  int64_t count = 0;
  int64_t total_ns = 0;
  Rates amounts{};                                // rate times nanoseconds
  std::array<int64_t, kRates.size()> rated_ns{};  // of the events that have a rate

  void add(const Event& e, const Rates& rates) {
    ++count;
    total_ns += e.duration_ns;
    for (size_t i = 0; i < kRates.size(); ++i) {
      if (rates[i] == 0) continue;
      amounts[i] += rates[i] * static_cast<double>(e.duration_ns);
      rated_ns[i] += e.duration_ns;
    }
  }
  std::string mean_rate(size_t i) const {
    if (rated_ns[i] == 0) return "";
    char text[32];
    const bool share = i + 1 == kRates.size();
    const double mean = amounts[i] / static_cast<double>(rated_ns[i]);
    std::snprintf(text, sizeof text, share ? "%.1f %%" : mean < 1000 ? "%.3g" : "%.0f", mean);
    return text;
  }
};

}  // namespace

std::string table(std::span<const Event> events) {
  std::vector<Event> sorted;
  for (const Event& e : events)
    if (e.phase == Event::Phase::complete) sorted.push_back(e);
  order_and_nest(sorted);

  // The time of a process is that of its outermost spans; everything else happens inside those.
  std::map<uint32_t, int64_t> process_ns;
  std::map<std::tuple<uint32_t, std::string_view, std::string_view>, Row> rows;
  std::pair<uint32_t, uint32_t> track{};
  int64_t covered_until = 0;
  for (const Event& e : sorted) {
    if (track != std::pair(e.pid, e.tid)) covered_until = e.begin_ns;
    track = {e.pid, e.tid};
    if (e.begin_ns >= covered_until) {
      process_ns[e.pid] += e.duration_ns;
      covered_until = e.end_ns();
    }
    Row& row =
        rows.try_emplace({e.pid, e.category, e.name}, Row{e.pid, &e.process, &e.category, &e.name})
            .first->second;
    row.add(e, rates_of(e));
  }

  std::vector<Row> order;
  size_t name_width = 4, process_width = 7;
  for (const auto& [key, row] : rows) {
    order.push_back(row);
    name_width = std::max(name_width, width(*row.name));
    process_width = std::max(process_width, width(*row.process));
  }
  std::sort(order.begin(), order.end(), [](const Row& a, const Row& b) {
    return std::tie(a.pid, b.total_ns, *a.category, *a.name) <
           std::tie(b.pid, a.total_ns, *b.category, *b.name);
  });

  std::array<bool, kRates.size()> shown{};
  for (const Row& row : order)
    for (size_t i = 0; i < kRates.size(); ++i) shown[i] = shown[i] || row.rated_ns[i] != 0;

  std::string out;
  const auto line = [&](std::string_view process, std::string_view category, std::string_view name,
                        std::string_view count, std::string_view total, std::string_view mean,
                        std::string_view share, const auto& rate) {
    append(out, process, process_width + 2);
    append(out, category, 9);
    append(out, name, name_width);
    append(out, count, 9, true);
    append(out, total, 12, true);
    append(out, mean, 12, true);
    append(out, share, 9, true);
    for (size_t i = 0; i < kRates.size(); ++i)
      if (shown[i]) append(out, rate(i), kRates[i].width, true);
    end_line(out);
  };
  line("process", "category", "name", "count", "total", "mean", "share",
       [](size_t i) { return kRates[i].heading; });
  for (const Row& row : order) {
    char share[16] = "-";
    if (const int64_t whole = process_ns[row.pid]; whole > 0)
      std::snprintf(share, sizeof share, "%.1f %%",
                    100.0 * static_cast<double>(row.total_ns) / static_cast<double>(whole));
    line(*row.process, *row.category, *row.name, std::to_string(row.count),
         duration(static_cast<double>(row.total_ns)),
         duration(static_cast<double>(row.total_ns) / static_cast<double>(row.count)), share,
         [&](size_t i) { return row.mean_rate(i); });
  }
  return out;
}

}  // namespace picokernel::trace
