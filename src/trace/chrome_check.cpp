// The checker of Chrome Trace Event JSON.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include <nlohmann/json.hpp>

#include "trace/chrome_json.h"

namespace picokernel::trace {

namespace {

using Json = nlohmann::json;

constexpr size_t kMaxProblems = 50;

struct Slice {
  int64_t begin, end;
  size_t event;            // for messages
  int64_t latest_end = 0;  // of this slice and all that sort before it
};

struct FlowPoint {
  std::tuple<uint32_t, uint32_t> track;
  int64_t at;
  size_t event;
  bool to_enclosing;
};

struct Flow {
  std::vector<FlowPoint> starts, steps, ends;
};

class Checker {
 public:
  void event(const Json& e) {
    const size_t index = events_++;
    if (!e.is_object()) return problem(index, "is no object");
    const auto ph = e.find("ph");
    if (ph == e.end() || !ph->is_string() || ph->get_ref<const std::string&>().size() != 1)
      return problem(index, "has no ph of one letter");
    const char phase = ph->get_ref<const std::string&>()[0];
    if (std::string_view("XBEiICMstfben").find(phase) == std::string_view::npos)
      return problem(index, std::string("has the unknown ph '") + phase + "'");
    if (const auto name = e.find("name"); phase != 'E' && (name == e.end() || !name->is_string()))
      problem(index, "has no name");

    const auto pid = id_of(e, "pid", index, true);
    const auto tid = id_of(e, "tid", index, phase != 'M' && phase != 'C');
    if (phase == 'M') return metadata(e, index);
    const auto ts = time_of(e, "ts", index);
    if (!pid || !ts) return;
    const auto track = std::tuple(*pid, tid.value_or(*pid));

    switch (phase) {
      case 'X': {
        const auto dur = time_of(e, "dur", index);
        if (!dur) return;
        slices_[track].push_back({*ts, *ts + *dur, index, 0});
        break;
      }
      case 'B':
      case 'E':
        marks_[track].push_back({*ts, index, phase == 'B', text_of(e, "name")});
        break;
      case 'i':
      case 'I':
        if (const auto scope = e.find("s");
            scope != e.end() && *scope != "g" && *scope != "p" && *scope != "t")
          problem(index, "has a scope other than g, p and t");
        break;
      case 'C':
        counter(e, index);
        break;
      case 's':
      case 't':
      case 'f': {
        const auto key = flow_key(e, index);
        if (!key) return;
        Flow& flow = flows_[*key];
        const FlowPoint point{track, *ts, index, phase != 'f' || text_of(e, "bp") == "e"};
        (phase == 's' ? flow.starts : phase == 't' ? flow.steps : flow.ends).push_back(point);
        break;
      }
      default:
        break;
    }
  }

  std::vector<std::string> finish() {
    for (auto& [track, marks] : marks_) pair_marks(slices_[track], marks);
    for (auto& [track, slices] : slices_) check_nesting(slices);
    for (const auto& [key, flow] : flows_) check_flow(flow);
    if (suppressed_ != 0) problems_.push_back("and " + std::to_string(suppressed_) + " more");
    return std::move(problems_);
  }

  size_t events() const { return events_; }

  void problem(std::string text) {
    if (problems_.size() < kMaxProblems)
      problems_.push_back(std::move(text));
    else
      ++suppressed_;
  }

 private:
  using Track = std::tuple<uint32_t, uint32_t>;
  struct Mark {
    int64_t at;
    size_t event;
    bool begin;
    std::string name;
  };

  void problem(size_t event, std::string_view text) {
    problem("event " + std::to_string(event) + " " + std::string(text));
  }

  static std::string text_of(const Json& e, const char* key) {
    const auto found = e.find(key);
    return found != e.end() && found->is_string() ? found->get<std::string>() : std::string();
  }

  std::optional<uint32_t> id_of(const Json& e, const char* key, size_t index, bool required) {
    const auto found = e.find(key);
    if (found == e.end()) {
      if (required) problem(index, std::string("has no ") + key);
      return std::nullopt;
    }
    if (!found->is_number_unsigned() ||
        found->get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
      problem(index, std::string("has a ") + key + " that is no 32-bit unsigned integer");
      return std::nullopt;
    }
    return found->get<uint32_t>();
  }

  // Microseconds in the file, whole nanoseconds in the viewer.
  std::optional<int64_t> time_of(const Json& e, const char* key, size_t index) {
    const auto found = e.find(key);
    if (found == e.end() || !found->is_number()) {
      problem(index, std::string(found == e.end() ? "has no " : "has a non-numeric ") + key);
      return std::nullopt;
    }
    const double us = found->get<double>();
    if (!(us >= 0) || us > 9e15) {
      problem(index, std::string("has a ") + key + " that is negative or no time");
      return std::nullopt;
    }
    return std::llround(us * 1000);
  }

  void metadata(const Json& e, size_t index) {
    const std::string name = text_of(e, "name");
    const auto args = e.find("args");
    if (args == e.end() || !args->is_object()) return problem(index, "is metadata without args");
    if ((name == "process_name" || name == "thread_name") && text_of(*args, "name").empty())
      problem(index, "names a process or thread without args.name");
    if ((name == "process_sort_index" || name == "thread_sort_index") &&
        (!args->contains("sort_index") || !(*args)["sort_index"].is_number()))
      problem(index, "sorts a process or thread without args.sort_index");
  }

