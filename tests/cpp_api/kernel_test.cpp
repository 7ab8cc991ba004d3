// The C++ API: kernels on spans, views, DLPack tensors and numbers, on every live backend.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include <picokernel/picokernel.h>

namespace {

std::vector<std::string> live() {
  std::vector<std::string> names;
  for (const pk::BackendInfo& b : pk::backends())
    if (b.live) names.push_back(b.name);
  return names;
}

std::vector<float> iota(size_t count, float from = 0) {
  std::vector<float> v(count);
  std::iota(v.begin(), v.end(), from);
  return v;
}

class CppApi : public ::testing::TestWithParam<std::string> {
 protected:
  pk::Options options() const { return {.backend = GetParam()}; }
};

TEST_P(CppApi, ReturnsAnArray) {
  const auto fma =
      pk::kernel([](pk::Expr a, pk::Expr b, pk::Expr c) { return a * b + c; }, options());
  EXPECT_EQ(fma.backend(), GetParam());
  const std::vector<float> a = iota(1000), b = iota(1000, 1), c = iota(1000, 2);
  const pk::Array result = fma(a, std::span(b), c);
  ASSERT_EQ(result.dtype(), pk::DType::f32);
  ASSERT_EQ(result.size(), 1000);
  for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(result.span<float>()[i], a[i] * b[i] + c[i]);
}

TEST_P(CppApi, WritesIntoOutForResults) {
  const auto both =
      pk::kernel([](pk::Expr a, pk::Expr b) { return std::tuple(a + b, a - b); }, options());
  const std::vector<double> a{5, 7}, b{1, 2};
  std::vector<double> sum(2), difference(2);
  both(a, b, pk::out(sum), pk::out(difference));
  EXPECT_EQ(sum, (std::vector<double>{6, 9}));
  EXPECT_EQ(difference, (std::vector<double>{4, 5}));
  const auto [s, d] = both(a, b);
  EXPECT_EQ(s.span<double>()[1], 9);
  EXPECT_EQ(d.span<double>()[0], 4);
}

TEST_P(CppApi, PartsOfArrays) {
  const auto neighbours = pk::kernel(
      [](pk::Expr a, pk::Out o) {
        o = 0;
        o.at({pk::slice(1, -1)}) = a.at({pk::slice({}, -2)}) + a.at({pk::slice(2)});
        o.at({0}) = a.at({-1});
      },
      options());
  const std::vector<float> a{1, 2, 3, 4, 5};
  std::vector<float> o(5, -1);
  neighbours(a, pk::out(o));
  EXPECT_EQ(o, (std::vector<float>{5, 4, 6, 8, 0}));

  const auto outer = pk::kernel(
      [](pk::Expr a, pk::Expr m) {
        return a.at({pk::ellipsis, pk::newaxis}) *
               m.transpose().at({pk::slice({}, {}, -1), pk::all});
      },
      options());
  const std::vector<float> m{1, 2, 3, 4, 5, 6};  // 2 x 3
  const std::vector<float> x{1, 10, 100};
  const pk::Array result = outer(x, pk::ArrayView(m.data(), {2, 3}));
  const std::vector<float> want{3, 6, 20, 50, 100, 400};
  ASSERT_TRUE(std::ranges::equal(result.shape(), std::vector<int64_t>{3, 2}));
  EXPECT_TRUE(std::ranges::equal(result.span<float>(), want));
}

TEST_P(CppApi, ComplexNumbers) {
  using C = std::complex<float>;
  const auto turn = pk::kernel(
      [](pk::Expr z, pk::Expr by) { return std::tuple(z * by + 1.0, z.imag()); }, options());
  const std::vector<C> z{{1, 2}, {3, -1}};
  const auto [turned, imag] = turn(z, std::complex<double>(0, 1));
  ASSERT_EQ(turned.dtype(), pk::DType::c64);
  EXPECT_EQ(turned.span<C>()[0], C(-1, 1));
  EXPECT_EQ(turned.span<C>()[1], C(2, 3));
  EXPECT_EQ(imag.span<float>()[1], -1);
}

TEST_P(CppApi, HalfTypes) {
  const auto twice = pk::kernel([](pk::Expr x) { return x + x * 0.5; }, options());
  const std::vector<pk::float16> x{pk::float16(1.0), pk::float16(65504.0)};
  const pk::Array result = twice(x);
  ASSERT_EQ(result.dtype(), pk::DType::f16);
  EXPECT_EQ(static_cast<float>(result.span<pk::float16>()[0]), 1.5f);
  EXPECT_TRUE(std::isinf(static_cast<float>(result.span<pk::float16>()[1])));
  const std::vector<pk::bfloat16> y{pk::bfloat16(3.0f)};
  EXPECT_EQ(static_cast<float>(twice(y).span<pk::bfloat16>()[0]), 4.5f);
}

TEST_P(CppApi, StoresIntoParameters) {
  const auto step = pk::kernel(
      [](pk::Expr x, pk::Out o, pk::Out total) {
        o = x * 2;
        total += o;
      },
      options());
  const std::vector<int32_t> x{1, 2, 3};
  std::vector<int32_t> o(3), total{10, 20, 30};
  step(x, pk::out(o), pk::out(total));
  EXPECT_EQ(o, (std::vector<int32_t>{2, 4, 6}));
  EXPECT_EQ(total, (std::vector<int32_t>{12, 24, 36}));
}

TEST_P(CppApi, NumbersAreWeakAndTypedOnesStrong) {
  const auto scale = pk::kernel([](pk::Expr x, pk::Expr s) { return x * s; }, options());
  const std::vector<float> x{1, 2};
  EXPECT_EQ(scale(x, 0.5).dtype(), pk::DType::f32);
  EXPECT_EQ(scale(x, 3).span<float>()[1], 6);
  EXPECT_EQ(scale(x, 4).span<float>()[1], 8);  // a new value, no new trace
  EXPECT_EQ(scale(x, pk::typed(0.5)).dtype(), pk::DType::f64);
  EXPECT_EQ(scale(x, true).span<float>()[0], 1);
  const pk::Array number = scale(2, 2.5);
  EXPECT_EQ(number.shape().size(), 0u);
  EXPECT_EQ(number.item<double>(), 5.0);
}

TEST_P(CppApi, StridesAndBroadcasting) {
  const auto add = pk::kernel([](pk::Expr a, pk::Expr b) { return a + b; }, options());
  const std::vector<float> data = iota(12);
  const pk::ArrayView matrix(data.data(), {3, 4});
  const pk::ArrayView reversed(data.data() + 11, {3, 4}, {-16, -4});
  const pk::ArrayView column(data.data(), {3, 1}, {4, 4});
  const pk::Array sum = add(matrix, reversed);
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(static_cast<const float*>(sum.data())[i], 11);
  const pk::Array wide = add(column, std::span(data).first(4));
  ASSERT_EQ(wide.shape()[0], 3);
  ASSERT_EQ(wide.shape()[1], 4);
  EXPECT_EQ(wide.span<float>()[2 * 4 + 3], 5);
  const pk::ArrayView transposed(data.data(), {4, 3}, {4, 16});
  const pk::Array like_input = add(transposed, 1);
  EXPECT_EQ(like_input.strides()[0], 4);  // K order
}

TEST_P(CppApi, DLPack) {
  const auto negate = pk::kernel([](pk::Expr a) { return -a; }, options());
  std::vector<int16_t> data{9, 1, 2, 3, 4, 5, 6};
  int64_t shape[] = {3}, strides[] = {2};
  const pk::DLTensor tensor{data.data(), {1, 0}, 1, {0, 16, 1}, shape, strides, sizeof(int16_t)};
  const pk::Array result = negate(tensor);
  EXPECT_EQ(result.dtype(), pk::DType::i16);
  EXPECT_EQ(result.span<int16_t>()[2], -5);
  pk::DLManagedTensor* shared = result.to_dlpack();
  EXPECT_EQ(negate(shared->dl_tensor).span<int16_t>()[0], 1);
  shared->deleter(shared);
}

TEST_P(CppApi, ZeroSizesAndScalars) {
  const auto root = pk::kernel([](pk::Expr a) { return pk::sqrt(a); }, options());
  EXPECT_EQ(root(std::vector<double>{}).size(), 0);
  const double nine = 9;
  EXPECT_EQ(root(pk::ArrayView(&nine, std::span<const int64_t>{})).item<double>(), 3);
}

TEST_P(CppApi, InPlaceAndOverlapping) {
  const auto add = pk::kernel([](pk::Expr a, pk::Expr b) { return a + b; }, options());
  std::vector<float> x = iota(8);
  add(x, 1, pk::out(x));
  EXPECT_EQ(x, iota(8, 1));
  add(std::span(x).first(7), 0,
      pk::out(std::span(x).last(7)));  // as if the input were copied first
  EXPECT_EQ(x, (std::vector<float>{1, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_P(CppApi, KernelsInsideKernels) {
  const auto square = pk::kernel([](pk::Expr a) { return a * a; }, options());
  const auto norm = pk::kernel(
      [square](pk::Expr a, pk::Expr b) { return pk::sqrt(square(a) + square(b)); }, options());
  EXPECT_EQ(norm(std::vector<double>{3}, std::vector<double>{4}).item<double>(), 5);
}

TEST_P(CppApi, ManyThreads) {
  const auto add = pk::kernel([](pk::Expr a, pk::Expr b) { return a + b; }, options());
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (size_t n = 1; n < 50; ++n) {
        const std::vector<float> x = iota(n + t);
        wrong[t] += add(x, x).span<float>().back() != 2 * x.back();
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

INSTANTIATE_TEST_SUITE_P(Backends, CppApi, ::testing::ValuesIn(live()),
                         [](const auto& i) { return i.param; });

std::array<pk::Expr, 2> sum_and_product(pk::Expr a, pk::Expr b) { return {a + b, a * b}; }

TEST(CppKernel, TakesFunctionsAndGivesArrays) {
  const auto both = pk::kernel(sum_and_product, {.name = "both"});
  const std::array<pk::Array, 2> results = both(std::vector<float>{2}, std::vector<float>{5});
  EXPECT_EQ(results[1].item<float>(), 10);
}

TEST(CppKernel, ShowsItsStages) {
  const auto fma = pk::kernel([](pk::Expr a, pk::Expr b, pk::Expr c) { return a * b + c; },
                              {.name = "fma", .parameters = {"a", "b", "c"}});
  const char* text =
      "graph @fma(%a: ref f32[n0], %b: ref f32[n0], %c: ref f32[n0]) -> (f32[n0]) {\n"
      "  %0 = read %a\n"
      "  %1 = read %b\n"
      "  %2 = mul %0, %1\n"
      "  %3 = read %c\n"
      "  %4 = add %2, %3\n"
      "  return %4\n"
      "}\n";
  EXPECT_EQ(fma.ir(), text);
  EXPECT_NE(fma.source("numpy").find("multiply"), std::string::npos);
  EXPECT_NE(fma.source("ref").find("@fma"), std::string::npos);
  const std::vector<double> x{1};
  fma(x, x, x);
  EXPECT_NE(fma.ir().find("f64"), std::string::npos);
  EXPECT_EQ(fma.on("ref").backend(), "ref");
}

TEST(CppKernel, KnowsSizes) {
  const auto mean = pk::kernel([](pk::Expr x) { return x / x.size(0); });
  EXPECT_EQ(mean(std::vector<float>{8, 16}).span<float>()[1], 8);
}

TEST(CppKernel, HasEveryFunction) {
  const auto all = pk::kernel([](pk::Expr x, pk::Expr i) {
    pk::Expr sum = x;
#define PK_CALL(name) sum += pk::name(x).astype<double>();
    PK_UNARY_FUNCTIONS(PK_CALL)
#undef PK_CALL
#define PK_CALL(name) sum += pk::name(x, x).astype<double>();
    PK_BINARY_FUNCTIONS(PK_CALL)
#undef PK_CALL
    sum += ((~i & i) | (i ^ i)) + (i << i) + (i >> 1) + i % 3 + pk::where(i, 1, 2);
    sum += pk::bitwise_count(i) + pk::gcd(i, 6) + pk::lcm(i, i) + pk::ldexp(x, i);
    sum += pk::frexp(x).first + pk::frexp(x).second + pk::modf(x).first + pk::modf(x).second;
    return pk::clip(sum, -1, 1);
  });
  EXPECT_LE(std::abs(all(std::vector<double>{1.0}, std::vector<int>{1}).item<double>()), 1);
}

TEST(CppKernel, RsqrtIsARootAndADivision) {
  const auto rsqrt = pk::kernel([](pk::Expr x) { return pk::rsqrt(x); });
  EXPECT_EQ(rsqrt(std::vector<float>{0.1f}).item<float>(), 1 / std::sqrt(0.1f));
}

TEST(CppKernel, HasAnAccuracy) {
  const auto exp = [](pk::Expr x) { return pk::exp(x); };
  const auto fast = pk::kernel(exp, {.floats = {.accuracy = pk::Accuracy::fast}});
  EXPECT_NE(fast.ir().find("accuracy fast"), std::string::npos);
  EXPECT_EQ(pk::kernel(exp).ir().find("accuracy"), std::string::npos);
  EXPECT_NEAR(fast(std::vector<double>{1}).item<double>(), std::exp(1.0), 1e-15);
}

}  // namespace
