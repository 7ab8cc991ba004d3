// A kernel on MLX's arrays: lazy nodes of MLX's graph that run native code when MLX evaluates.
#include <cstdio>

#include <picokernel/mlx.h>
#include <picokernel/picokernel.h>

namespace mx = mlx::core;

int main() {
  mx::set_default_device(mx::Device::cpu);
  const auto fma =
      pk::kernel([](pk::Expr a, pk::Expr b, pk::Expr c) { return a * b + c; }, {.name = "fma"});
  const mx::array a = mx::arange(6.0f), b = mx::full({6}, 3.0f);

  const mx::array lazy = fma(mx::sin(a), b, 0.5f);  // between MLX's own operations
  bool right = lazy.status() == mx::array::Status::unscheduled;
  right = right && mx::allclose(lazy, mx::sin(a) * b + 0.5f).item<bool>();

  // Any strides; several results; stores bind their argument anew.
  const auto range = pk::kernel(
      [](pk::Expr x, pk::Expr y) { return std::pair(pk::minimum(x, y), pk::maximum(x, y)); });
  const auto [low, high] = range(mx::transpose(mx::reshape(a, {2, 3})), mx::array(2.5f));
  right = right && low.shape() == mx::Shape{3, 2} && mx::max(low).item<float>() == 2.5f &&
          mx::min(high).item<float>() == 2.5f;
  const auto scale = pk::kernel([](pk::Expr k, pk::Out x) { x *= k; });
  mx::array x = a + 1.0f;
  const mx::array before = x;
  scale(2.0, pk::out(x));
  right = right && mx::array_equal(x, 2.0f * before).item<bool>();

  // A compiled function holds them, too.
  const auto compiled = mx::compile([&](const std::vector<mx::array>& in) {
    return std::vector<mx::array>{fma(in[0], in[1], in[0]) - in[0]};
  });
  right = right && mx::array_equal(compiled({a, b})[0], a * b).item<bool>();

  try {
    fma(a, mx::ones({4}), 1);
    right = false;
  } catch (const pk::Error& error) {
    std::printf("%s\n", error.what());
  }
  std::printf(right ? "right\n" : "wrong\n");
  return right ? 0 : 1;
}
