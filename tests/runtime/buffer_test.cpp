// The memory pool.
#include "runtime/buffer.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <latch>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <picokernel/memory.h>

#include "trace/session.h"

namespace picokernel::runtime {
namespace {

class BufferTest : public testing::Test {
 protected:
  BufferTest() { trim(); }
  ~BufferTest() override {
    set_pool_cap(kDefaultPoolCap);
    trim();
  }
};

TEST_F(BufferTest, AlignmentAndSize) {
  for (const size_t bytes :
       {size_t{1}, size_t{4096}, size_t{4097}, size_t{100000}, size_t{4} << 20, size_t{9999999}}) {
    const Buffer buffer = allocate(bytes);
    ASSERT_NE(buffer.data, nullptr);
    EXPECT_EQ(buffer.bytes, bytes);
    EXPECT_EQ(buffer.device, Device{});
    const size_t alignment = bytes >= size_t{4} << 20 ? size_t{2} << 20 : 4096;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data) % alignment, 0u);
    std::memset(buffer.data, 1, bytes);
  }
  EXPECT_EQ(allocate(0).data, nullptr);
  EXPECT_THROW(allocate(~size_t{0} / 2), std::bad_alloc);
}

TEST_F(BufferTest, FreedMemoryIsReused) {
  void* first = allocate(100000).data;
  EXPECT_GE(pool_stats().kept_bytes, 100000u);
  const Buffer again = allocate(99000);  // a little smaller: the same class
  EXPECT_EQ(again.data, first);
  EXPECT_EQ(pool_stats().kept_bytes, 0u);
  const Buffer shared = again;
  EXPECT_EQ(shared.owner.use_count(), 2);
}

TEST_F(BufferTest, PoolKeepsWhatWasUsedLastUpToItsCap) {
  set_pool_cap(1 << 20);
  void* latest = nullptr;
  for (const size_t kib : {100, 200, 300, 400, 500}) latest = allocate(kib << 10).data;
  EXPECT_LE(pool_stats().kept_bytes, size_t{1} << 20);
  EXPECT_GE(pool_stats().kept_bytes, size_t{500} << 10);
  EXPECT_EQ(allocate(500 << 10).data, latest);
  allocate(2 << 20);  // over the cap on its own: goes back at once
  EXPECT_LE(pool_stats().kept_bytes, size_t{1} << 20);
  trim();
  EXPECT_EQ(pool_stats().kept_bytes, 0u);
}

TEST_F(BufferTest, OwnersMayLiveOnOtherThreadsAndLonger) {
  Buffer made_elsewhere;
  std::thread([&] {
    made_elsewhere = allocate(5000);
    std::memset(made_elsewhere.data, 7, 5000);
  }).join();
  EXPECT_EQ(static_cast<char*>(made_elsewhere.data)[4999], 7);
  const size_t kept = pool_stats().kept_bytes;
  made_elsewhere = {};
  EXPECT_GT(pool_stats().kept_bytes, kept);   // to the pool of the thread that frees
  static Buffer until_exit = allocate(5000);  // freed after this thread's pool is gone
}

TEST_F(BufferTest, TrimReachesThePoolsOfAllThreads) {
  allocate(100000);
  std::latch filled(2), trimmed(1);
  const auto keep = [&] {
    allocate(200000);
    filled.count_down();
    trimmed.wait();
    EXPECT_EQ(pool_stats().kept_bytes, 0u);
    allocate(200000);  // ends with something kept
  };
  std::thread first(keep), second(keep);
  filled.wait();
  const size_t here = pool_stats().kept_bytes;
  const size_t freed = picokernel::trim();
  EXPECT_GE(freed, here + 2 * 200000);
  EXPECT_EQ(pool_stats().kept_bytes, 0u);
  trimmed.count_down();
  first.join();
  second.join();
  EXPECT_EQ(trim(), 0u);
}

TEST_F(BufferTest, TrimWhileOthersAllocate) {
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!done) std::memset(allocate(50000).data, 1, 50000);
    });
  for (int i = 0; i < 200; ++i) trim();
  done = true;
  for (std::thread& t : threads) t.join();
}

TEST_F(BufferTest, AForkedChildCanAllocateAndTrim) {
  std::atomic<bool> done = false;
  std::thread busy([&] {
    while (!done) allocate(50000);
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      allocate(100000);
      trim();
      allocate(100000);
      _exit(pool_stats().kept_bytes >= 100000 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  done = true;
  busy.join();
}

TEST_F(BufferTest, RandomSizesNeverOverlap) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  set_pool_cap(3 << 20);
  std::vector<std::pair<Buffer, unsigned char>> live;
  for (int i = 0; i < 3000; ++i) {
    if (live.size() < 20 && random() % 3 != 0) {
      const size_t bytes = 1 + random() % (size_t{1} << (random() % 22));
      const auto mark = static_cast<unsigned char>(random());
      live.emplace_back(allocate(bytes), mark);
      std::memset(live.back().first.data, mark, bytes);
    } else if (!live.empty()) {
      const size_t at = random() % live.size();
      const auto& [buffer, mark] = live[at];
      const auto* bytes = static_cast<unsigned char*>(buffer.data);
      ASSERT_EQ(bytes[0], mark);
      ASSERT_EQ(bytes[buffer.bytes - 1], mark);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
    ASSERT_LE(pool_stats().kept_bytes, size_t{3} << 20);
  }
}

TEST_F(BufferTest, AllocationsAreTraced) {
  trace::Session session;
  allocate(5000);
  allocate(5000);
  trim();
  session.stop();
  std::vector<trace::Event> spans, held;
  for (const trace::Event& e : session.events())
    (e.phase == trace::Event::Phase::complete ? spans : held).push_back(e);
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].name, "buffer, fresh pages");
  EXPECT_EQ(spans[1].name, "buffer, reused");
  EXPECT_EQ(spans[1].category, "alloc");
  EXPECT_EQ(std::get<int64_t>(spans[1].args.at(0).second), 5000);
  ASSERT_EQ(held.size(), 3u);  // after each allocation, and given back to the system
  const auto value = [&](size_t i) { return std::get<int64_t>(held[i].args.at(0).second); };
  EXPECT_EQ(held[0].name, "memory held");
  EXPECT_EQ(value(0), value(1));
  EXPECT_EQ(value(1) - value(2), 8192);
}

}  // namespace
}  // namespace picokernel::runtime
