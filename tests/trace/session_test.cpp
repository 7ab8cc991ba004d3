// Recording: what a session sees, what it drops, and what threads and nested sessions do to it.
#include "trace/session.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "trace/trace.h"

namespace picokernel::trace {
namespace {

size_t count(const std::vector<Event>& events, std::string_view name) {
  return static_cast<size_t>(
      std::count_if(events.begin(), events.end(), [&](const Event& e) { return e.name == name; }));
}

const Event& find(const std::vector<Event>& events, std::string_view name) {
  const auto found =
      std::find_if(events.begin(), events.end(), [&](const Event& e) { return e.name == name; });
  if (found == events.end()) throw std::runtime_error("no event " + std::string(name));
  return *found;
}

template <class T>
T arg(const Event& e, std::string_view key) {
  for (const auto& [name, value] : e.args)
    if (name == key) return std::get<T>(value);
  throw std::runtime_error("no argument " + std::string(key));
}

bool has_arg(const Event& e, std::string_view key) {
  return std::any_of(e.args.begin(), e.args.end(), [&](const auto& a) { return a.first == key; });
}

TEST(Names, EqualTextsHaveOneNumber) {
  EXPECT_EQ(intern("alpha"), intern(std::string("al") + "pha"));
  EXPECT_NE(intern("alpha"), intern("beta"));
  EXPECT_EQ(intern_backend(""), kEnclosingBackend);
  EXPECT_EQ(category_name(Category::op_lazy), "op_lazy");
  EXPECT_EQ(kCategoryCount, 12u);
}

TEST(Session, NobodyListens) {
  EXPECT_FALSE(enabled());
  {
    const Span span(Category::op, intern("unheard"));
  }
  counter(intern("unheard"), 1);
  Session session;
  EXPECT_TRUE(enabled());
  session.stop();
  EXPECT_FALSE(enabled());
  EXPECT_TRUE(session.events().empty());
}

TEST(Session, SpansInstantsAndCounters) {
  Session session;
  {
    const Span outer(Category::call, intern("outer"), 7);
    const Span inner(Category::alloc, intern("inner"), 4096);
    instant(Category::cache, intern("moment"));
    counter(intern("gauge"), -3);
  }
  session.stop();
  const auto& events = session.events();
  ASSERT_EQ(events.size() - count(events, "rest of the call"), 4u);
  const Event &outer = find(events, "outer"), &inner = find(events, "inner");
  EXPECT_EQ(outer.category, "call");
  EXPECT_EQ(arg<int64_t>(outer, "elements"), 7);
  EXPECT_EQ(arg<int64_t>(inner, "bytes"), 4096);
  EXPECT_LE(outer.begin_ns, inner.begin_ns);
  EXPECT_GE(outer.end_ns(), inner.end_ns());
  EXPECT_EQ(find(events, "moment").phase, Event::Phase::instant);
  EXPECT_EQ(arg<int64_t>(find(events, "gauge"), "value"), -3);
  EXPECT_EQ(outer.process, "host");
  EXPECT_EQ(session.dropped(), 0u);
}

TEST(Session, SpansThatMoveBytesSayHowFast) {
  Session session;
  for (const Category category : {Category::launch, Category::alloc}) {
    const Span moves(category, intern(category_name(category)), 1 << 20);
    std::this_thread::sleep_for(std::chrono::microseconds(10));
  }
  session.stop();
  const Event& launch = find(session.events(), "launch");
  EXPECT_DOUBLE_EQ(arg<double>(launch, "GB/s"),
                   1048576.0 / static_cast<double>(launch.duration_ns));
  const Event& alloc = find(session.events(), "alloc");
  EXPECT_EQ(arg<int64_t>(alloc, "bytes"), 1 << 20);
  EXPECT_TRUE(has_arg(alloc, "GB/s"));
  EXPECT_FALSE(has_arg(launch, "page_faults"));
}

TEST(Session, KernelsSayWhatTheyDid) {
  const Work launch{.arg = 4000, .operations = 2000, .location = intern("k.py:7:1")};
  const Work unknown{.arg = 0, .operations = 0, .location = intern("")};
  for (int round = 0; round < 40; ++round) {  // across the end of the ring, too
    Session session(16 * 32);
    counter(intern("n"), 0);
    for (int i = 0; i < 3; ++i) {
      const KernelSpan call(Category::call, intern("call"), unknown, intern_backend("cpu"));
      const KernelSpan runs(Category::launch, intern("runs"), launch);
      std::this_thread::sleep_for(std::chrono::microseconds(1));
    }
    session.stop();
    EXPECT_EQ(session.dropped(), 0u);
    std::vector<Event> events = session.events();
    std::erase_if(events, [](const Event& e) { return e.name != "runs" && e.name != "call"; });
    ASSERT_EQ(events.size(), 6u);
    EXPECT_TRUE(events[0].args.empty());
    const Event& runs = events[1];
    EXPECT_EQ(runs.category, "launch");
    EXPECT_EQ(runs.backend, "cpu");
    EXPECT_EQ(arg<int64_t>(runs, "bytes"), 4000);
    EXPECT_EQ(arg<int64_t>(runs, "operations"), 2000);
    EXPECT_EQ(arg<std::string>(runs, "location"), "k.py:7:1");
    EXPECT_DOUBLE_EQ(arg<double>(runs, "GB/s"), 4000.0 / static_cast<double>(runs.duration_ns));
    EXPECT_DOUBLE_EQ(arg<double>(runs, "GFLOP/s"), 2000.0 / static_cast<double>(runs.duration_ns));
    EXPECT_FALSE(has_arg(runs, "% of ceiling"));  // nobody has said what it is
  }
}

// Writes to `pages` pages that nobody has touched.
void touch_fresh(size_t pages) {
  const size_t bytes = pages << 12;
  void* fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(fresh, MAP_FAILED);
  for (size_t i = 0; i < bytes; i += 4096) static_cast<volatile char*>(fresh)[i] = 1;
  munmap(fresh, bytes);
}

TEST(Session, SpansOfMemoryCountThePageFaultsOfTheirThread) {
  Session session;
  const auto before = static_cast<int64_t>(page_faults());
  {
    const Span copy(Category::h2d, intern("faulting"), uint64_t{1} << 41);
    std::thread(touch_fresh, 500).join();
    touch_fresh(100);
  }
  const auto all = static_cast<int64_t>(page_faults()) - before;
  {
    const Span copy(Category::d2h, intern("quiet"), 1 << 14);
  }
  {
    const Span copy(Category::d2h, intern("small"), 8);
  }
  session.stop();
  const int64_t faults = arg<int64_t>(find(session.events(), "faulting"), "page_faults");
  EXPECT_GE(faults, 1);
  EXPECT_LE(faults, all);
#if defined(__linux__)
  EXPECT_LT(faults, 500);  // the other thread's are its own
#endif
  EXPECT_EQ(arg<int64_t>(find(session.events(), "faulting"), "bytes"), (int64_t{1} << 40) - 1);
  EXPECT_EQ(arg<int64_t>(find(session.events(), "quiet"), "page_faults"), 0);
  EXPECT_EQ(arg<int64_t>(find(session.events(), "quiet"), "bytes"), 1 << 14);
  EXPECT_EQ(arg<int64_t>(find(session.events(), "small"), "bytes"), 8);
  EXPECT_FALSE(has_arg(find(session.events(), "small"), "page_faults"));
}

TEST(Session, PhasesSumToTheirCall) {
  Session session;
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::microseconds(20)); };
  for (const char* name : {"first", "second"}) {
    const Span call(Category::call, intern(name), 0, intern_backend("b"));
    wait();
    for (int i = 0; i < 2; ++i) {
      const Span phase(Category::op, intern("op"));
      const Span inner(Category::alloc, intern("in an op"));
      wait();
    }
    wait();
  }
  {
    const Span empty(Category::call, intern("third"), 0, intern_backend("b"));
  }
  const Span step(Category::user, intern("no call"));
  session.stop();
  const auto& events = session.events();
  int64_t calls = 0, phases = 0;
  for (const Event& e : events) {
    if (e.category == "call") calls += e.duration_ns;
    if (e.category == "op" || e.category == "rest") phases += e.duration_ns;
    if (e.category == "rest") {
      EXPECT_EQ(e.process, "b");
    }
  }
  EXPECT_EQ(phases, calls);
  EXPECT_GE(count(events, "rest of the call"), 4u);
}

