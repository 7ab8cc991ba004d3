// a * b + c on a million floats: traced once, compiled for this machine, checked, and profiled.
#include <cstdio>
#include <vector>

#include <picokernel/picokernel.h>

int main() {
  const auto fma = pk::kernel([](pk::Expr a, pk::Expr b, pk::Expr c) { return a * b + c; },
                              {.name = "fma", .parameters = {"a", "b", "c"}});

  const size_t n = 1'000'000;
  std::vector<float> a(n), b(n), c(n), o(n);
  for (size_t i = 0; i < n; ++i) {
    a[i] = static_cast<float>(i % 1000);
    b[i] = 0.5f;
    c[i] = static_cast<float>(i % 7);
  }

  pk::Profile profile;
  for (int call = 0; call < 3; ++call) fma(a, b, c, pk::out(o));  // the first one compiles
  profile.stop();

  for (size_t i = 0; i < n; ++i) {
    const float product = a[i] * b[i];
    if (o[i] != product + c[i]) {
      std::fprintf(stderr, "wrong at %zu: %g\n", i, static_cast<double>(o[i]));
      return 1;
    }
  }
  std::printf("right, on backend %s\n\n%s\n", std::string(fma.backend()).c_str(),
              fma.source("numpy").c_str());
  std::printf("%s", profile.table().c_str());
}
