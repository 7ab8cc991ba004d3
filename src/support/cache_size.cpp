// The last-level cache, as the system reports it.
#include "support/cache_size.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace picokernel {
namespace {

// Not sysconf: on AMD it counts the caches of all core complexes of the package.
int64_t measure() {
  int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) +
                       "/size");
    int64_t size = 0;
    char unit = 'B';
    if (!(file >> size)) continue;
    file >> unit;
    size *= unit == 'K' ? 1024 : unit == 'M' ? 1024 * 1024 : 1;
    largest = std::max(largest, size);
  }
  return largest != 0 ? largest : int64_t{32} << 20;
}

}  // namespace

int64_t last_level_cache_bytes() {
  static const int64_t bytes = measure();
  return bytes;
}

}  // namespace picokernel