TEST(Session, ArrowsJoinSpansOfThreads) {
  Session session;
  const NameId name = intern("arrow");
  uint64_t flow = 0;
  {
    const Span asks(Category::launch, intern("asks"), 0, intern_backend("b"));
    flow = begin_flow(name);
    begin_flow(name);  // ends nowhere
    std::thread([&] {
      const Span runs(Category::launch, intern("runs"));
      end_flow(name, flow);
      end_flow(name, flow + 1000);  // began nowhere
    }).join();
  }
  end_flow(name, begin_flow(name));  // in no span
  session.stop();
  std::vector<Event> ends = session.events();
  std::erase_if(ends, [](const Event& e) { return !is_flow(e); });
  ASSERT_EQ(ends.size(), 2u);
  const bool first_starts = ends[0].phase == Event::Phase::flow_start;
  const Event &start = ends[first_starts ? 0 : 1], &end = ends[first_starts ? 1 : 0];
  EXPECT_EQ(start.phase, Event::Phase::flow_start);
  EXPECT_EQ(end.phase, Event::Phase::flow_end);
  EXPECT_EQ(start.flow, flow);
  EXPECT_EQ(end.flow, flow);
  EXPECT_EQ(start.process, "b");
  EXPECT_EQ(end.process, "host");
  EXPECT_NE(start.tid, end.tid);
  session.stop();
  EXPECT_EQ(begin_flow(name), 0u);  // nobody records
}

