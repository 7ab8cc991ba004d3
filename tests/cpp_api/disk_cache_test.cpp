// Compiled kernels from disk: what is in doubt is compiled again.
#include "runtime/disk_cache.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <picokernel/picokernel.h>

#include "runtime/folder.h"
#include "support/build_id.h"
#include "trace/session.h"

namespace picokernel {
namespace {

constexpr int64_t kStored = 1234567, kDoctored = 7654321;

pk::Array gcd_with(int64_t number) {
  const auto f = pk::kernel([=](pk::Expr a) { return gcd(a, number); }, {.backend = "cpu"});
  return f(std::vector<int64_t>{2 * number, 3 * number});
}

// The counter that rose while f ran.
template <class F>
std::string counted(F f) {
  trace::Session session;
  f();
  session.stop();
  for (const trace::Event& e : session.events())
    if (e.phase == trace::Event::Phase::counter && e.name.starts_with("kernels ")) return e.name;
  return {};
}

class KernelsOnDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto all = pk::backends(); std::ranges::none_of(
            all, [](const pk::BackendInfo& b) { return b.name == "cpu" && b.live; }))
      GTEST_SKIP() << "needs native code";
    setenv("PICOKERNEL_CACHE_DIR", folder_.path().c_str(), 1);
    unsetenv("PICOKERNEL_CACHE_SIZE");
  }
  ~KernelsOnDisk() override {
    setenv("PICOKERNEL_CACHE_SIZE", "0", 1);
    unsetenv("PICOKERNEL_CACHE_DIR");
  }
  const TemporaryFolder folder_;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at != text.npos) text.replace(at, from.size(), to);
  return text;
}

TEST_F(KernelsOnDisk, ObjectsThatCallAnythingElseAreCompiledAgain) {
  const runtime::DiskCache disk = runtime::user_disk_cache();
  EXPECT_EQ(counted([] { gcd_with(kStored); }), "kernels compiled");
  ASSERT_EQ(disk.keys().size(), 1u);
  const std::string key = disk.keys()[0], value = disk.load(key).value();
  const std::string other = replaced(key, std::to_string(kStored), std::to_string(kDoctored));
  ASSERT_NE(other, key);
  const std::string doctored = replaced(value, "pk_gcd", "system");
  ASSERT_NE(doctored, value);

  // All checksums are right, and still nothing of it runs.
  ASSERT_EQ(disk.store(other, doctored), "");
  EXPECT_EQ(counted([] { EXPECT_EQ(gcd_with(kDoctored).span<int64_t>()[1], kDoctored); }),
            "kernels compiled");
  EXPECT_EQ(disk.load(other).value().find("system"), std::string::npos);  // and it is replaced
}

TEST_F(KernelsOnDisk, BelongToThisBuildAndTarget) {
  const runtime::DiskCache disk = runtime::user_disk_cache();
  gcd_with(17);
  EXPECT_NE(disk.keys().at(0).find(build_id()), std::string::npos);
#if defined(__x86_64__)
  setenv("PICOKERNEL_CPU", "x86-64-v3", 1);
  EXPECT_EQ(counted([] { gcd_with(17); }), "kernels compiled");
  unsetenv("PICOKERNEL_CPU");
#endif
}

TEST_F(KernelsOnDisk, WithoutAFolderOneWarning) {
  setenv("PICOKERNEL_CACHE_DIR", "/proc/picokernel", 1);
  ::testing::internal::CaptureStderr();
  gcd_with(19);
  gcd_with(23);
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(told.starts_with("picokernel: warning: compiled kernels are kept in memory only. "))
      << told;
  EXPECT_EQ(std::ranges::count(told, '\n'), 1);
}

TEST_F(KernelsOnDisk, AreFoundByTextAndNotByValue) {
  const runtime::DiskCache disk = runtime::user_disk_cache();
  gcd_with(kStored + 1);
  const std::string key = disk.keys().at(0), value = disk.load(key).value();
  // As another process would have left it: the same code under another number shows who is asked.
  const std::string other = replaced(key, std::to_string(kStored + 1), std::to_string(kStored + 2));
  ASSERT_EQ(disk.store(other, value), "");
  EXPECT_EQ(counted([] { gcd_with(kStored + 2); }), "kernels found on disk");
  EXPECT_EQ(counted([] { gcd_with(kStored + 2); }), "kernels found in memory");
  int64_t number = kStored + 3;
  for (const std::string& junk :
       {std::string(), std::string("no zero byte"), std::string("kernel\0junk", 11)}) {
    const std::string junk_key = replaced(key, std::to_string(kStored + 1), std::to_string(number));
    ASSERT_EQ(disk.store(junk_key, junk), "");
    EXPECT_EQ(counted([=] { EXPECT_EQ(gcd_with(number).span<int64_t>()[0], number); }),
              "kernels compiled");
    ++number;
  }
}

}  // namespace
}  // namespace picokernel
