// Kernels of threads: a sum of many numbers, by blocks through shared memory.
#include <cstdio>
#include <vector>

#include <picokernel/picokernel.h>

namespace simt = pk::simt;

int main() {
  constexpr int64_t threads = 256, blocks = 16;
  const auto sum = simt::kernel(
      [](simt::Array<const float> x, simt::Array<double> total) {
        const auto part = simt::shared<double>(threads);
        const simt::Value t = simt::threadIdx().x;
        simt::Var own(0.0);
        simt::for_(simt::grid().x, x.size(), simt::gridsize().x,
                   [&](simt::Value i) { own += x[i]; });
        part[t] = own;
        simt::syncthreads();
        simt::Var half(threads / 2);
        simt::while_([&] { return half > 0; },
                     [&] {
                       simt::if_(t < half, [&] { part[t] += part[t + half]; });
                       simt::syncthreads();
                       half = simt::floor_divide(half, 2);
                     });
        simt::if_(t == 0, [&] { simt::atomic_add(total[0], part[0]); });
      },
      {.name = "sum", .parameters = {"x", "total"}});

  std::vector<float> x(1000003);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
  std::vector<double> total(1);
  sum({.blocks = blocks, .threads = threads}, x, total);

  double expected = 0;
  for (const float each : x) expected += each;
  std::printf("%s %.0f\n", total[0] == expected ? "right" : "wrong", total[0]);
  return total[0] == expected ? 0 : 1;
}