TEST(Session, SpanOpenAtAnEndIsLeftOut) {
  auto before = std::make_unique<Span>(Category::op, intern("before"));
  Session session;
  auto late = std::make_unique<Span>(Category::op, intern("late"));
  before.reset();
  session.stop();
  late.reset();
  EXPECT_TRUE(session.events().empty());
}

TEST(Session, FullRingCountsWhatItDrops) {
  Session session(16 * 32);  // 16 records
  for (int i = 0; i < 100; ++i) counter(intern("n"), i);
  session.stop();
  ASSERT_EQ(session.events().size(), 16u);
  EXPECT_EQ(session.dropped(), 84u);
  // What is kept is the beginning, without a gap.
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(arg<int64_t>(session.events()[static_cast<size_t>(i)], "value"), i);
}

TEST(Session, RingsAreReusedAndWrap) {
  for (int round = 0; round < 50; ++round) {
    Session session(16 * 32);
    for (int i = 0; i < 11; ++i) counter(intern("n"), 100 * round + i);
    session.stop();
    ASSERT_EQ(session.events().size(), 11u);
    EXPECT_EQ(session.dropped(), 0u);
    for (int i = 0; i < 11; ++i)
      EXPECT_EQ(arg<int64_t>(session.events()[static_cast<size_t>(i)], "value"), 100 * round + i);
  }
}

TEST(Session, LaterSessionMayWantLargerRings) {
  {
    Session small(4 * 32);
    counter(intern("n"), 1);
  }
  Session large(1024 * 32);
  for (int i = 0; i < 1000; ++i) counter(intern("n"), i);
  large.stop();
  EXPECT_EQ(large.events().size(), 1000u);
  EXPECT_EQ(large.dropped(), 0u);
}

TEST(Session, InnerSessionGrowsTheRingsOfTheOuterOne) {
  std::thread([] {
    Session outer(4 * 32);
    counter(intern("outer"), 0);
    Session inner(1024 * 32);
    for (int i = 0; i < 500; ++i) counter(intern("inner"), i);
    inner.stop();
    outer.stop();
    EXPECT_EQ(inner.events().size(), 500u);
    EXPECT_EQ(outer.events().size(), 501u);
    EXPECT_EQ(outer.dropped(), 0u);
  }).join();
}

