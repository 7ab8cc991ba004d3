// Nesting, merging and the text summary.
#include "trace/events.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "trace/ceilings.h"

namespace picokernel::trace {
namespace {

Event span(std::string name, uint32_t pid, uint32_t tid, int64_t begin, int64_t duration) {
  Event e;
  e.name = std::move(name);
  e.category = "op";
  e.process = "p" + std::to_string(pid);
  e.pid = pid;
  e.tid = tid;
  e.begin_ns = begin;
  e.duration_ns = duration;
  return e;
}

// Nest or disjoint, checked pair by pair rather than with a stack as the code does.
bool legal(const std::vector<Event>& events) {
  for (size_t i = 0; i < events.size(); ++i)
    for (size_t j = i + 1; j < events.size(); ++j) {
      const Event &a = events[i], &b = events[j];
      if (a.pid != b.pid || a.tid != b.tid) continue;
      const bool disjoint = a.end_ns() <= b.begin_ns || b.end_ns() <= a.begin_ns;
      const bool a_in_b = b.begin_ns <= a.begin_ns && a.end_ns() <= b.end_ns();
      const bool b_in_a = a.begin_ns <= b.begin_ns && b.end_ns() <= a.end_ns();
      if (!disjoint && !a_in_b && !b_in_a) return false;
    }
  return true;
}

TEST(Derived, ArrowsToTheSyncOfTheCall) {
  std::vector<Event> events = {span("call", 2, 1, 0, 100),  span("a", 2, 1, 10, 20),
                               span("b", 2, 1, 30, 10),     span("eval", 2, 1, 50, 40),
                               span("call", 2, 1, 200, 50), span("c", 2, 1, 210, 10)};
  for (Event& e : events)
    e.category = e.name == "call" ? "call" : e.name == "eval" ? "sync" : "op_lazy";
  events[1].flow = 6;  // numbers are taken
  add_flows_and_counters(events);
  ASSERT_EQ(events.size(), 10u);
  const auto expect = [&](size_t i, Event::Phase phase, int64_t at, uint64_t flow) {
    EXPECT_EQ(events[i].phase, phase);
    EXPECT_EQ(events[i].begin_ns, at);
    EXPECT_EQ(events[i].flow, flow);
    EXPECT_EQ(events[i].name, "evaluated in");
  };
  expect(6, Event::Phase::flow_start, 20, 7);
  expect(7, Event::Phase::flow_end, 51, 7);
  expect(8, Event::Phase::flow_start, 35, 8);
  expect(9, Event::Phase::flow_end, 51, 8);
}

TEST(Derived, BytesMovedByProcessAndWay) {
  std::vector<Event> events = {span("a", 2, 1, 0, 10), span("b", 2, 1, 10, 10),
                               span("c", 2, 2, 5, 1), span("d", 3, 1, 0, 1)};
  const char* categories[] = {"h2d", "launch", "h2d", "h2d"};
  for (size_t i = 0; i < 4; ++i) {
    events[i].category = categories[i];
    events[i].args = {{"bytes", int64_t{1} << i}};
  }
  add_flows_and_counters(events);
  ASSERT_EQ(events.size(), 8u);
  std::vector<std::string> found;
  for (size_t i = 4; i < 8; ++i) {
    EXPECT_EQ(events[i].phase, Event::Phase::counter);
    const auto& [key, value] = events[i].args.at(0);
    found.push_back(std::to_string(events[i].begin_ns) + " " + std::to_string(events[i].pid) + " " +
                    key + " " + std::to_string(std::get<int64_t>(value)));
  }
  EXPECT_EQ(found,
            (std::vector<std::string>{"1 3 h2d 8", "6 2 h2d 4", "10 2 h2d 5", "20 2 kernels 2"}));
}

TEST(Nesting, ChildIsCutAtItsParentsEnd) {
  std::vector<Event> events = {span("child", 1, 1, 80, 50), span("grandchild", 1, 1, 90, 30),
                               span("parent", 1, 1, 0, 100), span("other thread", 1, 2, 80, 50)};
  EXPECT_FALSE(legal(events));
  order_and_nest(events);
  EXPECT_TRUE(legal(events));
  ASSERT_EQ(events[0].name, "parent");
  EXPECT_EQ(events[1].name, "child");
  EXPECT_EQ(events[1].duration_ns, 20);
  EXPECT_EQ(events[2].duration_ns, 10);
  EXPECT_EQ(events[3].duration_ns, 50);
}

TEST(Nesting, OfEqualSpansTheOneRecordedLastIsTheParent) {
  std::vector<Event> events = {span("inner", 1, 1, 0, 30), span("middle", 1, 1, 0, 30),
                               span("outer", 1, 1, 0, 30)};
  order_and_nest(events);
  EXPECT_EQ(events[0].name, "outer");
  EXPECT_EQ(events[2].name, "inner");
}

TEST(Nesting, OperationsOfNoLengthKeepTheirPlace) {
  std::vector<Event> events = {span("1", 1, 1, 0, 20), span("2", 1, 1, 20, 0),
                               span("3", 1, 1, 20, 0), span("4", 1, 1, 20, 10),
                               span("5", 1, 1, 30, 0), span("call", 1, 1, 0, 30)};
  order_and_nest(events);
  std::string names;
  for (const Event& e : events) names += e.name + " ";
  EXPECT_EQ(names, "call 1 2 3 4 5 ");
}

TEST(Processes, BackendIsInheritedWithinOneTick) {
  // The clock did not move at either end of the call.
  std::vector<Event> events = {
      span("at the begin", 0, 1, 10, 0), span("whole", 0, 1, 10, 10),
      span("at the end", 0, 1, 20, 0),   span("call", 0, 1, 10, 10),
      span("later", 0, 1, 20, 5),        span("other thread", 0, 2, 12, 2)};
  events[3].backend = "numpy";
  assign_processes(events);
  for (const Event& e : events) {
    const bool outside = e.name == "later" || e.name == "other thread";
    EXPECT_EQ(e.process, outside ? "host" : "numpy") << e.name;
  }
}

TEST(Nesting, RandomSpansBecomeLegalAndKeepTheirBegins) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<Event> events;
    std::multimap<int64_t, int64_t> before;
    for (size_t i = random() % 40; i > 0; --i) {
      events.push_back(span(
          "e", static_cast<uint32_t>(1 + random() % 2), static_cast<uint32_t>(1 + random() % 2),
          static_cast<int64_t>(random() % 50), static_cast<int64_t>(random() % 20)));
      before.emplace(events.back().begin_ns, events.back().duration_ns);
    }
    order_and_nest(events);
    EXPECT_TRUE(legal(events));
    ASSERT_EQ(events.size(), before.size());
    std::multimap<int64_t, int64_t> after;
    for (const Event& e : events) {
      EXPECT_GE(e.duration_ns, 0);
      after.emplace(e.begin_ns, e.duration_ns);
    }
    auto b = before.begin();
    for (const auto& [begin, duration] : after) EXPECT_EQ(begin, (b++)->first);
  }
}

