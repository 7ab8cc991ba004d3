// y += a * x in place on the columns of a matrix, and results that the call allocates.
#include <algorithm>
#include <cstdio>
#include <vector>

#include <picokernel/picokernel.h>

int main() {
  // Parameters of type pk::Out are written; numbers are weak, so everything stays float32.
  const auto saxpy = pk::kernel([](pk::Expr a, pk::Expr x, pk::Out y) { y += a * x; });
  const auto range = pk::kernel(
      [](pk::Expr x, pk::Expr y) { return std::pair(pk::minimum(x, y), pk::maximum(x, y)); });

  std::vector<float> matrix(4 * 3, 1.0f);
  const pk::ArrayView column(matrix.data() + 1, {4}, {3 * sizeof(float)});  // strides in bytes
  const std::vector<float> x{1, 2, 3, 4};
  saxpy(2.0, x, pk::out(column));
  const auto [low, high] = range(column, 5.5);

  bool right = true;
  for (size_t i = 0; i < 4; ++i) {
    const float y = 1 + 2 * x[i];
    right = right && matrix[3 * i] == 1 && matrix[3 * i + 1] == y;
    right = right && low.span<float>()[i] == std::min(y, 5.5f);
    right = right && high.span<float>()[i] == std::max(y, 5.5f);
  }

  // A bad call says what is wrong, and where in the kernel.
  try {
    saxpy(2.0, std::vector<float>{1, 2}, pk::out(column));
    right = false;
  } catch (const pk::LaunchError& error) {
    std::printf("%s\n", error.what());
  }
  std::printf(right ? "right\n" : "wrong\n");
  return right ? 0 : 1;
}