TEST(Session, NestedSessionsBothSeeTheInnerEvents) {
  Session outer;
  {
    const Span s(Category::op, intern("first"));
  }
  {
    Session inner;
    {
      const Span s(Category::op, intern("second"));
    }
    inner.stop();
    EXPECT_TRUE(enabled());
    EXPECT_EQ(inner.events().size(), 1u);
    EXPECT_EQ(count(inner.events(), "second"), 1u);
  }
  {
    const Span s(Category::op, intern("third"));
  }
  outer.stop();
  EXPECT_EQ(outer.events().size(), 3u);
  for (const char* name : {"first", "second", "third"}) EXPECT_EQ(count(outer.events(), name), 1u);
}

TEST(Session, OverlappingSessionsStopInAnyOrder) {
  auto a = std::make_unique<Session>();
  counter(intern("1"), 0);
  Session b;
  counter(intern("2"), 0);
  a->stop();
  EXPECT_EQ(a->events().size(), 2u);
  a.reset();
  counter(intern("3"), 0);
  b.stop();
  EXPECT_EQ(b.events().size(), 2u);
  EXPECT_EQ(count(b.events(), "1"), 0u);
}

TEST(Session, EventsWhileRecording) {
  Session session;
  counter(intern("n"), 1);
  EXPECT_EQ(session.events().size(), 1u);
  counter(intern("n"), 2);
  EXPECT_EQ(session.events().size(), 2u);
  EXPECT_TRUE(session.recording());
}

TEST(Session, RecordsOutliveTheirThread) {
  Session session;
  for (int i = 0; i < 20; ++i) {
    std::thread([i] {
      name_this_thread("short " + std::to_string(i));
      const Span s(Category::op, intern("work"));
    }).join();
  }
  session.stop();
  std::set<uint32_t> tids;
  std::set<std::string> names;
  for (const Event& e : session.events()) {
    tids.insert(e.tid);
    names.insert(e.thread);
  }
  EXPECT_EQ(session.events().size(), 20u);
  EXPECT_EQ(tids.size(), 20u);
  EXPECT_TRUE(names.count("short 7"));
}

TEST(Session, ThreadLocalDestructorsMayRecord) {
  struct Late {
    ~Late() { counter(intern("late"), 1); }
  };
  Session session;
  std::thread([] {
    thread_local Late late;
    (void)&late;
    counter(intern("early"), 1);
  }).join();
  session.stop();
  // Whether the ring or the other thread-local goes first is open; nothing may be lost without a
  // count.
  EXPECT_EQ(session.events().size() + session.dropped(), 2u);
}

TEST(Session, ThreadsRecordWhileSessionsComeAndGo) {
  std::atomic<bool> stop{false};
  const NameId name = intern("busy");
  const TableId table = register_ops(std::vector<OpInfo>(5));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        const Span span(Category::op, name);
        Stamps stamps(table);
        for (int i = 0; i <= 5; ++i) stamps.stamp();
      }
    });
  for (int round = 0; round < 30; ++round) {
    Session session(64 * 32);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    session.stop();
    for (const Event& e : session.events()) {
      EXPECT_GE(e.begin_ns, 0);
      EXPECT_GE(e.duration_ns, 0);
      EXPECT_LT(e.end_ns(), int64_t{60} * 1000 * 1000 * 1000);
    }
  }
  stop = true;
  for (auto& t : threads) t.join();
}

