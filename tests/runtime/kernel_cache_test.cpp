// The kernel cache: one build for each key, and why a key missed.
#include "runtime/kernel_cache.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <picokernel/diagnostic.h>

#include "trace/session.h"

#if defined(__SANITIZE_THREAD__)
#define PK_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PK_TEST_TSAN 1
#endif
#endif

namespace picokernel::runtime {
namespace {

CacheKey key(std::string graph, std::string target = "cpu", std::string options = "fastmath=0") {
  CacheKey k;
  k.add("graph", std::move(graph))
      .add("target", std::move(target))
      .add("options", std::move(options));
  return k;
}

TEST(CacheKey, ComparesParts) {
  EXPECT_EQ(key("g"), key("g"));
  EXPECT_NE(key("g"), key("h"));
  EXPECT_NE(key("ab", "c").hash(), key("a", "bc").hash());
  EXPECT_NE(CacheKey().add("a", "").hash(), CacheKey().hash());
  EXPECT_THROW(key("g").add("graph", "again"), InternalError);
}

TEST(CacheKey, IsTextAndBack) {
  EXPECT_EQ(key_from_bytes(to_bytes(key("g\n", "", "fast"))), key("g\n", "", "fast"));
  EXPECT_EQ(key_from_bytes(""), CacheKey());
  EXPECT_NE(key_from_bytes("name"), key("g"));
  EXPECT_EQ(key_from_bytes(std::string("a\0b\0a\0c\0", 8)), CacheKey());
  EXPECT_THROW(to_bytes(key(std::string(1, '\0'))), InternalError);
}

TEST(CacheKey, SaysWhatDiffers) {
  EXPECT_EQ(describe_difference(key("g"), key("g", "cpu", "fastmath=1")),
            "options: `fastmath=0` became `fastmath=1`");
  EXPECT_EQ(describe_difference(key("kernel @f\n  add f32\n  ret"),
                                key("kernel @f\n  add f64\n  ret", "cuda")),
            "graph: `  add f32` became `  add f64`; target: `cpu` became `cuda`");
  EXPECT_EQ(describe_difference(CacheKey(), CacheKey().add("x", "1")), "x: is new");
  EXPECT_EQ(describe_difference(CacheKey().add("x", "1"), CacheKey()), "x: is gone");
  const std::string same(200, 'a');
  EXPECT_EQ(describe_difference(CacheKey().add("x", same + "1"), CacheKey().add("x", same + "22")),
            "x: `..." + std::string(30, 'a') + "1` became `..." + std::string(30, 'a') + "22`");
}

TEST(KernelCache, BuildsOnceAndExplainsMisses) {
  KernelCache<int> cache("test kernels");
  int builds = 0;
  CacheLookup lookup;
  const auto get = [&](const CacheKey& k) {
    return cache.get_or_build(k, [&] { return std::make_shared<int>(++builds); }, &lookup);
  };
  EXPECT_EQ(*get(key("g")), 1);
  EXPECT_FALSE(lookup.hit);
  EXPECT_EQ(lookup.difference, "the cache was empty");
  EXPECT_EQ(*get(key("g")), 1);
  EXPECT_TRUE(lookup.hit);
  EXPECT_EQ(*get(key("another", "cuda", "fastmath=1")), 2);
  EXPECT_EQ(*get(key("g", "cpu", "fastmath=1")),
            3);  // nearer to the first entry than to the second
  EXPECT_EQ(lookup.difference, "options: `fastmath=0` became `fastmath=1`");
  EXPECT_EQ(cache.size(), 3u);
  cache.clear();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(*get(key("g")), 4);
}

TEST(KernelCache, ForgetsWhatWasNotAskedForLongest) {
  KernelCache<int> cache("test");
  const auto get = [&](size_t i) {
    CacheLookup lookup;
    CacheKey key;
    key.add("number", std::to_string(i));
    const auto value = cache.get_or_build(
        key, [&] { return std::make_shared<int>(static_cast<int>(i)); }, &lookup);
    EXPECT_EQ(*value, static_cast<int>(i));
    return lookup.hit;
  };
  const auto held = cache.get_or_build(CacheKey(), [] { return std::make_shared<int>(-1); });
  for (size_t i = 0; i < KernelCacheBase::kCapacity + 10; ++i) {
    EXPECT_FALSE(get(i));
    EXPECT_EQ(i != 0 && get(0), i != 0);
  }
  EXPECT_EQ(cache.size(), KernelCacheBase::kCapacity);
  EXPECT_EQ(*held, -1);
  EXPECT_TRUE(get(0));
  EXPECT_FALSE(get(1));
}

TEST(KernelCache, LookupsAreTraced) {
  trace::Session session;
  KernelCache<int> cache("traced");
  for (const char* options : {"a", "a", "b"})
    cache.get_or_build(key("g", "cpu", options), [] { return std::make_shared<int>(0); });
  session.stop();
  std::vector<std::string> names;
  for (const auto& e : session.events())
    if (e.category == "cache") names.push_back(e.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"traced: miss, first entry", "traced: hit",
                                      "traced: miss, options differ from the nearest entry"}));
}

