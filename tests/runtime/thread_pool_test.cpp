// The fork-join pool.
#include "runtime/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <picokernel/diagnostic.h>

#include "runtime/fp_control.h"

#if defined(__SANITIZE_THREAD__)
#define PK_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PK_TEST_TSAN 1
#endif
#endif

namespace picokernel::runtime {
namespace {

template <class Function>
void for_each(int64_t chunks, Function function, Wake policy = Wake::wake) {
  parallel_for(
      chunks, [](void* context, int64_t chunk) { (*static_cast<Function*>(context))(chunk); },
      &function, policy);
}

// Plain stores, one each: a data race or a chunk run twice or never shows.
bool each_chunk_once(int64_t chunks, Wake policy = Wake::wake) {
  std::vector<int> runs(static_cast<size_t>(chunks), 0);
  for_each(chunks, [&](int64_t chunk) { ++runs[static_cast<size_t>(chunk)]; }, policy);
  return std::all_of(runs.begin(), runs.end(), [](int n) { return n == 1; });
}

class ThreadPoolTest : public testing::Test {
 protected:
  ~ThreadPoolTest() override { set_num_threads(before_); }
  const int before_ = num_threads();
};

TEST_F(ThreadPoolTest, EachChunkRunsOnceForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    EXPECT_EQ(num_threads(), threads);
    for (const int64_t chunks : {0, 1, 2, 3, 7, 8, 100, 10000}) {
      EXPECT_TRUE(each_chunk_once(chunks)) << threads << " threads, " << chunks << " chunks";
      EXPECT_TRUE(each_chunk_once(chunks, Wake::only_hot))
          << threads << " threads, " << chunks << " chunks";
    }
    EXPECT_EQ(thread_pool_state().workers, threads - 1);
  }
}

TEST_F(ThreadPoolTest, ManyJobsInARow) {
  for (const int threads : {2, 3, 7}) {
    set_num_threads(threads);
    for (int64_t job = 0; job < 3000; ++job) {
      int64_t sums[8] = {};
      const int64_t chunks = 1 + job % 8;
      for_each(
          chunks, [&](int64_t chunk) { sums[chunk] = job + chunk; },
          job % 3 == 0 ? Wake::only_hot : Wake::wake);
      for (int64_t i = 0; i < chunks; ++i) ASSERT_EQ(sums[i], job + i);
    }
  }
}

TEST_F(ThreadPoolTest, WorkersTakePartAndParkAgain) {
  set_num_threads(3);
  // Each chunk waits for the others, so the three must run on three threads.
  std::atomic<int> started{0};
  for_each(3, [&](int64_t) {
    ++started;
    while (started < 3) std::this_thread::yield();
  });
  for (int i = 0; i < 10000 && thread_pool_state().parked != 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(thread_pool_state().parked, 2);
  // With all workers parked, only_hot leaves them alone.
  std::set<std::thread::id> ids;
  for_each(10, [&](int64_t) { ids.insert(std::this_thread::get_id()); }, Wake::only_hot);
  EXPECT_EQ(ids, std::set{std::this_thread::get_id()});
  EXPECT_TRUE(each_chunk_once(1000));
}

TEST_F(ThreadPoolTest, ManyUsersAtOnce) {
  set_num_threads(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (int u = 0; u < 8; ++u)
    users.emplace_back([&] {
      for (int i = 0; i < 500; ++i)
        if (!each_chunk_once(1 + i % 20)) ++wrong;
    });
  for (auto& user : users) user.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ThreadPoolTest, NobodyWaitsForAnothersKernel) {
  set_num_threads(2);
  std::atomic<bool> running{false}, release{false};
  std::thread slow([&] {
    for_each(4, [&](int64_t) {
      running = true;
      while (!release) std::this_thread::yield();
    });
  });
  while (!running) std::this_thread::yield();
  EXPECT_TRUE(each_chunk_once(100));
  release = true;
  slow.join();
}

TEST_F(ThreadPoolTest, NestedCallsRunOnTheirCaller) {
  set_num_threads(3);
  std::atomic<int64_t> sum{0};
  std::atomic<int> strangers{0};
  for_each(16, [&](int64_t outer) {
    const auto self = std::this_thread::get_id();
    for_each(8, [&](int64_t inner) {
      if (std::this_thread::get_id() != self) ++strangers;
      sum += outer * 8 + inner;
    });
  });
  EXPECT_EQ(sum, 127 * 128 / 2);
  EXPECT_EQ(strangers, 0);
}

TEST_F(ThreadPoolTest, NumberOfThreadsChangesWhileOthersUseThePool) {
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread user([&] {
    while (!stop)
      if (!each_chunk_once(16)) ++wrong;
  });
  for (int i = 0; i < 40; ++i) set_num_threads(1 + i % 4);
  stop = true;
  user.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ThreadPoolTest, BadNumberOfThreads) {
  EXPECT_THROW(set_num_threads(0), LaunchError);
  EXPECT_THROW(set_num_threads(-3), LaunchError);
  EXPECT_THROW(set_num_threads(100000), LaunchError);
  EXPECT_EQ(num_threads(), before_);
}

TEST_F(ThreadPoolTest, ChunksRunUnderTheDefaultFpControl) {
  set_num_threads(2);
#if defined(__x86_64__)
  const uint32_t foreign = read_fp_control() | 0x8040;  // flush to zero, denormals are zero
#else
  const uint32_t foreign = read_fp_control() | 1u << 24;
#endif
  const uint32_t found = read_fp_control();
  write_fp_control(foreign);
  std::atomic<int> wrong{0};
  for_each(64, [&](int64_t) {
    if ((read_fp_control() & kFpControlMask) != kFpControlDefault) ++wrong;
    volatile float smallest = 1e-38f;
    if (smallest / 4 == 0) ++wrong;
  });
  EXPECT_EQ(read_fp_control() & kFpControlMask, foreign & kFpControlMask);
  write_fp_control(found);
  EXPECT_EQ(wrong, 0);
}

#if !defined(PK_TEST_TSAN)  // TSan supports no threads in a forked child of a process with threads
TEST_F(ThreadPoolTest, ForkedChildRebuildsThePool) {
  set_num_threads(3);
  EXPECT_TRUE(each_chunk_once(100));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool forgotten = thread_pool_state().workers == 0;
    const bool works =
        each_chunk_once(1000) && thread_pool_state().workers == 2 && num_threads() == 3;
    _exit(forgotten && works ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(each_chunk_once(100));
  EXPECT_EQ(thread_pool_state().workers, 2);
}

TEST_F(ThreadPoolTest, ForkWhileOthersUseThePool) {
  set_num_threads(2);
  std::atomic<bool> stop{false};
  std::thread user([&] {
    while (!stop) each_chunk_once(16);
  });
  for (int i = 0; i < 10; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(each_chunk_once(64) ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  user.join();
}
#endif

}  // namespace
}  // namespace picokernel::runtime
