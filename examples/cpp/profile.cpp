// Where the time of a program goes: a summary, the time per line, single events, and a trace for
// ui.perfetto.dev.
#include <cstdio>
#include <string>
#include <vector>

#include <picokernel/picokernel.h>
namespace pk = picokernel;

int main(int argc, char** argv) {
  const std::string trace = argc > 1 ? argv[1] : "profile.json";
  const auto blend = pk::kernel([](pk::Expr a, pk::Expr b) { return a + (b - a) * 0.5; },
                                {.name = "blend", .parameters = {"a", "b"}});
  std::vector<float> a(100'000, 1.0f), b(100'000, 3.0f), o(100'000);

  // What this machine reaches at most, from `picokernel doctor`: events then say their share of it.
  pk::set_ceiling(blend.backend(),
                  {.bandwidth = {{1 << 16, 120.0}, {1 << 24, 30.0}}, .gflops = 100});

  pk::Profile profile(trace);  // written by stop()
  {
    const pk::Span step("blend ten times");
    for (int i = 0; i < 10; ++i) blend(a, b, pk::out(o));
  }
  profile.stop();

  std::printf("%s\n%s\n", profile.table().c_str(), profile.lines().c_str());
  for (const pk::TraceEvent& e : profile.events()) {
    if (e.category != "launch" || e.name != "blend") continue;
    std::printf("%s took %lld ns", e.name.c_str(), static_cast<long long>(e.duration_ns));
    for (const auto& [key, value] : e.args)
      if (const auto* number = std::get_if<double>(&value))
        std::printf(", %s: %.3g", key.c_str(), *number);
    std::printf("\n");
  }
  return 0;
}
