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
  const pk::DLTensor quarters{data.data(), {1, 0}, 1, {2, 8, 1}, shape, nullptr, 0};
  failure<pk::LaunchError>([&] { negate(quarters); });
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

TEST(CppErrors, ViewsOfNoMemory) {
  float* const none = nullptr;
  EXPECT_NE(failure<pk::LaunchError>([&] { pk::ArrayView(none, {2}); }).message.find("null"),
            std::string::npos);
  failure<pk::LaunchError>([&] { pk::ArrayView(none, std::vector<int64_t>{}); });
  EXPECT_EQ(pk::ArrayView(none, {2, 0}).rank(), 2u);
  const auto negate = pk::kernel([](pk::Expr a) { return -a; });
  failure<pk::LaunchError>([&] { negate(pk::ArrayView()); });
  int64_t shape[] = {1};
  const pk::DLTensor tensor{nullptr, {1, 0}, 1, {2, 32, 1}, shape, nullptr, 8};
  failure<pk::LaunchError>([&] { negate(tensor); });
  shape[0] = 0;
  EXPECT_EQ(negate(tensor).size(), 0);
}

TEST(CppErrors, MalformedDLPackTensors) {
  float x = 1;
  int64_t shape[] = {-1};
  const pk::DLTensor no_rank{&x, {1, 0}, -1, {2, 32, 1}, shape, nullptr, 0};
  EXPECT_EQ(failure<pk::LaunchError>([&] { pk::ArrayView{no_rank}; }).message,
            "a DLPack tensor has -1 dimensions");
  const pk::DLTensor negative{&x, {1, 0}, 1, {2, 32, 1}, shape, nullptr, 0};
  failure<pk::LaunchError>([&] { pk::ArrayView{negative}; });
  const pk::DLTensor no_shape{&x, {1, 0}, 1, {2, 32, 1}, nullptr, nullptr, 0};
  failure<pk::LaunchError>([&] { pk::ArrayView{no_shape}; });
}

TEST(CppErrors, StridesBetweenElements) {
  const float x[4] = {1, 2, 3, 4};
  const pk::Diagnostic d = failure<pk::LaunchError>([&] { pk::ArrayView(x, {2}, {6}); });
  EXPECT_EQ(
      d.message,
      "an array of float32 has a stride of 6 bytes, no multiple of the 4 bytes of an element");
  EXPECT_EQ(d.notes.at(0), "hint: copy it to an array without gaps first");
  failure<pk::LaunchError>([&] { pk::ArrayView(x + 3, {2}, {-6}); });
  EXPECT_EQ(pk::ArrayView(x, {1}, {6}).rank(), 1u);  // a stride that is never taken
}

TEST(CppErrors, ArraysTooLargeToCount) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  EXPECT_EQ(failure<pk::LaunchError>([&] { pk::Array(pk::DType::f32, {kHuge, kHuge}); }).message,
            "an array of float32 (1099511627776, 1099511627776) takes more bytes than an int64 can "
            "count");
  failure<pk::LaunchError>([&] { pk::Array(pk::DType::f32, {0, kHuge, kHuge}); });
  failure<pk::LaunchError>([&] { pk::Array(pk::DType::f64, {int64_t{1} << 60}); });
  failure<pk::LaunchError>([&] { pk::Array(pk::DType::f32, {2, -1}); });
  const std::vector<int64_t> shape{-2}, strides{4};
  failure<pk::LaunchError>([&] { pk::Array(pk::DType::f32, shape, strides); });
  const float x = 1;
  failure<pk::LaunchError>([&] { pk::ArrayView(&x, {kHuge, kHuge}); });
}

TEST(CppErrors, ResultsTooLargeToCount) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  const float x = 1;
  const auto add = pk::kernel([](pk::Expr a, pk::Expr b) { return a + b; }, {.name = "add"});
  const pk::Diagnostic d = failure<pk::LaunchError>(
      [&] { add(pk::ArrayView(&x, {kHuge}, {0}), pk::ArrayView(&x, {kHuge, 1}, {0, 0})); });
  EXPECT_EQ(d.message,
            "kernel add: a result of float32 (1099511627776, 1099511627776) takes more bytes than "
            "an int64 can count");
  EXPECT_EQ(add(kThree, kThree).size(), 3);  // usable afterwards
}

TEST(CppErrors, SizesOutOfRange) {
  const auto size = pk::kernel([](pk::Expr a) { return a * a.size(1); });
  failure<pk::CompileError>([&] { size(kThree); });
}

}  // namespace
