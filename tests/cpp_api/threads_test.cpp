// Kernels of threads from C++, on every live backend that runs them.
#include <numeric>

#include <gtest/gtest.h>

#include <picokernel/picokernel.h>

#include "driver/backends.h"

namespace {

namespace simt = pk::simt;

std::vector<std::string> live() {
  std::vector<std::string> names;
  for (const picokernel::backend::Backend* b : picokernel::driver::all_backends()) {
    using picokernel::backend::Threads;
    if (b->threads != Threads::none && b->open != nullptr && b->why_not_live().empty())
      names.emplace_back(b->name);
  }
  return names;
}

class CppThreads : public ::testing::TestWithParam<std::string> {
 protected:
  simt::Options options(std::vector<std::string> parameters = {}) const {
    return {.backend = GetParam(), .name = "k", .parameters = std::move(parameters)};
  }
};

TEST_P(CppThreads, ScalesARaggedGrid) {
  const auto saxpy = simt::kernel(
      [](simt::Scalar<float> a, simt::Array<const float> x, simt::Array<float> y) {
        const simt::Value i = simt::grid().x;
        simt::if_(i < x.size(), [&] { y[i] += a * x[i]; });
      },
      options());
  std::vector<float> x(1000), y(1000, 1);
  std::iota(x.begin(), x.end(), 0.0f);
  saxpy(simt::forall(1000, 128), 2, x, y);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 1 + 2 * x[i]);
}

TEST_P(CppThreads, AValueIsReadWhereItIsMade) {
  const auto swap = simt::kernel(
      [](simt::Array<int32_t> x) {
        const simt::Value i = simt::grid().x, other = x.size() - 1 - i;
        const simt::Value kept = x[i];
        simt::Var now(kept);
        simt::Var before = now;
        now += 1;
        x[i] = x[other];
        x[other] = before + (now - now);
      },
      options());
  std::vector<int32_t> x{1, 2, 3, 4, 5, 6};
  swap({.blocks = 1, .threads = 3}, x);
  EXPECT_EQ(x, (std::vector<int32_t>{6, 5, 4, 3, 2, 1}));
}

TEST_P(CppThreads, LoopsEndAsTheySay) {
  const auto count = simt::kernel(
      [](simt::Array<const int64_t> x, simt::Array<int64_t> out) {
        const simt::Value i = simt::grid().x;
        simt::if_(i >= out.size(), [&] { simt::return_(); });
        simt::Var steps(int64_t{0}), n(int64_t{0});
        n = x[i];
        simt::while_(
            [&] {
              const simt::Value still = n != 1;  // a statement of the test
              return still && steps < 1000;
            },
            [&] {
              simt::if_(n % 2 == 0, [&] { n = simt::floor_divide(n, 2); }, [&] { n = 3 * n + 1; });
              steps += 1;
            });
        simt::Var odd(int64_t{0});
        simt::for_(0, 100, 1, [&](simt::Value k) {
          simt::if_(k % 2 == 0, [&] { simt::continue_(); });
          simt::if_(k > 7, [&] { simt::break_(); });
          odd += k;
        });
        out[i] = 1000 * steps + odd;
      },
      options());
  const std::vector<int64_t> x{1, 2, 3, 27};
  std::vector<int64_t> out(4);
  count(simt::forall(4), x, out);
  EXPECT_EQ(out, (std::vector<int64_t>{16, 1016, 7016, 111016}));
}

TEST_P(CppThreads, TransposesThroughATile) {
  const auto transpose = simt::kernel(
      [](simt::Array<const float, 2> x, simt::Array<float, 2> y) {
        const auto tile = simt::shared<float>({8, 8});
        const auto [tx, ty, tz] = simt::threadIdx();
        const auto [bx, by, bz] = simt::blockIdx();
        const simt::Value row = by * 8 + ty, column = bx * 8 + tx;
        simt::if_(row < x.shape(0) && column < x.shape(1), [&] { tile(ty, tx) = x(row, column); });
        simt::syncthreads();
        const simt::Value i = bx * 8 + ty, j = by * 8 + tx;
        simt::if_(i < y.shape(0) && j < y.shape(1), [&] { y(i, j) = tile(tx, ty); });
      },
      options({"x", "y"}));
  std::vector<float> x(13 * 21), y(21 * 13);
  std::iota(x.begin(), x.end(), 0.0f);
  transpose({.blocks = {3, 2}, .threads = {8, 8}}, pk::ArrayView(x.data(), {13, 21}),
            pk::ArrayView(y.data(), {21, 13}));
  for (size_t i = 0; i < 21; ++i)
    for (size_t j = 0; j < 13; ++j) ASSERT_EQ(y[i * 13 + j], x[j * 21 + i]);
}

TEST_P(CppThreads, AtomicsGiveWhatWasThere) {
  const auto number = simt::kernel(
      [](simt::Array<int32_t> counter, simt::Array<int32_t> mine) {
        const simt::Value place = simt::atomic_add(counter[0], 1);
        mine[place] = place;
        simt::atomic_max(counter[1], simt::grid().x);
        simt::atomic_cas(counter[2], 0, 7);
      },
      options());
  std::vector<int32_t> counter(3), mine(500, -1), expected(500);
  std::iota(expected.begin(), expected.end(), 0);
  number({.blocks = 5, .threads = 100}, counter, mine);
  EXPECT_EQ(counter, (std::vector<int32_t>{500, 499, 7}));
  EXPECT_EQ(mine, expected);
}

