// The writer of Chrome Trace Event JSON.
#include "trace/chrome_json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

#include <nlohmann/json.hpp>

namespace picokernel::trace {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Event::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  const double real = std::get<double>(value);
  if (!std::isfinite(real)) return std::isnan(real) ? "nan" : real > 0 ? "inf" : "-inf";
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.6g", real);
  return std::strtod(digits, nullptr);
}

Json json_of(const Metadata& entries) {
  Json object = Json::object();
  for (const auto& [key, value] : entries) object[key] = json_of(value);
  return object;
}

Json name_of(const char* what, const Event& e, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", e.pid}, {"tid", e.tid}, {"args", {{"name", name}}}};
}

Json json_of(const Event& e, int64_t shift) {
  // Whole nanoseconds as decimal microseconds: the shortest text that gives this double does.
  const auto time = [](int64_t ns) { return static_cast<double>(ns) / 1000; };
  Json object = {{"ph", std::string(1, static_cast<char>(e.phase))}, {"name", e.name}};
  if (!e.category.empty()) object["cat"] = e.category;
  object["pid"] = e.pid;
  object["tid"] = e.tid;
  object["ts"] = time(e.begin_ns + shift);
  if (e.phase == Event::Phase::complete) object["dur"] = time(e.duration_ns);
  if (e.phase == Event::Phase::instant) object["s"] = "t";
  if (is_flow(e)) object["id"] = e.flow;
  if (e.phase == Event::Phase::flow_end) object["bp"] = "e";
  if (!e.args.empty()) object["args"] = json_of(e.args);
  return object;
}

// Text that is no UTF-8 is made so.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A counter whose value is no finite number cannot be drawn, and viewers reject the file's counter.
bool drawable(const Event& e) {
  if (e.phase != Event::Phase::counter) return true;
  return !e.args.empty() && std::all_of(e.args.begin(), e.args.end(), [](const auto& arg) {
    const auto* real = std::get_if<double>(&arg.second);
    return std::holds_alternative<int64_t>(arg.second) || (real != nullptr && std::isfinite(*real));
  });
}

}  // namespace

void write_chrome_json(std::ostream& out, std::span<const Event> events, const Metadata& metadata) {
  std::vector<Event> sorted(events.begin(), events.end());
  for (Event& e : sorted) e.duration_ns = std::max<int64_t>(0, e.duration_ns);
  order_and_nest(sorted);
  std::erase_if(sorted, [](const Event& e) { return !drawable(e); });
  int64_t shift = 0;
  for (const Event& e : sorted) shift = std::max(shift, -e.begin_ns);

  out << "{\"displayTimeUnit\":\"ns\",\n\"otherData\":" << text_of(json_of(metadata))
      << ",\n\"traceEvents\":[";
  const char* between = "\n";
  const auto line = [&](const Json& json) {
    out << between << text_of(json);
    between = ",\n";
  };
  std::set<uint32_t> processes;
  std::set<std::pair<uint32_t, uint32_t>> threads;
  for (const Event& e : sorted) {
    if (processes.insert(e.pid).second && !e.process.empty())
      line(name_of("process_name", e, e.process));
    if (threads.insert({e.pid, e.tid}).second && !e.thread.empty())
      line(name_of("thread_name", e, e.thread));
  }
  for (const Event& e : sorted) line(json_of(e, shift));
  out << "\n]}\n";
}

}  // namespace picokernel::trace