TEST(Nesting, ProperlyNestedSpansStayAsTheyAre) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<Event> events;
  // Children first, as they are recorded.
  const auto grow = [&](auto&& self, int64_t begin, int64_t end, int depth) -> void {
    for (int64_t at = begin; at < end && depth < 5;) {
      const int64_t to = std::min<int64_t>(end, at + static_cast<int64_t>(random() % 200));
      self(self, at, to, depth + 1);
      at = to + static_cast<int64_t>(random() % 3);
    }
    events.push_back(span("e", 1, 1, begin, end - begin));
  };
  grow(grow, 0, 1000, 0);
  int64_t total = 0;
  for (const Event& e : events) total += e.duration_ns;
  order_and_nest(events);
  for (const Event& e : events) total -= e.duration_ns;
  EXPECT_EQ(total, 0);
  EXPECT_TRUE(legal(events));
}

TEST(Merge, BackendsLieSideBySide) {
  const std::vector<Event> numpy = {span("a", 1, 101, 5000, 10), span("b", 2, 101, 5002, 5)};
  const std::vector<Event> mlx = {span("a", 1, 101, 900, 10), span("c", 2, 101, 905, 5)};
  std::vector<Event> both = merge(numpy, mlx, "again");
  ASSERT_EQ(both.size(), 4u);
  EXPECT_TRUE(legal(both));
  EXPECT_EQ(both[0].begin_ns, 0);
  EXPECT_EQ(both[1].begin_ns, 2);
  EXPECT_EQ(both[2].begin_ns, 0);
  EXPECT_EQ(both[3].begin_ns, 5);
  EXPECT_EQ(both[2].pid, 3u);
  EXPECT_EQ(both[3].pid, 4u);
  EXPECT_EQ(both[1].process, "p2");
  EXPECT_EQ(both[3].process, "p2 (again)");
  EXPECT_TRUE(merge({}, {}).empty());
  EXPECT_EQ(merge({}, mlx).size(), 2u);
}