TEST_P(CppThreads, OnlyWhatIsAskedForIsEvaluated) {
  const auto next = simt::kernel(
      [](simt::Array<const float> x, simt::Array<float> y) {
        const simt::Value i = simt::grid().x;
        y[i] = simt::select(i + 1 < x.size(), x[i + 1], 0) +
               simt::cast<float>(i + 1 < x.size() && x[i + 1] > 2);
      },
      options());
  const std::vector<float> x{1, 2, 3};
  std::vector<float> y(3);
  next({.blocks = 1, .threads = 3}, x, y);
  EXPECT_EQ(y, (std::vector<float>{2, 4, 0}));
}

TEST_P(CppThreads, AVariableStartsWithTheTypeOfItsNumber) {
  const auto sum = simt::kernel(
      [](simt::Array<double> out) {
        simt::Var f(0.1f), d(0.1);
        const auto own = simt::local<float>(3);
        own[2] = 0.1;
        out[0] = f;
        out[1] = d;
        out[2] = own[2] * 1.0;  // a weak number
      },
      options());
  std::vector<double> out(3);
  sum({.blocks = 1, .threads = 1}, out);
  EXPECT_EQ(out, (std::vector<double>{0.1f, 0.1, 0.1f}));
}

TEST_P(CppThreads, FunctionsBecomePartOfTheKernel) {
  const auto length = [](simt::Operand x, simt::Operand y) {
    const simt::Value a = simt::Expr(x.tree), b = simt::Expr(y.tree);
    return simt::sqrt(a * a + b * b);
  };
  const auto k = simt::kernel(
      [&](simt::Array<double> x) {
        const simt::Value i = simt::grid().x;
        x[i] = length(x[i], 4);
      },
      options());
  std::vector<double> x{3, 0};
  k({.blocks = 1, .threads = 2}, x);
  EXPECT_EQ(x, (std::vector<double>{5, 4}));
}

TEST_P(CppThreads, ArgumentsHaveTheirTypes) {
  const auto k = simt::kernel([](simt::Array<float, 2> x) { x(0, 0) = 1; }, options({"x"}));
  std::vector<double> wrong(4);
  try {
    k({.blocks = 1, .threads = 1}, pk::ArrayView(wrong.data(), {2, 2}));
    FAIL();
  } catch (const pk::LaunchError& e) {
    EXPECT_NE(std::string(e.what()).find("float64 (2, 2) for 'x'"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("it takes an array of float32 with 2 dimensions"),
              std::string::npos);
  }
  const std::vector<float> constant(4);
  EXPECT_THROW(k({.blocks = 1, .threads = 1}, pk::ArrayView(constant.data(), {2, 2})),
               pk::LaunchError);
  std::vector<float> right(4);
  EXPECT_THROW(k({.blocks = -1, .threads = 1}, pk::ArrayView(right.data(), {2, 2})),
               pk::LaunchError);
  EXPECT_THROW(k({.blocks = 1, .threads = 0}, pk::ArrayView(right.data(), {2, 2})),
               pk::LaunchError);
  EXPECT_THROW(k({.blocks = 1, .threads = 2048}, pk::ArrayView(right.data(), {2, 2})),
               pk::LaunchError);
  k({.blocks = 1, .threads = 1}, pk::ArrayView(right.data(), {2, 2}));
  EXPECT_EQ(right[0], 1);
}

INSTANTIATE_TEST_SUITE_P(Live, CppThreads, ::testing::ValuesIn(live()),
                         [](const auto& info) { return info.param; });

TEST(CppThreadErrors, NameTheUsersLine) {
  const auto divergent = simt::kernel(
      [](simt::Array<float> x) {
        simt::if_(simt::threadIdx().x < 3, [&] { simt::syncthreads(); });
        x[0] = 1;
      },
      {.backend = "ref", .name = "k"});
  std::vector<float> x(8);
  try {
    divergent({.blocks = 1, .threads = 8}, x);
    FAIL();
  } catch (const pk::CompileError& e) {
    const pk::Location& where = e.diagnostics()[0].location;
    EXPECT_TRUE(where.file.ends_with("threads_test.cpp")) << e.what();
    EXPECT_NE(where.line, 0u);
  }
}

TEST(CppThreadErrors, CodeBelongsIntoItsKernel) {
  EXPECT_THROW(simt::syncthreads(), pk::CompileError);
  simt::Options options;
  std::optional<simt::Value> escaped;
  simt::kernel([&](simt::Array<float> x) { escaped.emplace(x[0]); }, options);
  EXPECT_THROW(simt::kernel([&](simt::Array<float> x) { x[0] = *escaped; }, options),
               pk::CompileError);
  EXPECT_THROW(simt::kernel([](simt::Array<float>) {}, {.parameters = {"a", "b"}}),
               pk::CompileError);
}

TEST(CppThreadErrors, AnExpressionIsUsedOnce) {
  EXPECT_THROW(simt::kernel(
                   [](simt::Array<float> x) {
                     auto e = x[0] + 1;
                     x[0] = std::move(e);
                     x[1] = std::move(e);
                   },
                   {}),
               pk::CompileError);
}

}  // namespace
