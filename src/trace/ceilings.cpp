// Shares of what the machine was measured to do at most.
#include "trace/ceilings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace picokernel {

namespace {

struct Known {
  std::mutex mutex;
  std::map<std::string, Ceiling, std::less<>> by_backend;
};
Known& known() {
  static Known& instance = *new Known;
  return instance;
}

// Between two points a power law, beyond the ends constant.
double bandwidth_at(const Ceiling& ceiling, int64_t bytes) {
  const auto& curve = ceiling.bandwidth;
  const auto above = std::ranges::lower_bound(curve, bytes, {}, &std::pair<int64_t, double>::first);
  if (above == curve.end()) return curve.empty() ? 0 : curve.back().second;
  if (above == curve.begin()) return above->second;
  const auto below = above - 1;
  const double part =
      std::log(static_cast<double>(bytes) / static_cast<double>(below->first)) /
      std::log(static_cast<double>(above->first) / static_cast<double>(below->first));
  return below->second * std::pow(above->second / below->second, part);
}

}  // namespace

void set_ceiling(std::string_view backend, Ceiling ceiling) {
  std::erase_if(ceiling.bandwidth, [](const auto& p) { return p.first <= 0 || !(p.second > 0); });
  std::ranges::sort(ceiling.bandwidth);
  const std::lock_guard lock(known().mutex);
  known().by_backend.insert_or_assign(std::string(backend), std::move(ceiling));
}

namespace trace {

void add_shares(std::vector<Event>& events) {
  const std::lock_guard lock(known().mutex);
  if (known().by_backend.empty()) return;
  for (Event& e : events) {
    if (e.category != "op" && e.category != "launch") continue;
    const auto found = known().by_backend.find(e.backend);
    if (found == known().by_backend.end()) continue;
    const Ceiling& ceiling = found->second;
    int64_t bytes = 0;
    double memory = 0, compute = 0;
    for (const auto& [key, value] : e.args) {
      if (key == "bytes") bytes = std::get<int64_t>(value);
      if (key == "GB/s") memory = std::get<double>(value);
      if (key == "GFLOP/s") compute = std::get<double>(value);
    }
    const double bandwidth = bandwidth_at(ceiling, bytes);
    memory = bandwidth > 0 ? memory / bandwidth : 0;
    compute = ceiling.gflops > 0 ? compute / ceiling.gflops : 0;
    if (memory == 0 && compute == 0) continue;
    e.args.emplace_back("% of ceiling", 100 * std::max(memory, compute));
    e.args.emplace_back("ceiling", memory >= compute ? "memory" : "compute");
  }
}

}  // namespace trace
}  // namespace picokernel
