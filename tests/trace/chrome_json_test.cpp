// The Chrome trace writer and the checker of such files.
#include "trace/chrome_json.h"

#include <limits>
#include <random>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace picokernel::trace {
namespace {

std::string write(std::span<const Event> events, const Metadata& metadata = {}) {
  std::ostringstream out;
  write_chrome_json(out, events, metadata);
  return out.str();
}

Event span(std::string name, int64_t begin, int64_t duration, uint32_t tid = 101) {
  Event e;
  e.name = std::move(name);
  e.category = "op";
  e.process = "numpy";
  e.thread = "main";
  e.pid = 2;
  e.tid = tid;
  e.begin_ns = begin;
  e.duration_ns = duration;
  return e;
}

testing::AssertionResult clean(const std::string& text) {
  const auto problems = check_chrome_json(text);
  if (problems.empty()) return testing::AssertionSuccess();
  auto result = testing::AssertionFailure();
  for (const std::string& p : problems) result << p << "\n";
  return result << text.substr(0, 2000);
}

TEST(ChromeJson, WholeNanosecondsAndMetadata) {
  Event e = span("multiply", 1234567, 8009);
  e.args = {{"line", int64_t{3}}, {"GB/s", 12.5}, {"source", std::string("a*b")}};
  const std::string text =
      write(std::vector{e}, {{"clock", std::string("tsc")}, {"base_unix_ns", int64_t{5}}});
  EXPECT_TRUE(clean(text));
  EXPECT_NE(
      text.find(
          R"({"ph":"X","name":"multiply","cat":"op","pid":2,"tid":101,"ts":1234.567,"dur":8.009,)"
          R"("args":{"line":3,"GB/s":12.5,"source":"a*b"}})"),
      std::string::npos)
      << text;
  EXPECT_NE(
      text.find(R"({"ph":"M","name":"process_name","pid":2,"tid":101,"args":{"name":"numpy"}})"),
      std::string::npos);
  EXPECT_NE(
      text.find(R"({"ph":"M","name":"thread_name","pid":2,"tid":101,"args":{"name":"main"}})"),
      std::string::npos);
  EXPECT_NE(text.find(R"("otherData":{"clock":"tsc","base_unix_ns":5})"), std::string::npos);
}

TEST(ChromeJson, TextIsEscapedAndMadeValid) {
  const std::string name =
      std::string("q\"b\\n\n\x01\x7f ü 日本 😀 ") + '\0' + "\xff\xc3(\xed\xa0\x80\xf0\x80\x80\x80";
  Event e = span(name, 0, 1);
  e.args = {{"k\t", std::string("v\x02")}};
  const std::string text = write(std::vector{e});
  EXPECT_TRUE(clean(text));
  const auto parsed = nlohmann::json::parse(text);
  const auto& event = parsed["traceEvents"].back();
  const std::string kept = std::string("q\"b\\n\n\x01\x7f ü 日本 😀 ") + '\0';
  const std::string shown = event["name"];
  EXPECT_EQ(shown.substr(0, kept.size()), kept);
  EXPECT_EQ(shown.substr(kept.size(), 7), "\xef\xbf\xbd\xef\xbf\xbd(");
  EXPECT_GT(shown.size(), kept.size() + 7);
  EXPECT_EQ(event["args"]["k\t"], "v\x02");
}

TEST(ChromeJson, NumbersThatJsonDoesNotKnow) {
  const double inf = std::numeric_limits<double>::infinity();
  Event e = span("x", 0, 1);
  e.args = {{"nan", std::nan("")}, {"inf", -inf}, {"small", 1e-300}};
  Event good = span("level", 0, 0), bad = span("level", 0, 0);
  good.phase = bad.phase = Event::Phase::counter;
  good.args = {{"value", int64_t{-4}}};
  bad.args = {{"value", inf}};
  const std::string text = write(std::vector{e, good, bad});
  EXPECT_TRUE(clean(text));
  EXPECT_NE(text.find(R"("nan":"nan","inf":"-inf","small":1e-300)"), std::string::npos) << text;
}

TEST(ChromeJson, WhateverTheEventsTheFileIsLegal) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; ++round) {
    std::vector<Event> events;
    for (size_t i = 1 + random() % 50; i > 0; --i) {
      Event e = span(
          "e" + std::to_string(random() % 5), static_cast<int64_t>(random() % 100000) - 20000,
          static_cast<int64_t>(random() % 30000) - 100, static_cast<uint32_t>(101 + random() % 3));
      if (random() % 8 == 0) e.phase = Event::Phase::instant;
      if (random() % 8 == 0) {
        e.phase = Event::Phase::counter;
        if (random() % 2 == 0) e.args = {{"value", static_cast<int64_t>(random())}};
      }
      events.push_back(e);
    }
    // A counter without arguments is left out, and a file without events is no trace.
    events.push_back(span("last", 0, 1));
    EXPECT_TRUE(clean(write(events)));
  }
}