TEST(Session, ClockAgreesWithTheSystem) {
  Session session;
  const NameId name = intern("sleep");
  {
    const Span s(Category::op, name);
  }  // under an emulator, whatever runs first takes long
  const auto begin = std::chrono::steady_clock::now();
  {
    const Span s(Category::op, name);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const double wall =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
  session.stop();
  EXPECT_NEAR(static_cast<double>(session.events()[1].duration_ns), wall, 0.02 * wall + 50e3);
  for (const auto& [key, value] : session.metadata())
    if (key == "stamp_ns") {
      EXPECT_GT(std::get<double>(value), 0);
    }
}

TableId table_of_three() {
  OpInfo h2d{
      Category::h2d, intern("a to device"), 2, "v0 = mx.array(a)", "input", "k.py:3:5", 4000, 0};
  OpInfo lazy{
      Category::op_lazy, intern("multiply"), 3, "v1 = v0 * v0", "mul", "k.py:4:9", 12000, 1000};
  OpInfo sync{Category::sync, intern("eval"), 4, "mx.eval(v1)", "", "", 0, 0};
  static const TableId id = register_ops({h2d, lazy, sync}, "mlx");
  return id;
}

TEST(Stamps, OneEventForEachOperation) {
  Session session;
  {
    const Span call(Category::call, intern("call"), 0, intern_backend("mlx"));
    Stamps stamps(table_of_three());
    stamps.stamp();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    for (int i = 0; i < 3; ++i) stamps.stamp();
    stamps.stamp();  // one too many: ignored
    stamps.end();
  }
  session.stop();
  std::vector<Event> events = session.events();
  std::erase_if(events, [](const Event& e) { return e.category == "rest"; });
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].name, "call");
  const Event &h2d = events[1], &lazy = events[2], &sync = events[3];
  EXPECT_EQ(h2d.name, "a to device");
  EXPECT_EQ(h2d.category, "h2d");
  EXPECT_EQ(h2d.backend, "mlx");
  EXPECT_EQ(h2d.process, "mlx");
  EXPECT_EQ(arg<int64_t>(h2d, "line"), 2);
  EXPECT_EQ(arg<std::string>(h2d, "source"), "v0 = mx.array(a)");
  EXPECT_EQ(arg<std::string>(h2d, "ir_op"), "input");
  EXPECT_EQ(arg<std::string>(h2d, "location"), "k.py:3:5");
  EXPECT_EQ(arg<int64_t>(h2d, "bytes"), 4000);
  EXPECT_DOUBLE_EQ(arg<double>(h2d, "GB/s"), 4000.0 / static_cast<double>(h2d.duration_ns));
  EXPECT_EQ(arg<std::string>(h2d, "backend"), "mlx");
  EXPECT_EQ(lazy.begin_ns, h2d.end_ns());
  EXPECT_EQ(sync.begin_ns, lazy.end_ns());
  EXPECT_FALSE(has_arg(lazy, "GB/s"));  // building a graph moves no bytes
  EXPECT_FALSE(has_arg(sync, "bytes"));
}

TEST(Stamps, CopiesAndAllocationsCountPageFaults) {
  const auto op = [](Category category, const char* name) {
    return OpInfo{.category = category, .name = intern(name), .bytes = 1 << 20};
  };
  const TableId table =
      register_ops({op(Category::op, "a"), op(Category::h2d, "b"), op(Category::d2h, "c"),
                    op(Category::sync, "d"), op(Category::alloc, "e")});
  Session session;
  {
    Stamps stamps(table);
    for (const size_t pages : {0, 30, 20, 0, 40, 10}) {
      if (pages != 0) touch_fresh(pages);
      stamps.stamp();
    }
  }
  session.stop();
  const auto& events = session.events();
  ASSERT_EQ(events.size(), 5u);
  EXPECT_FALSE(has_arg(events[0], "page_faults"));
  EXPECT_GE(arg<int64_t>(events[1], "page_faults"), 1);
  EXPECT_EQ(arg<int64_t>(events[2], "page_faults"), 0);
  EXPECT_FALSE(has_arg(events[3], "page_faults"));
  EXPECT_GE(arg<int64_t>(events[4], "page_faults"), 1);
}

TEST(Stamps, RunThatEndsEarlyShowsWhatFinished) {
  Session session;
  try {
    Stamps stamps(table_of_three());
    stamps.stamp();
    stamps.stamp();
    throw std::runtime_error("in the second operation");
  } catch (const std::runtime_error&) {
  }
  {
    const Stamps unstamped(table_of_three());
  }
  session.stop();
  ASSERT_EQ(session.events().size(), 1u);
  EXPECT_EQ(session.events()[0].name, "a to device");
}

