// Launches that are asked to stop.
#include <chrono>
#include <stop_token>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <picokernel/picokernel.h>

namespace picokernel {
namespace {

// Every step of Euclid's algorithm for neighbours in Fibonacci's sequence: some microseconds each.
constexpr int64_t kSlow = 7540113804746346429, kSlower = 4660046610375530309;

class Stop : public testing::TestWithParam<std::string> {};

TEST_P(Stop, EndsALaunchAndLeavesTheThreadUsable) {
  const auto kernel = pk::kernel([](pk::Expr x, pk::Expr y) { return pk::gcd(x, y); },
                                 {.backend = GetParam(), .name = "slow"});
  std::vector<int64_t> x(30'000'000, kSlow), y(x.size(), kSlower), o(x.size(), -1);
  std::stop_source source;
  {
    const pk::StopScope scope(source.get_token());
    const std::jthread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      source.request_stop();
    });
    EXPECT_THROW(kernel(x, y, pk::out(o)), pk::Stopped);
    EXPECT_EQ(o.front(), 1);
    EXPECT_EQ(o.back(), -1);
    EXPECT_THROW(kernel(x, y, pk::out(o)), pk::Stopped);  // it stays requested
    const pk::StopScope inner(std::stop_token{});
    std::vector<int64_t> few{12}, other{18}, result{0};
    kernel(few, other, pk::out(result));
    EXPECT_EQ(result[0], 6);
  }
  x.resize(100'000);
  y.resize(100'000);
  o.assign(100'000, -1);
  kernel(x, y, pk::out(o));
  EXPECT_EQ(o.back(), 1);
}

std::vector<std::string> interruptible() {
  std::vector<std::string> names;
  for (const BackendInfo& b : backends())
    if (b.live && (b.name == "cpu" || b.name == "ref")) names.push_back(b.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Backends, Stop, testing::ValuesIn(interruptible()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace picokernel