std::string file(const std::string& events) { return R"({"traceEvents":[)" + events + "]}"; }

constexpr const char* kParent = R"({"ph":"X","name":"p","pid":1,"tid":2,"ts":0,"dur":100})";

TEST(ChromeCheck, AcceptsLegalFiles) {
  for (
      const std::string& text : {
          file(kParent),
          std::string("[") + kParent + "]",
          file(std::string(kParent) + R"(,{"ph":"X","name":"c","pid":1,"tid":2,"ts":10,"dur":40})"
                                      R"(,{"ph":"X","name":"d","pid":1,"tid":2,"ts":50,"dur":50})"
                                      R"(,{"ph":"X","name":"e","pid":1,"tid":3,"ts":5,"dur":500})"),
          file(std::string(kParent) + "," + kParent + "," + kParent),  // equal spans nest
          file(R"({"ph":"B","name":"b","pid":1,"tid":2,"ts":0},{"ph":"E","pid":1,"tid":2,"ts":9})"),
          file(std::string(kParent) +
               R"(,{"ph":"s","name":"f","cat":"c","id":1,"pid":1,"tid":2,"ts":5})"
               R"(,{"ph":"X","name":"g","pid":1,"tid":9,"ts":20,"dur":5})"
               R"(,{"ph":"f","bp":"e","name":"f","cat":"c","id":1,"pid":1,"tid":9,"ts":20})"),
          file(std::string(kParent) +
               R"(,{"ph":"C","name":"n","pid":1,"ts":3,"args":{"a":1,"b":2.5}})"
               R"(,{"ph":"i","name":"n","pid":1,"tid":2,"ts":3,"s":"t"})"
               R"(,{"ph":"M","name":"process_name","pid":1,"args":{"name":"x"}})"),
          file(R"({"ph":"b","name":"a","cat":"c","id":"0x1","pid":1,"tid":2,"ts":0},)"
               R"({"ph":"e","name":"a","cat":"c","id":"0x1","pid":1,"tid":2,"ts":9})"),
          std::string(
              R"({"displayTimeUnit":"ns","otherData":{"traceEvents":[1,2],"x":{"ph":"X"}},"traceEvents":[)") +
              kParent + "]}",
      })
    EXPECT_TRUE(clean(text));
}

struct Bad {
  const char* events;  // inside traceEvents, or the whole file if it starts with '!'
  const char* expected;
};

