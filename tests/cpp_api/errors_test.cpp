// What is refused, at compile time and at run time, and with which line.

#include <optional>

#include <gtest/gtest.h>

#include <picokernel/picokernel.h>

namespace {

static_assert(!std::is_convertible_v<pk::Expr, bool>);
static_assert(!std::is_default_constructible_v<pk::Expr>);
static_assert(!std::is_constructible_v<pk::ArrayView, std::vector<std::string>>);
static_assert(!std::is_constructible_v<pk::ArrayView, std::vector<long double>>);

// The one diagnostic of an E that the call ends in.
template <class E, class Call>
pk::Diagnostic failure(Call call) {
  try {
    call();
  } catch (const E& e) {
    EXPECT_EQ(e.diagnostics().size(), 1u);
    return e.diagnostics().at(0);
  }
  ADD_FAILURE() << "no error";
  return {};
}

const std::vector<float> kThree{1, 2, 3}, kFour{1, 2, 3, 4};

uint32_t line_here(pk::SourceLocation where = pk::SourceLocation::current()) {
  return where.line();
}

TEST(CppErrors, ShapesWithTheLineOfTheOperator) {
  uint32_t line = 0;
  const auto add = pk::kernel([&line](pk::Expr a, pk::Expr b) {
    line = line_here() + 1;
    return a + b;
  });
  const pk::Diagnostic d = failure<pk::LaunchError>([&] { add(kThree, kFour); });
  EXPECT_EQ(d.message, "`add`: shapes (3,) and (4,) do not broadcast");
  EXPECT_EQ(d.location.line, line);
  EXPECT_EQ(d.location.file, __FILE__);
  EXPECT_EQ(add(kThree, kThree).size(), 3);  // usable afterwards
}

TEST(CppErrors, Types) {
  const auto both = pk::kernel([](pk::Expr a, pk::Expr b) { return a & b; });
  const pk::Diagnostic d = failure<pk::CompileError>([&] { both(kThree, kThree); });
  EXPECT_EQ(d.message, "`bitwise_and` of float32 and float32");
}

TEST(CppErrors, NumbersThatDoNotFit) {
  const auto add = pk::kernel([](pk::Expr a, pk::Expr k) { return a + k; });
  const std::vector<uint8_t> bytes{1, 2};
  failure<pk::LaunchError>([&] { add(bytes, 300); });
  failure<pk::LaunchError>([&] { add(bytes, ~uint64_t{0}); });
  EXPECT_EQ(add(bytes, 254).span<uint8_t>()[1], 0);
}

TEST(CppErrors, Outputs) {
  const auto copy = pk::kernel([](pk::Expr a) { return a + 0; });
  std::vector<float> small(2);
  failure<pk::LaunchError>([&] { copy(kThree, pk::out(small)); });
  failure<pk::LaunchError>([&] { copy(kThree, pk::out(kThree)); });  // const
  std::vector<int> integers(3);
  failure<pk::LaunchError>([&] { copy(kThree, pk::out(integers)); });
}

TEST(CppErrors, ValuesOutsideOfTheirTrace) {
  std::optional<pk::Expr> kept;
  const auto leak = pk::kernel([&kept](pk::Expr a) {
    if (kept) return a + *kept;
    kept = a;
    return a + 1;
  });
  leak(kThree);
  failure<pk::CompileError>([&] { leak(std::vector<double>{1}); });
  failure<pk::CompileError>([&] { *kept + 1; });
}

TEST(CppErrors, Backends) {
  const auto body = [](pk::Expr a) { return a + 1; };
  const pk::Diagnostic d =
      failure<pk::LaunchError>([&] { pk::kernel(body, {.backend = "cudda"}); });
  EXPECT_EQ(d.message, "there is no backend `cudda`");
  failure<pk::LaunchError>([&] { pk::kernel(body, {.backend = "numpy"}); });
  failure<pk::LaunchError>([&] { (void)pk::kernel(body).source("nympy"); });
}

TEST(CppErrors, ParameterNames) {
  failure<pk::CompileError>(
      [] { pk::kernel([](pk::Expr a) { return a + 1; }, {.parameters = {"a", "b"}}); });
}

TEST(CppErrors, KernelThatComputesNothing) {
  const auto nothing = pk::kernel([](pk::Expr) {});
  failure<pk::CompileError>([&] { nothing(kThree); });
}

TEST(CppErrors, DLPackTensors) {
  const auto negate = pk::kernel([](pk::Expr a) { return -a; });
  std::vector<float> data{1};
  int64_t shape[] = {1};
  const pk::DLTensor on_gpu{data.data(), {2, 0}, 1, {2, 32, 1}, shape, nullptr, 0};
  failure<pk::LaunchError>([&] { negate(on_gpu); });
  const pk::DLTensor halves{data.data(), {1, 0}, 1, {2, 16, 1}, shape, nullptr, 0};
  failure<pk::LaunchError>([&] { negate(halves); });
}

TEST(CppErrors, Views) {
  const float x = 1;
  failure<pk::LaunchError>([&] { pk::ArrayView(&x, {1, 1}, {4}); });
  failure<pk::LaunchError>([&] { pk::ArrayView(&x, {-1}); });
  failure<pk::LaunchError>([&] { pk::ArrayView(&x, std::vector<int64_t>(17, 1)); });
  const pk::Array a(pk::DType::f32, {2});
  failure<pk::LaunchError>([&] { a.span<double>(); });
  failure<pk::LaunchError>([&] { a.item<float>(); });
  const pk::Array columns(pk::DType::f32, std::vector<int64_t>{2, 2}, std::vector<int64_t>{4, 8});
  failure<pk::LaunchError>([&] { columns.span<float>(); });
}

TEST(CppErrors, SizesOutOfRange) {
  const auto size = pk::kernel([](pk::Expr a) { return a * a.size(1); });
  failure<pk::CompileError>([&] { size(kThree); });
}

}  // namespace
