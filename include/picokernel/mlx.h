// Kernels on arrays of MLX, lazily: a call becomes one node of MLX's graph, which runs the kernel's
// native code on its CPU stream when MLX evaluates. For programs that link MLX, from 0.32 on,
// beside picokernel; results and errors of a run come at mlx::core::eval.
//
//   mx::array o = fma(a, b, 2.0f);    // a, b: mlx::core::array, numbers beside them
//   store(a, pk::out(o));             // binds o to what the kernel stores
//   auto [low, high] = range(a, b);   // a std::array of results
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <picokernel/kernel.h>
#include <picokernel/mlx_primitive.h>

namespace picokernel {

/// An array of MLX that a call binds anew.
struct OutMlxArray {
  ::mlx::core::array& array;
};
inline OutMlxArray out(::mlx::core::array& array) { return {array}; }

namespace detail {

struct Mlx {
  using Array = ::mlx::core::array;

  /// Throws LaunchError and CompileError as other calls do, std::invalid_argument for GPU streams.
  template <class... A>
  static std::vector<Array> call(const AnyKernel& kernel, A&&... args) {
    if (!graph::on_cpu())
      throw std::invalid_argument("picokernel runs on CPU streams of MLX: set_default_device(cpu)");
    Mlx made;
    made.views_.reserve(sizeof...(A));
    (made.meet(args), ...);
    const ArrayView* next = made.views_.data();
    const Argument list[] = {argument(args, next)...};
    std::vector<Array> results = graph::enqueue(kernel.defer(list), made.inputs_);
    size_t written = results.size() - made.outs_.size();
    for (size_t i = 0; i < made.outs_.size(); ++i) *made.outs_[i] = results[written + i];
    results.erase(results.begin() + static_cast<ptrdiff_t>(written), results.end());
    return results;
  }

 private:
  // While a call is planned, arrays lie at addresses that nobody reads, equal ones at one.
  void meet(const Array& a) {
    size_t n = 0;
    while (n < inputs_.size() && inputs_[n].id() != a.id()) ++n;
    const std::vector<int64_t> shape(a.shape().begin(), a.shape().end());
    views_.emplace_back(reinterpret_cast<void*>((uintptr_t{1} << 62) + (uintptr_t{n} << 48)),
                        graph::picokernel_type(a.dtype()), shape);
    inputs_.push_back(a);
  }
  void meet(const OutMlxArray& out) {
    meet(out.array);
    outs_.push_back(&out.array);
  }
  // MLX has no complex128: the array holds the two parts.
  void meet(const std::complex<double>& z) {
    inputs_.push_back(Array({z.real(), z.imag()}, ::mlx::core::float64));
  }
  template <class A>
  void meet(const A&) {
    static_assert(std::is_constructible_v<Argument, A> && !std::is_constructible_v<ArrayView, A>,
                  "beside arrays of MLX, a call takes numbers");
  }
  template <class A>
  static Argument argument(const A& a, const ArrayView*& next) {
    if constexpr (std::is_same_v<A, Array> || std::is_same_v<A, OutMlxArray>)
      return Argument(*next++);
    else
      return Argument(a);
  }

  std::vector<ArrayView> views_;
  std::vector<Array> inputs_;
  std::vector<Array*> outs_;
};

template <>
struct LibraryOf<::mlx::core::array> : Mlx {};
template <>
struct LibraryOf<OutMlxArray> : Mlx {};

}  // namespace detail
}  // namespace picokernel
