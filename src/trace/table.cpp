// The text summary of a list of events.
#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "trace/events.h"

namespace picokernel::trace {

namespace {

struct Row {
  uint32_t pid;
  const std::string* process;
  const std::string* category;
  const std::string* name;
  int64_t count = 0;
  int64_t total_ns = 0;
};

std::string duration(double ns) {
  char text[32];
  if (ns < 1e3)
    std::snprintf(text, sizeof text, "%.0f ns", ns);
  else if (ns < 1e6)
    std::snprintf(text, sizeof text, "%.2f us", ns / 1e3);
  else if (ns < 1e9)
    std::snprintf(text, sizeof text, "%.2f ms", ns / 1e6);
  else
    std::snprintf(text, sizeof text, "%.2f s", ns / 1e9);
  return text;
}

// Characters, not bytes: names are UTF-8.
size_t width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

void append(std::string& out, std::string_view text, size_t column, bool right = false) {
  const size_t blank = column > width(text) ? column - width(text) : 0;
  if (right) out.append(blank, ' ');
  out += text;
  if (!right) out.append(blank, ' ');
}

}  // namespace

std::string table(std::span<const Event> events) {
  std::vector<Event> sorted;
  for (const Event& e : events)
    if (e.phase == Event::Phase::complete) {
      Event& copy = sorted.emplace_back(e);
      copy.args.clear();
    }
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
    ++row.count;
    row.total_ns += e.duration_ns;
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

  std::string out;
  const auto line = [&](std::string_view process, std::string_view category, std::string_view name,
                        std::string_view count, std::string_view total, std::string_view mean,
                        std::string_view share) {
    append(out, process, process_width + 2);
    append(out, category, 9);
    append(out, name, name_width);
    append(out, count, 9, true);
    append(out, total, 12, true);
    append(out, mean, 12, true);
    append(out, share, 9, true);
    out += '\n';
  };
  line("process", "category", "name", "count", "total", "mean", "share");
  for (const Row& row : order) {
    char share[16] = "-";
    if (const int64_t whole = process_ns[row.pid]; whole > 0)
      std::snprintf(share, sizeof share, "%.1f %%",
                    100.0 * static_cast<double>(row.total_ns) / static_cast<double>(whole));
    line(*row.process, *row.category, *row.name, std::to_string(row.count),
         duration(static_cast<double>(row.total_ns)),
         duration(static_cast<double>(row.total_ns) / static_cast<double>(row.count)), share);
  }
  return out;
}

}  // namespace picokernel::trace