TEST(Table, CountsTotalsAndShares) {
  std::vector<Event> events = {span("call", 1, 1, 0, 1000), span("step", 1, 1, 0, 250),
                               span("step", 1, 1, 500, 250), span("call", 2, 1, 0, 3'000'000)};
  const std::string text = table(events);
  EXPECT_NE(text.find("process  category name    count       total        mean    share"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("p1       op       call        1     1.00 us     1.00 us  100.0 %"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("p1       op       step        2      500 ns      250 ns   50.0 %"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("p2       op       call        1     3.00 ms     3.00 ms  100.0 %"),
            std::string::npos)
      << text;
}

Event rated(std::string category, std::string backend, int64_t bytes, double rate, double flops) {
  Event e = span("f", 1, 1, 0, 100);
  e.category = std::move(category);
  e.backend = std::move(backend);
  if (bytes != 0) e.args = {{"bytes", bytes}, {"GB/s", rate}};
  if (flops != 0) e.args.emplace_back("GFLOP/s", flops);
  return e;
}

double share(const Event& e) {
  for (const auto& [key, value] : e.args)
    if (key == "% of ceiling") return std::get<double>(value);
  return 0;
}

std::string nearer(const Event& e) {
  for (const auto& [key, value] : e.args)
    if (key == "ceiling") return std::get<std::string>(value);
  return "";
}

TEST(Ceilings, SharesOfTheNearerOne) {
  set_ceiling("rated", {.bandwidth = {{10'000, 10}, {-1, 5}, {100, 40}, {7, 0}}, .gflops = 50});
  set_ceiling("slow", {.bandwidth = {}, .gflops = 0});
  std::vector<Event> events = {
      rated("launch", "rated", 100, 10, 10),   // 25 % and 20 %
      rated("op", "rated", 1000, 10, 0),       // between the sizes: 20 GB/s
      rated("op", "rated", 1'000'000, 5, 40),  // beyond them: 10 GB/s, and 80 %
      rated("launch", "rated", 1, 4, 0),       // below them: 40 GB/s
      rated("launch", "rated", 0, 0, 100),     // no array: twice the ceiling
      rated("h2d", "rated", 100, 10, 0),       // no kernel
      rated("launch", "other", 100, 10, 10),   // nothing is known
      rated("launch", "slow", 100, 10, 10),
  };
  add_shares(events);
  const std::pair<double, std::string> wanted[] = {
      {25, "memory"},   {50, "memory"}, {80, "compute"}, {10, "memory"},
      {200, "compute"}, {0, ""},        {0, ""},         {0, ""}};
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_NEAR(share(events[i]), wanted[i].first, 1e-9) << i;
    EXPECT_EQ(nearer(events[i]), wanted[i].second) << i;
  }
}

TEST(Table, RatesAreMeansOverTime) {
  Event fast = span("f", 1, 1, 0, 100), slow = span("f", 1, 1, 100, 300);
  fast.args = {{"bytes", int64_t{800}}, {"GB/s", 8.0}, {"% of ceiling", 50.0}};
  slow.args = {{"bytes", int64_t{600}}, {"GB/s", 2.0}, {"% of ceiling", 10.0}};
  const Event plain = span("g", 1, 1, 400, 100);
  const std::string text = table(std::vector{fast, slow, plain});
  EXPECT_NE(text.find("mean    share     GB/s  of ceiling\n"), std::string::npos) << text;
  EXPECT_NE(text.find("80.0 %      3.5      20.0 %\n"), std::string::npos) << text;
  EXPECT_NE(text.find("20.0 %\n"), std::string::npos) << text;
}

TEST(Lines, WhatRanStandsUnderItsLine) {
  const auto at = [](Event e, std::string category, std::string where) {
    e.category = std::move(category);
    if (!where.empty()) e.args.emplace_back("location", std::move(where));
    return e;
  };
  Event add = at(span("np.add(a, b)", 1, 1, 20, 50), "op", "f.py:4:5");
  add.args.emplace_back("line", int64_t{2});
  add.args.emplace_back("source", "np.add(a, b)");
  add.args.emplace_back("ir_op", "%2 = add %0, %1");
  const Event inner = at(span("inner", 1, 1, 30, 10), "user", "");
  std::vector<Event> events = {
      at(span("f", 1, 1, 0, 100), "call", "f.py:1:1"),
      at(span("output", 1, 1, 10, 10), "alloc", ""),
      add,
      inner,
      at(span("f", 1, 1, 70, 10), "launch", "f.py:1:1"),
      at(span("rest of the call", 1, 1, 80, 20), "rest", ""),
      at(span("f", 1, 1, 200, 100), "call", "f.py:1:1"),
      at(span("f", 1, 1, 300, 7), "call", "other.py:9:1"),  // of the same name
      at(span("f", 1, 2, 400, 30), "device", "f.py:1:1"),
  };
  events.back().thread = "stream";
  const std::map<int64_t, std::string> file = {
      {1, "@kernel"}, {2, "@again\n"}, {3, "def f(a, b):"}, {4, "    return a + b\n"}};
  const std::string text = lines(events, [&](const std::string& name, int64_t line) {
    return name == "f.py" && file.count(line) != 0 ? file.at(line) : "";
  });
  EXPECT_EQ(text,
            "f on p1: 2 calls, 200 ns, f.py\n"
            "line      count  total   mean   share  source and what ran for it\n"
            "f.py:3        2  40 ns  20 ns  20.0 %  def f(a, b):\n"
            "  rest        2  20 ns  10 ns  10.0 %    of the call\n"
            "  alloc       1  10 ns  10 ns   5.0 %    output\n"
            "  launch      1  10 ns  10 ns   5.0 %    f\n"
            "  device      1  30 ns  30 ns       -    after the call, on stream\n"
            "f.py:4        1  50 ns  50 ns  25.0 %  return a + b\n"
            "  op          1  50 ns  50 ns  25.0 %    2: np.add(a, b)  # %2 = add %0, %1\n"
            "\n"
            "f on p1: 1 call, 7 ns, other.py\n"
            "line        count  total  mean  share  source and what ran for it\n"
            "other.py:9      1   0 ns  0 ns  0.0 %\n"
            "  rest          1   0 ns  0 ns  0.0 %    of the call\n");
  EXPECT_EQ(lines({}, {}), "");
}

}  // namespace
}  // namespace picokernel::trace
