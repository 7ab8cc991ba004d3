// How many threads a process may have.
#include "runtime/cpu_limits.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace picokernel::runtime {
namespace {

class CgroupTest : public testing::Test {
 protected:
  CgroupTest()
      : root_(std::filesystem::path(testing::TempDir()) /
              ("pk_cgroup_" + std::to_string(getpid()))) {}
  ~CgroupTest() override { std::filesystem::remove_all(root_); }
  void file(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::optional<double> quota(std::string_view proc_cgroup) {
    return cgroup_quota(proc_cgroup, root_.string());
  }
  std::filesystem::path root_;
};

TEST_F(CgroupTest, Version2TakesTheTightestOnTheWayUp) {
  file("cpu.max", "max 100000\n");
  file("a/cpu.max", "150000 100000\n");
  file("a/b/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota("0::/a/b\n"), 1.5);
  EXPECT_EQ(quota("0::/\n"), std::nullopt);
}

TEST_F(CgroupTest, Version2InAContainerWhosePathIsNotMounted) {
  file("cpu.max", "200000 100000\n");
  EXPECT_EQ(quota("0::/docker/0123abc\n"), 2.0);
}

TEST_F(CgroupTest, Version1) {
  file("cpu,cpuacct/x/cpu.cfs_quota_us", "50000\n");
  file("cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  file("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  file("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("5:memory:/x\n4:cpu,cpuacct:/x\n0::/x\n"), 0.5);
  EXPECT_EQ(quota("4:cpu,cpuacct:/\n"), std::nullopt);
  EXPECT_EQ(quota(""), std::nullopt);
  EXPECT_EQ(quota("nonsense\n"), std::nullopt);
}

TEST(ThreadCount, LeastOfAllUnlessAskedFor) {
  CpuLimits limits;
  limits.affinity = 8;
  EXPECT_EQ(default_thread_count(limits), 8);
  limits.cgroup_quota = 2.1;
  EXPECT_EQ(default_thread_count(limits), 3);
  limits.omp_num_threads = 2;
  EXPECT_EQ(default_thread_count(limits), 2);
  limits.cgroup_quota = 0.2;
  EXPECT_EQ(default_thread_count(limits), 1);
  limits.picokernel_num_threads = 5;
  EXPECT_EQ(default_thread_count(limits), 5);
}

TEST(ThreadCount, Environment) {
  setenv("OMP_NUM_THREADS", "3,2", 1);
  setenv("PICOKERNEL_NUM_THREADS", "four", 1);
  CpuLimits limits = read_cpu_limits();
  EXPECT_GE(limits.affinity, 1);
  EXPECT_EQ(limits.omp_num_threads, 3);
  EXPECT_EQ(limits.picokernel_num_threads, std::nullopt);
  EXPECT_EQ(limits.problem, "PICOKERNEL_NUM_THREADS is 'four'; it takes a number from 1 to 1024");
  for (const char* bad : {"0", "-2", "4 ", "2,3", "1025", "99999999999"}) {
    setenv("PICOKERNEL_NUM_THREADS", bad, 1);
    EXPECT_NE(read_cpu_limits().problem, "") << bad;
  }
  setenv("PICOKERNEL_NUM_THREADS", "", 1);
  EXPECT_EQ(read_cpu_limits().problem, "");
  setenv("PICOKERNEL_NUM_THREADS", "4", 1);
  setenv("OMP_NUM_THREADS", "0", 1);
  limits = read_cpu_limits();
  EXPECT_EQ(limits.omp_num_threads, std::nullopt);
  EXPECT_EQ(limits.picokernel_num_threads, 4);
  EXPECT_EQ(limits.problem, "");
  unsetenv("OMP_NUM_THREADS");
  unsetenv("PICOKERNEL_NUM_THREADS");
}

}  // namespace
}  // namespace picokernel::runtime