  void counter(const Json& e, size_t index) {
    const auto args = e.find("args");
    if (args == e.end() || !args->is_object() || args->empty())
      return problem(index, "is a counter without args");
    for (const auto& [key, value] : args->items())
      if (!value.is_number())
        problem(index, "is a counter whose argument '" + key + "' is no number");
  }

  std::optional<std::string> flow_key(const Json& e, size_t index) {
    const auto id = e.find("id");
    if (id == e.end() || !(id->is_string() || id->is_number_integer())) {
      problem(index, "needs an id");
      return std::nullopt;
    }
    return text_of(e, "cat") + '\0' + text_of(e, "name") + '\0' + id->dump();
  }

  // Pairs begins and ends in order of time; equal times keep the file's order.
  void pair_marks(std::vector<Slice>& slices, std::vector<Mark>& marks) {
    std::sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
      return std::tie(a.at, a.event) < std::tie(b.at, b.event);
    });
    std::vector<const Mark*> open;
    for (const Mark& mark : marks) {
      if (mark.begin) {
        open.push_back(&mark);
        continue;
      }
      if (open.empty()) {
        problem(mark.event, "is an E without a B");
        continue;
      }
      if (!mark.name.empty() && mark.name != open.back()->name)
        problem(mark.event, "ends '" + mark.name + "' while '" + open.back()->name + "' is open");
      slices.push_back({open.back()->at, mark.at, open.back()->event, 0});
      open.pop_back();
    }
    for (const Mark* mark : open) problem(mark->event, "is a B without an E");
  }

  void check_nesting(std::vector<Slice>& slices) {
    std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
      return std::tie(a.begin, b.end, a.event) < std::tie(b.begin, a.end, b.event);
    });
    std::vector<const Slice*> open;
    int64_t latest_end = 0;
    for (Slice& slice : slices) {
      slice.latest_end = latest_end = std::max(latest_end, slice.end);
      while (!open.empty() && open.back()->end <= slice.begin) open.pop_back();
      if (!open.empty() && slice.end > open.back()->end)
        problem(slice.event, "overlaps event " + std::to_string(open.back()->event) +
                                 " partly on the same pid and tid");
      open.push_back(&slice);
    }
  }

  // Does the point touch a slice, or (an f without bp: e) does one start at or after it? Slices are
  // sorted by begin.
  bool touches_slice(const FlowPoint& point) const {
    const auto found = slices_.find(point.track);
    if (found == slices_.end() || found->second.empty()) return false;
    const std::vector<Slice>& slices = found->second;
    if (!point.to_enclosing) return slices.back().begin >= point.at;
    const auto after =
        std::upper_bound(slices.begin(), slices.end(), point.at,
                         [](int64_t at, const Slice& slice) { return at < slice.begin; });
    return after != slices.begin() && std::prev(after)->latest_end >= point.at;
  }

  void check_flow(const Flow& flow) {
    if (flow.starts.empty()) {
      for (const auto* points : {&flow.steps, &flow.ends})
        for (const FlowPoint& point : *points)
          problem(point.event, "continues a flow that never starts");
      return;
    }
    if (flow.starts.size() > 1)
      problem(flow.starts[1].event, "starts a flow that has started already");
    if (flow.ends.empty()) problem(flow.starts[0].event, "starts a flow that never ends");
    for (const auto* points : {&flow.starts, &flow.steps, &flow.ends})
      for (const FlowPoint& point : *points) {
        if (point.at < flow.starts[0].at) problem(point.event, "continues a flow before its start");
        if (!touches_slice(point)) problem(point.event, "is a flow point that touches no slice");
      }
  }

  size_t events_ = 0;
  size_t suppressed_ = 0;
  std::vector<std::string> problems_;
  std::map<Track, std::vector<Slice>> slices_;
  std::map<Track, std::vector<Mark>> marks_;
  std::map<std::string, Flow> flows_;
};

}  // namespace

std::vector<std::string> check_chrome_json(std::string_view text) {
  Checker checker;
  // Events are checked and thrown away as they are parsed: a trace of a gigabyte must not need ten.
  bool in_events = false, found_events = false;
  int event_depth = 1;
  const auto visit = [&](int depth, Json::parse_event_t kind, Json& parsed) {
    if (depth == 0 && kind == Json::parse_event_t::array_start) in_events = found_events = true;
    if (depth == 1 && kind == Json::parse_event_t::key) {
      in_events = parsed == "traceEvents";
      event_depth = 2;
    }
    if (depth == 1 && event_depth == 2 && in_events && kind == Json::parse_event_t::array_start)
      found_events = true;
    const bool ends = kind == Json::parse_event_t::object_end ||
                      kind == Json::parse_event_t::array_end || kind == Json::parse_event_t::value;
    if (in_events && found_events && depth == event_depth && ends) {
      checker.event(parsed);
      return false;
    }
    return true;
  };
  try {
    const Json rest = Json::parse(text, visit);
  } catch (const Json::exception& error) {
    return {std::string("the file is no JSON: ") + error.what()};
  }
  if (!found_events)
    return {"the file is neither a list of events nor an object with a list traceEvents"};
  if (checker.events() == 0) return {"the trace has no events"};
  return checker.finish();
}

}  // namespace picokernel::trace
