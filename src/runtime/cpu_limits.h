// How many CPUs this process may use, and who says so.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <picokernel/api.h>

namespace picokernel::runtime {

struct CpuLimits {
  int affinity = 1;                           // CPUs in the affinity mask
  std::optional<double> cgroup_quota;         // CPUs' worth of time a cgroup (v1 or v2) grants
  std::optional<int> omp_num_threads;         // OMP_NUM_THREADS, its first number
  std::optional<int> picokernel_num_threads;  // PICOKERNEL_NUM_THREADS
  std::string problem;                        // what is wrong with that variable; empty: nothing
};

constexpr int kMaxThreads = 1024;

/// Reads all of them. Another OMP_NUM_THREADS than a positive number counts as not set.
PK_API CpuLimits read_cpu_limits();

/// PICOKERNEL_NUM_THREADS if set, else the least of affinity, quota rounded up, and
/// OMP_NUM_THREADS. At least 1.
PK_API int default_thread_count(const CpuLimits& limits);

/// The tightest CPU quota on the way from this process's cgroup to the root. `proc_cgroup` is the
/// text of /proc/self/cgroup, `root` where cgroup file systems are mounted (/sys/fs/cgroup).
std::optional<double> cgroup_quota(std::string_view proc_cgroup, const std::string& root);

}  // namespace picokernel::runtime
