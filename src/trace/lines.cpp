// Time per line of the user's kernels.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <map>
#include <optional>
#include <tuple>

#include "trace/events.h"
#include "trace/text.h"

namespace picokernel::trace {

namespace {

using Place = std::pair<std::string, int64_t>;  // file, line

struct Sum {
  int64_t count = 0, total_ns = 0;
  void add(int64_t ns) {
    ++count;
    total_ns += ns;
  }
};

// What ran for a line: of one category and text.
struct Part {
  std::string category, text;
  bool within = true;  // the calls: counted in their time
  Sum sum;
};
struct Line {
  Sum sum;
  std::vector<Part> parts;  // in order of appearance

  void add(const std::string& category, const std::string& text, int64_t ns, bool within = true) {
    auto known = std::ranges::find_if(
        parts, [&](const Part& p) { return p.category == category && p.text == text; });
    if (known == parts.end())
      known =
          parts.insert(known, {.category = category, .text = text, .within = within, .sum = {}});
    known->sum.add(ns);
  }
};

struct OfKernel {
  const Event* first;
  Place definition, home;  // home: the line of its `def`, below decorators
  Sum calls;
  std::map<Place, Line> lines;
};

const Event::Value* find(const Event& e, std::string_view key) {
  for (const auto& [name, value] : e.args)
    if (name == key) return &value;
  return nullptr;
}

std::string text_arg(const Event& e, std::string_view key) {
  const auto* value = find(e, key);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? "" : *text;
}

// Of `file:line:column`.
std::optional<Place> place_of(const Event& e) {
  const std::string location = text_arg(e, "location");
  const size_t column = location.rfind(':');
  const size_t line = column == std::string::npos ? column : location.rfind(':', column - 1);
  if (line == std::string::npos) return std::nullopt;
  Place place{location.substr(0, line), 0};
  std::from_chars(location.data() + line + 1, location.data() + column, place.second);
  return place;
}

std::string stripped(std::string text) {
  const size_t begin = text.find_first_not_of(" \t");
  const size_t end = text.find_last_not_of(" \t\r\n");
  return begin == std::string::npos ? "" : text.substr(begin, end + 1 - begin);
}

Place below_decorators(const Place& definition, const SourceLine& source) {
  constexpr int64_t kMostDecorators = 30;
  for (int64_t n = definition.second; n < definition.second + kMostDecorators; ++n) {
    const std::string text = stripped(source(definition.first, n));
    if (text.starts_with("def ") || text.starts_with("async def ")) return {definition.first, n};
    if (text.empty()) break;
  }
  return definition;
}

// What ran, as the table says it: of printed source the line, its text, and what it is in the IR.
std::string description(const Event& e) {
  const std::string printed = text_arg(e, "source"), ir_op = text_arg(e, "ir_op");
  const auto* line = find(e, "line");
  if (printed.empty() || line == nullptr) return e.name;
  return std::to_string(std::get<int64_t>(*line)) + ": " + printed +
         (ir_op.empty() ? "" : "  # " + ir_op);
}

class Collector {
 public:
  explicit Collector(const SourceLine& source) : source_(source) {}

  // Spans in nesting order: what lies directly in a call belongs to it.
  void add(std::span<const Event> events) {
    const Event* call = nullptr;
    int64_t covered = 0;
    std::vector<const Event*> parts, later;
    for (const Event& e : events) {
      if (e.phase != Event::Phase::complete) continue;
      if (e.category == "device") later.push_back(&e);
      if (call != nullptr && call->pid == e.pid && call->tid == e.tid &&
          e.end_ns() <= call->end_ns()) {
        if (e.begin_ns < covered) continue;
        parts.push_back(&e);
        covered = e.end_ns();
      } else if (e.category == "call") {
        if (call != nullptr) add_call(*call, parts);
        parts.clear();
        call = &e;
        covered = e.begin_ns;
      }
    }
    if (call != nullptr) add_call(*call, parts);
    for (const Event* e : later)
      if (OfKernel* kernel = known(*e))
        kernel->lines[kernel->home].add(e->category, "after the call, on " + e->thread,
                                        e->duration_ns, false);
  }

  const std::vector<OfKernel>& kernels() const { return kernels_; }