TEST(ChromeCheck, FindsWhatIsWrong) {
  const Bad cases[] = {
      {R"({"ph":"X","name":"a","pid":1,"tid":2,"ts":0,"dur":100},{"ph":"X","name":"b","pid":1,"tid":2,"ts":80,"dur":50})",
       "event 1 overlaps event 0 partly on the same pid and tid"},
      // Half a nanosecond over the parent's end is a whole one after rounding.
      {R"({"ph":"X","name":"a","pid":1,"tid":2,"ts":0,"dur":0.0104},{"ph":"X","name":"b","pid":1,"tid":2,"ts":0.0006,"dur":0.0098})",
       "overlaps"},
      {R"({"ph":"X","name":"a","pid":1,"tid":2,"ts":0})", "event 0 has no dur"},
      {R"({"ph":"X","name":"a","pid":1,"tid":2,"dur":1})", "event 0 has no ts"},
      {R"({"ph":"X","name":"a","pid":1,"tid":2,"ts":-1,"dur":1})", "has a ts that is negative"},
      {R"({"ph":"X","name":"a","pid":1,"tid":2,"ts":1,"dur":-1})", "has a dur that is negative"},
      {R"({"ph":"X","name":"a","pid":1,"tid":2,"ts":"1","dur":1})", "has a non-numeric ts"},
      {R"({"ph":"X","name":"a","pid":"one","tid":2,"ts":1,"dur":1})",
       "has a pid that is no 32-bit"},
      {R"({"ph":"X","name":"a","pid":1,"ts":1,"dur":1})", "has no tid"},
      {R"({"ph":"X","pid":1,"tid":2,"ts":1,"dur":1})", "has no name"},
      {R"({"ph":"Q","name":"a","pid":1,"tid":2,"ts":1})", "unknown ph 'Q'"},
      {R"({"name":"a","pid":1,"tid":2,"ts":1})", "has no ph"},
      {"7", "event 0 is no object"},
      {R"({"ph":"C","name":"a","pid":1,"ts":1,"args":{"v":"3"}})", "argument 'v' is no number"},
      {R"({"ph":"C","name":"a","pid":1,"ts":1})", "counter without args"},
      {R"({"ph":"E","pid":1,"tid":2,"ts":1})", "is an E without a B"},
      {R"({"ph":"B","name":"a","pid":1,"tid":2,"ts":1})", "is a B without an E"},
      {R"({"ph":"B","name":"a","pid":1,"tid":2,"ts":1},{"ph":"B","name":"b","pid":1,"tid":2,"ts":2},)"
       R"({"ph":"E","name":"a","pid":1,"tid":2,"ts":3},{"ph":"E","name":"b","pid":1,"tid":2,"ts":4})",
       "ends 'a' while 'b' is open"},
      {R"({"ph":"X","name":"a","pid":1,"tid":2,"ts":0,"dur":9},{"ph":"s","name":"f","id":1,"pid":1,"tid":2,"ts":1})",
       "starts a flow that never ends"},
      {R"({"ph":"X","name":"a","pid":1,"tid":2,"ts":0,"dur":9},{"ph":"f","bp":"e","name":"f","id":1,"pid":1,"tid":2,"ts":1})",
       "continues a flow that never starts"},
      {R"({"ph":"X","name":"a","pid":1,"tid":2,"ts":0,"dur":9},{"ph":"s","name":"f","id":1,"pid":1,"tid":2,"ts":5},)"
       R"({"ph":"f","bp":"e","name":"f","id":1,"pid":1,"tid":2,"ts":1})",
       "continues a flow before its start"},
      {R"({"ph":"X","name":"a","pid":1,"tid":2,"ts":0,"dur":9},{"ph":"s","name":"f","id":1,"pid":1,"tid":2,"ts":50},)"
       R"({"ph":"f","bp":"e","name":"f","id":1,"pid":1,"tid":2,"ts":60})",
       "touches no slice"},
      {R"({"ph":"X","name":"a","pid":1,"tid":2,"ts":0,"dur":9},{"ph":"s","name":"f","pid":1,"tid":2,"ts":1})",
       "needs an id"},
      {R"({"ph":"M","name":"process_name","pid":1})", "metadata without args"},
      {R"({"ph":"i","name":"a","pid":1,"tid":2,"ts":1,"s":"x"})", "scope"},
      {"", "the trace has no events"},
      {R"(!{"events":[]})", "neither a list of events nor"},
      {"!", "no JSON"},
      {R"(!{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":2,"ts":0,"dur":1},]})", "no JSON"},
      {R"(!{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":2,"ts":0,"dur":NaN}]})", "no JSON"},
      {"!{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\x01\",\"pid\":1,\"tid\":2,\"ts\":0,\"dur\":1}"
       "]}",
       "no JSON"},
      {"!{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"\xff\",\"pid\":1,\"tid\":2,\"ts\":0,\"dur\":1}]"
       "}",
       "no JSON"},
      {R"(!{"traceEvents":[{"ph":"X","name":"a")", "no JSON"},
  };
  for (const Bad& bad : cases) {
    const std::string text = bad.events[0] == '!' ? std::string(bad.events + 1) : file(bad.events);
    const auto problems = check_chrome_json(text);
    std::string all;
    for (const std::string& p : problems) all += p + "\n";
    EXPECT_NE(all.find(bad.expected), std::string::npos) << text << "\nfound: " << all;
  }
}

TEST(ChromeCheck, SaysHowMuchItLeavesOut) {
  std::string events;
  for (int i = 0; i < 200; ++i) events += std::string(i == 0 ? "" : ",") + "{}";
  const auto problems = check_chrome_json(file(events));
  ASSERT_EQ(problems.size(), 51u);
  EXPECT_EQ(problems.back(), "and 150 more");
}

}  // namespace
}  // namespace picokernel::trace
