// Reading the limits on CPUs.
#include "runtime/cpu_limits.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

namespace picokernel::runtime {

namespace {

std::optional<int> positive_number(const char* text) {
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  const bool ends_well = end != text && (*end == '\0' || *end == ',' || *end == ' ');
  if (!ends_well || value < 1 || value > 1 << 16) return std::nullopt;
  return static_cast<int>(value);
}

int affinity_count() {
#if defined(__linux__)
  // The kernel refuses a mask shorter than its own: double until it takes it.
  for (size_t cpus = 1024; cpus <= size_t{1} << 20; cpus *= 2) {
    std::vector<cpu_set_t> mask(cpus / (8 * sizeof(cpu_set_t)));
    const size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0)
      return std::max(1, CPU_COUNT_S(bytes, mask.data()));
  }
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::optional<double> read_number(const std::string& path) {
  std::ifstream in(path);
  double value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

// cgroup v2: "max 100000" or "150000 100000".
std::optional<double> quota_v2(const std::string& folder) {
  std::ifstream in(folder + "/cpu.max");
  double quota = 0, period = 0;
  if (in >> quota >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

std::optional<double> quota_v1(const std::string& folder) {
  const auto quota = read_number(folder + "/cpu.cfs_quota_us");
  const auto period = read_number(folder + "/cpu.cfs_period_us");
  if (quota && period && *quota > 0 && *period > 0) return *quota / *period;
  return std::nullopt;
}

}  // namespace

std::optional<double> cgroup_quota(std::string_view proc_cgroup, const std::string& root) {
  std::optional<double> least;
  // In a container the path named in /proc may lie outside what is mounted; its parents end at the
  // mount, which is the container's own group, so walking up finds that one.
  const auto walk_up = [&](const std::string& mount, std::string path, auto quota_of) {
    while (true) {
      if (const auto quota = quota_of(mount + path); quota && (!least || *quota < *least))
        least = quota;
      if (path.empty()) return;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  };
  std::istringstream lines{std::string(proc_cgroup)};
  for (std::string line; std::getline(lines, line);) {
    // hierarchy-id:controllers:path
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      walk_up(root, path, quota_v2);
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      walk_up(root + "/" + controllers, path, quota_v1);
      walk_up(root + "/cpu", path, quota_v1);
    }
  }
  return least;
}

CpuLimits read_cpu_limits() {
  CpuLimits limits;
  limits.affinity = affinity_count();
  if (std::ifstream in("/proc/self/cgroup"); in) {
    std::stringstream text;
    text << in.rdbuf();
    limits.cgroup_quota = cgroup_quota(text.str(), "/sys/fs/cgroup");
  }
  limits.omp_num_threads = positive_number(std::getenv("OMP_NUM_THREADS"));
  if (const char* ours = std::getenv("PICOKERNEL_NUM_THREADS"); ours != nullptr && *ours != '\0') {
    int count = 0;
    const char* const end = ours + std::string_view(ours).size();
    const auto [rest, error] = std::from_chars(ours, end, count);
    if (error == std::errc() && rest == end && count >= 1 && count <= kMaxThreads)
      limits.picokernel_num_threads = count;
    else
      limits.problem = "PICOKERNEL_NUM_THREADS is '" + std::string(ours) +
                       "'; it takes a number from 1 to " + std::to_string(kMaxThreads);
  }
  return limits;
}

int default_thread_count(const CpuLimits& limits) {
  if (limits.picokernel_num_threads) return *limits.picokernel_num_threads;
  int count = limits.affinity;
  if (limits.cgroup_quota)
    count = std::min(count, static_cast<int>(std::ceil(*limits.cgroup_quota)));
  if (limits.omp_num_threads) count = std::min(count, *limits.omp_num_threads);
  return std::max(1, count);
}

}  // namespace picokernel::runtime