 private:
  OfKernel* known(const Event& e) {
    const Place definition = place_of(e).value_or(Place{"?", 0});
    for (OfKernel& k : kernels_)
      if (k.first->pid == e.pid && k.first->name == e.name && k.definition == definition) return &k;
    return nullptr;
  }

  void add_call(const Event& call, const std::vector<const Event*>& parts) {
    OfKernel* kernel = known(call);
    if (kernel == nullptr) {
      const Place definition = place_of(call).value_or(Place{"?", 0});
      kernel = &kernels_.emplace_back(OfKernel{.first = &call,
                                               .definition = definition,
                                               .home = below_decorators(definition, source_),
                                               .calls = {},
                                               .lines = {}});
    }
    kernel->calls.add(call.duration_ns);
    std::map<Place, int64_t> times{{kernel->home, 0}};
    int64_t rest = 0;
    for (const Event* e : parts)
      if (e->category == "rest") rest += e->duration_ns;
    kernel->lines[kernel->home].add("rest", "of the call", rest);
    times[kernel->home] += rest;
    for (const Event* e : parts) {
      if (e->category == "rest") continue;
      Place place = place_of(*e).value_or(kernel->home);
      if (place == kernel->definition) place = kernel->home;
      kernel->lines[place].add(e->category, description(*e), e->duration_ns);
      times[place] += e->duration_ns;
    }
    for (const auto& [place, ns] : times) kernel->lines[place].sum.add(ns);
  }

  const SourceLine& source_;
  std::vector<OfKernel> kernels_;
};

using Row = std::array<std::string, 6>;

Row row(std::string what, const Sum& sum, int64_t whole, std::string text) {
  char share[16] = "0.0 %";
  if (whole > 0)
    std::snprintf(share, sizeof share, "%.1f %%",
                  100.0 * static_cast<double>(sum.total_ns) / static_cast<double>(whole));
  const auto total = static_cast<double>(sum.total_ns);
  return {std::move(what), std::to_string(sum.count),
          duration(total), duration(total / static_cast<double>(sum.count)),
          share,           std::move(text)};
}

std::string aligned(const std::vector<Row>& rows) {
  std::array<size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& r : rows)
    for (size_t i = 0; i < r.size(); ++i) widths[i] = std::max(widths[i], width(r[i]));
  std::string out;
  for (const Row& r : rows) {
    for (size_t i = 0; i < r.size(); ++i) {
      if (i != 0) out += "  ";
      append(out, r[i], widths[i], i != 0 && i + 1 != r.size());
    }
    end_line(out);
  }
  return out;
}

std::string table_of(const OfKernel& k, const SourceLine& source) {
  const std::string& file = k.home.first;
  const std::string base = file.substr(file.rfind('/') + 1);
  std::vector<std::pair<Place, const Line*>> order;  // the kernel's own file comes first
  for (const auto& [place, line] : k.lines) order.emplace_back(place, &line);
  std::ranges::stable_partition(order, [&](const auto& l) { return l.first.first == file; });
  std::vector<Row> rows{{"line", "count", "total", "mean", "share", "source and what ran for it"}};
  for (const auto& [place, line] : order) {
    const std::string where =
        (place.first == file ? base : place.first) + ":" + std::to_string(place.second);
    rows.push_back(
        row(where, line->sum, k.calls.total_ns, stripped(source(place.first, place.second))));
    for (const Part& part : line->parts) {
      rows.push_back(row("  " + part.category, part.sum, k.calls.total_ns, "  " + part.text));
      if (!part.within) rows.back()[4] = "-";
    }
  }
  return k.first->name + " on " + k.first->process + ": " + std::to_string(k.calls.count) +
         (k.calls.count > 1 ? " calls, " : " call, ") +
         duration(static_cast<double>(k.calls.total_ns)) + ", " + file + "\n" + aligned(rows);
}

}  // namespace

std::string lines(std::span<const Event> events, const SourceLine& source) {
  Collector collector(source);
  collector.add(events);
  std::string out;
  for (const OfKernel& k : collector.kernels())
    out += (out.empty() ? "" : "\n") + table_of(k, source);
  return out;
}

}  // namespace picokernel::trace
