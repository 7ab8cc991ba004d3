// Grids as parameters.
#include "runtime/executable.h"

#include <vector>

namespace picokernel::runtime {

void Executable::launch(std::span<const uint64_t> params, std::span<const Reach> /*reach*/,
                        const Grid& grid, uint64_t /*seed*/) {
  std::vector<uint64_t> all;
  all.reserve(params.size() + 6);
  all.assign(params.begin(), params.end());
  for (const int64_t n : grid.blocks) all.push_back(static_cast<uint64_t>(n));
  for (const int64_t n : grid.threads) all.push_back(static_cast<uint64_t>(n));
  launch(all.data());
}

}  // namespace picokernel::runtime