TEST(KernelCache, SixteenThreadsBuildOnce) {
  for (int round = 0; round < 20; ++round) {
    KernelCache<int> cache("test");
    std::atomic<int> builds{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 16; ++t)
      threads.emplace_back([&, t] {
        for (int k = 0; k < 4; ++k) {
          const std::string graph = std::to_string((k + t) % 4);
          const auto value = cache.get_or_build(key(graph), [&] {
            ++builds;
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            return std::make_unique<int>(std::stoi(graph));
          });
          if (*value != std::stoi(graph)) ++wrong;
        }
      });
    for (auto& t : threads) t.join();
    EXPECT_EQ(builds, 4);
    EXPECT_EQ(wrong, 0);
  }
}

TEST(KernelCache, FailuresReachWhoWaitedAndAreNotKept) {
  KernelCache<int> cache("test");
  std::atomic<int> builds{0}, caught{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      try {
        cache.get_or_build(key("bad"), [&]() -> std::shared_ptr<int> {
          ++builds;
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          throw std::runtime_error("no such thing");
        });
      } catch (const std::runtime_error& error) {
        if (std::string(error.what()) == "no such thing") ++caught;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(caught, 8);
  EXPECT_GE(builds, 1);
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(*cache.get_or_build(key("bad"), [] { return std::make_shared<int>(5); }), 5);
}

TEST(KernelCache, BuilderMayUseOtherKeysButNotItsOwn) {
  KernelCache<int> cache("test");
  const auto outer = cache.get_or_build(key("outer"), [&] {
    return std::make_shared<int>(
        1 + *cache.get_or_build(key("inner"), [] { return std::make_shared<int>(1); }));
  });
  EXPECT_EQ(*outer, 2);
  const auto recurse = [&] {
    return cache.get_or_build(key("self"), [&] {
      return cache.get_or_build(key("self"), [] { return std::make_shared<int>(0); });
    });
  };
  EXPECT_THROW(recurse(), InternalError);
  EXPECT_THROW(cache.get_or_build(key("null"), [] { return std::shared_ptr<int>(); }),
               InternalError);
}

#if !defined( \
    PK_TEST_TSAN)  // TSan supports no locks taken before and released after a fork with threads
TEST(KernelCache, ForkedChildBuildsWhatTheParentWasBuilding) {
  KernelCache<int> cache("test");
  cache.get_or_build(key("old"), [] { return std::make_shared<int>(1); });
  std::atomic<bool> building{false}, release{false};
  std::thread builder([&] {
    cache.get_or_build(key("slow"), [&] {
      building = true;
      while (!release) std::this_thread::yield();
      return std::make_shared<int>(2);
    });
  });
  while (!building) std::this_thread::yield();
  std::thread waiter(
      [&] { cache.get_or_build(key("slow"), [] { return std::make_shared<int>(3); }); });
  std::this_thread::sleep_for(std::chrono::milliseconds(1));  // most likely it waits by then
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool kept = *cache.get_or_build(key("old"), [] { return std::make_shared<int>(9); }) == 1;
    const bool rebuilt =
        *cache.get_or_build(key("slow"), [] { return std::make_shared<int>(4); }) == 4;
    _exit(kept && rebuilt ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  release = true;
  builder.join();
  waiter.join();
}
#endif

}  // namespace
}  // namespace picokernel::runtime