TEST(Stamps, RunsNestAndKnowTheInnermost) {
  EXPECT_EQ(Stamps::current(), nullptr);
  Session session;
  {
    Stamps outer(table_of_three());
    outer.stamp();
    EXPECT_EQ(Stamps::current(), &outer);
    {
      const Span span(Category::op, intern("between"));
      Stamps inner(table_of_three());
      EXPECT_EQ(Stamps::current(), &inner);
      for (int i = 0; i < 4; ++i) Stamps::current()->stamp();
    }
    EXPECT_EQ(Stamps::current(), &outer);
    for (int i = 0; i < 3; ++i) outer.stamp();
  }
  EXPECT_EQ(Stamps::current(), nullptr);
  session.stop();
  EXPECT_EQ(session.events().size(), 7u);
  EXPECT_EQ(find(session.events(), "between").backend,
            "mlx");  // inside the outer run's first operation
}

TEST(Stamps, RunOpenAtTheStopIsLeftOutAndHarmsNoLaterSession) {
  Stamps open;
  {
    Session session(16 * 32);
    open.begin(table_of_three());
    open.stamp();
    session.stop();
    EXPECT_TRUE(session.events().empty());
  }
  Session later(16 * 32);
  for (int i = 0; i < 40; ++i)
    counter(intern("n"), i);  // more than the ring holds: must not reach the open run
  open.stamp();
  open.stamp();
  open.stamp();
  open.end();
  later.stop();
  for (const Event& e : later.events()) EXPECT_EQ(e.name, "n");
  EXPECT_EQ(later.events().size() + later.dropped(), 40u);
}

TEST(Stamps, RunsOfTooManyTablesAreCounted) {
  const auto counted = [] {
    TableId last = 0;
    for (int i = 0; i <= 1 << 18; ++i) last = register_ops({});
    Session session;
    {
      Stamps stamps(last);
      stamps.stamp();
    }
    session.stop();
    return session.events().empty() && session.dropped() == 1;
  };
  EXPECT_EXIT(std::exit(counted() ? 0 : 1), testing::ExitedWithCode(0), "");  // tables stay
}

TEST(Stamps, RunThatDoesNotFitIsCounted) {
  const TableId table = register_ops(std::vector<OpInfo>(100));
  Session session(16 * 32);
  {
    Stamps stamps(table);
    for (int i = 0; i <= 100; ++i) stamps.stamp();
  }
  session.stop();
  EXPECT_TRUE(session.events().empty());
  EXPECT_EQ(session.dropped(), 100u);
}

TEST(Stamps, RunsStayWholeAcrossTheEndOfTheRing) {
  for (int round = 0; round < 40; ++round) {
    Session session(16 * 32);
    counter(intern("n"), 0);
    for (int i = 0; i < 3; ++i) {
      Stamps stamps(table_of_three());
      for (int k = 0; k < 4; ++k) stamps.stamp();
    }
    session.stop();
    // A run may cost padding at the ring's end, never more than its own length less one.
    ASSERT_EQ(session.events().size(), 10u);
  }
}

TEST(Session, BackendIsThatOfTheCallRound) {
  Session session;
  for (const char* backend : {"numpy", "mlx"}) {
    const Span call(Category::call, intern(std::string("call ") + backend), 0,
                    intern_backend(backend));
    const Span alloc(Category::alloc, intern(std::string("alloc ") + backend), 64);
  }
  {
    const Span alone(Category::compile, intern("compile"));
  }
  session.stop();
  const auto& events = session.events();
  EXPECT_EQ(find(events, "alloc numpy").process, "numpy");
  EXPECT_EQ(find(events, "alloc mlx").process, "mlx");
  EXPECT_EQ(find(events, "compile").process, "host");
  EXPECT_EQ(find(events, "compile").pid, 1u);
  EXPECT_EQ(find(events, "call numpy").pid, 2u);
  EXPECT_EQ(find(events, "call mlx").pid, 3u);
}

}  // namespace
}  // namespace picokernel::trace
