// The writer of Chrome Trace Event JSON.
#include "trace/chrome_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

namespace picokernel::trace {

namespace {

// The length of the UTF-8 sequence at `at`, or 0 if it is none (overlong forms and surrogates are
// none).
size_t sequence_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto tail = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(at), second = byte(at + 1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return tail(at + 1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && second < 0xa0,
               surrogate = first == 0xed && second >= 0xa0;
    return tail(at + 1) && tail(at + 2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && second < 0x90,
               too_large = first == 0xf4 && second >= 0x90;
    return tail(at + 1) && tail(at + 2) && tail(at + 3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

class Writer {
 public:
  explicit Writer(std::ostream& out) : out_(out) {}
  ~Writer() { flush(); }

  void raw(std::string_view text) { buffer_ += text; }

  void string(std::string_view text) {
    buffer_ += '"';
    for (size_t i = 0; i < text.size();) {
      const char c = text[i];
      const size_t length = sequence_length(text, i);
      if (length == 0) {
        buffer_ += "\xef\xbf\xbd";  // U+FFFD
        ++i;
        continue;
      }
      if (c == '"' || c == '\\') {
        buffer_ += '\\';
        buffer_ += c;
      } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
        buffer_ += escape;
      } else {
        buffer_ += text.substr(i, length);
      }
      i += length;
    }
    buffer_ += '"';
  }

  template <class Number>
  void number(Number value) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    buffer_.append(digits, end);
  }

  void value(const Event::Value& value) {
    if (const auto* text = std::get_if<std::string>(&value)) return string(*text);
    if (const auto* integer = std::get_if<int64_t>(&value)) return number(*integer);
    const double real = std::get<double>(value);
    if (!std::isfinite(real)) return string(std::isnan(real) ? "nan" : real > 0 ? "inf" : "-inf");
    char digits[32];
    const auto end =
        std::to_chars(digits, digits + sizeof digits, real, std::chars_format::general, 6).ptr;
    buffer_.append(digits, end);
  }

  // Whole nanoseconds as decimal microseconds.
  void time(int64_t ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ns / 1000),
                  static_cast<long long>(ns % 1000));
    buffer_ += text;
  }

  void object(const Metadata& entries) {
    buffer_ += '{';
    bool first = true;
    for (const auto& [key, entry] : entries) {
      if (!first) buffer_ += ',';
      first = false;
      string(key);
      buffer_ += ':';
      value(entry);
    }
    buffer_ += '}';
  }

  void begin_event() {
    buffer_ += any_event_ ? ",\n" : "\n";
    any_event_ = true;
    if (buffer_.size() > kFlushAt) flush();
  }

  void ids(const Event& e) {
    buffer_ += ",\"pid\":";
    number(e.pid);
    buffer_ += ",\"tid\":";
    number(e.tid);
  }

  void name_of(const char* what, uint32_t pid, uint32_t tid, std::string_view name) {
    begin_event();
    buffer_ += "{\"ph\":\"M\",\"name\":\"";
    buffer_ += what;
    buffer_ += "\",\"pid\":";
    number(pid);
    buffer_ += ",\"tid\":";
    number(tid);
    buffer_ += ",\"args\":{\"name\":";
    string(name);
    buffer_ += "}}";
  }

  void event(const Event& e, int64_t shift) {
    begin_event();
    buffer_ += "{\"ph\":\"";
    buffer_ += static_cast<char>(e.phase);
    buffer_ += "\",\"name\":";
    string(e.name);
    if (!e.category.empty()) {
      buffer_ += ",\"cat\":";
      string(e.category);
    }
    ids(e);
    buffer_ += ",\"ts\":";
    time(e.begin_ns + shift);
    switch (e.phase) {
      case Event::Phase::complete:
        buffer_ += ",\"dur\":";
        time(e.duration_ns);
        break;
      case Event::Phase::instant:
        buffer_ += ",\"s\":\"t\"";
        break;
      case Event::Phase::counter:
        break;
    }
    if (!e.args.empty()) {
      buffer_ += ",\"args\":";
      object(e.args);
    }
    buffer_ += '}';
  }

  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

 private:
  static constexpr size_t kFlushAt = size_t{1} << 20;
  std::ostream& out_;
  std::string buffer_;
  bool any_event_ = false;
};

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

  Writer writer(out);
  writer.raw("{\"displayTimeUnit\":\"ns\",\n\"otherData\":");
  writer.object(metadata);
  writer.raw(",\n\"traceEvents\":[");
  std::set<uint32_t> processes;
  std::set<std::pair<uint32_t, uint32_t>> threads;
  for (const Event& e : sorted) {
    if (processes.insert(e.pid).second && !e.process.empty())
      writer.name_of("process_name", e.pid, e.tid, e.process);
    if (threads.insert({e.pid, e.tid}).second && !e.thread.empty())
      writer.name_of("thread_name", e.pid, e.tid, e.thread);
  }
  for (const Event& e : sorted) writer.event(e, shift);
  writer.raw("\n]}\n");
}

}  // namespace picokernel::trace
