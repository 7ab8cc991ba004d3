// The cpu backend against hand-written loops: a * b + c in float32, launched from C++ (no Python in
// between).
//
// Usage: cpu_limit [threads]. Prints a row per size: nanoseconds of ours with ordinary and with
// streaming stores, of the hand-written loop with either, and the ratio of the better ones.
// PICOKERNEL_CPU caps ours only.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "backend/cpu/cpu.h"
#include "ir/text.h"
#include "runtime/thread_pool.h"

namespace {

using namespace picokernel;
using Clock = std::chrono::steady_clock;

std::string kernel_text(bool nontemporal) {
  return std::string(R"(
kernel @fma(%a: ptr<global, f32>, %b: ptr<global, f32>, %c: ptr<global, f32>, %o: ptr<global, f32>, %n: i64) {
  parallel %i in %n {
    %x = load %a[%i]
    %y = load %b[%i]
    %m = mul %x, %y
    %z = load %c[%i]
    %s = add %m, %z
    store %s, %o[%i])") +
         (nontemporal ? " nontemporal" : "") + "\n  }\n}\n";
}

struct Arrays {
  const float *a, *b, *c;
  float* o;
};

#if defined(__x86_64__)
__attribute__((target("avx2"))) void by_hand(const Arrays& x, int64_t lo, int64_t hi, bool stream) {
  int64_t i = lo;
  if (stream) {
    for (; i < hi && reinterpret_cast<uintptr_t>(x.o + i) % 64 != 0; ++i)
      x.o[i] = x.a[i] * x.b[i] + x.c[i];
    for (; i + 8 <= hi; i += 8)
      _mm256_stream_ps(
          x.o + i, _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(x.a + i), _mm256_loadu_ps(x.b + i)),
                                 _mm256_loadu_ps(x.c + i)));
    _mm_sfence();
  } else {
    for (; i + 8 <= hi; i += 8)
      _mm256_storeu_ps(
          x.o + i, _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(x.a + i), _mm256_loadu_ps(x.b + i)),
                                 _mm256_loadu_ps(x.c + i)));
  }
  for (; i < hi; ++i) x.o[i] = x.a[i] * x.b[i] + x.c[i];
}
#else
void by_hand(const Arrays& x, int64_t lo, int64_t hi, bool) {
  for (int64_t i = lo; i < hi; ++i) x.o[i] = x.a[i] * x.b[i] + x.c[i];
}
#endif

// The hand-written loop on our own pool, so that only the loops differ.
void by_hand_on_threads(const Arrays& x, int64_t n, bool stream) {
  const int64_t threads = n >= 50'000 ? runtime::num_threads() : 1;
  if (threads == 1) return by_hand(x, 0, n, stream);
  struct Job {
    const Arrays& x;
    int64_t n, threads;
    bool stream;
  } job{x, n, threads, stream};
  runtime::parallel_for(
      threads,
      [](void* context, int64_t chunk) {
        const Job& j = *static_cast<Job*>(context);
        const int64_t step = (j.n / j.threads + 63) & ~int64_t{63};
        by_hand(j.x, std::min(j.n, chunk * step),
                chunk + 1 == j.threads ? j.n : std::min(j.n, (chunk + 1) * step), j.stream);
      },
      &job, runtime::Wake::wake);
}

// Median nanoseconds of the contenders, their rounds in turn.
std::vector<double> measure(const std::vector<std::function<void()>>& contenders, int64_t n) {
  const int64_t calls = std::max<int64_t>(1, 400'000 / (n / 16 + 50));
  const int rounds = n >= 50'000'000 ? 9 : 25;
  std::vector<std::vector<double>> times(contenders.size());
  for (int r = 0; r < rounds; ++r) {
    for (size_t k = 0; k < contenders.size(); ++k) {
      contenders[k]();
      contenders[k]();
      const auto begin = Clock::now();
      for (int64_t i = 0; i < calls; ++i) contenders[k]();
      times[k].push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count() /
                         static_cast<double>(calls));
    }
  }
  std::vector<double> medians;
  for (auto& t : times) {
    std::ranges::nth_element(t, t.begin() + static_cast<std::ptrdiff_t>(t.size() / 2));
    medians.push_back(t[t.size() / 2]);
  }
  return medians;
}

std::unique_ptr<runtime::Executable> compile(bool nontemporal) {
  const ir::Module kernel = ir::parse(kernel_text(nontemporal), "fma.pk").at(0);
  return backend::cpu_backend.open(backend::cpu_backend.emit(kernel), kernel);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) runtime::set_num_threads(std::atoi(argv[1]));
  const auto ordinary = compile(false), streaming = compile(true);
  std::printf("%s, %d threads\n%10s %12s %12s %12s %12s  hand / ours\n",
              backend::cpu::target_key().substr(0, 14).c_str(), runtime::num_threads(), "n", "ours",
              "streaming", "by hand", "streaming");
  for (const int64_t n : {1'000, 10'000, 100'000, 1'000'000, 10'000'000, 100'000'000}) {
    std::vector<float> a(n, 1.5f), b(n, 2.5f), c(n, 0.25f), o(n);
    const Arrays arrays{a.data(), b.data(), c.data(), o.data()};
    const auto bits = [](const void* p) {
      return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(p));
    };
    const uint64_t params[] = {bits(a.data()), bits(b.data()), bits(c.data()), bits(o.data()),
                               static_cast<uint64_t>(n)};
    const std::vector<double> t =
        measure({[&] { ordinary->launch(params); }, [&] { streaming->launch(params); },
                 [&] { by_hand_on_threads(arrays, n, false); },
                 [&] { by_hand_on_threads(arrays, n, true); }},
                n);
    std::printf("%10lld %12.1f %12.1f %12.1f %12.1f  %.2f\n", static_cast<long long>(n), t[0], t[1],
                t[2], t[3], std::min(t[2], t[3]) / std::min(t[0], t[1]));
  }
}
