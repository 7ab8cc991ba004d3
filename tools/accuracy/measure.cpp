// Loops of the accuracy measurement: functions of the C library over arrays, and the largest
// difference of results from exact values. Called through ctypes by truth.py.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace {

template <class T>
struct Format;
template <>
struct Format<float> {
  static constexpr int mantissa = 23, max_exponent = 127;
};
template <>
struct Format<double> {
  static constexpr int mantissa = 52, max_exponent = 1023;
};

int exponent_of(double v) {
  return static_cast<int>(std::bit_cast<uint64_t>(v) >> 52 & 0x7ff) - 1023;
}
int exponent_of(long double v) { return std::ilogb(v); }

double scaled(double v, int n) {
  return v * std::bit_cast<double>(static_cast<uint64_t>(1023 + n) << 52);
}
long double scaled(long double v, int n) { return std::ldexp(v, n); }

struct Worst {
  double error;      // in units in the last place of the exact value
  int64_t at;        // its index
  int64_t wrong;     // how many results are wrong in kind: NaN or none, an infinity, the sign of 0
  int64_t wrong_at;  // the first of them
};

// An infinity counts as the power of two past the largest number, where that is no exact infinity.
template <class T, class Wide>
Worst worst(const T* got, const Wide* want, int64_t n) {
  using F = Format<T>;
  const Wide past = std::ldexp(Wide(1), F::max_exponent + 1);
  Worst w{.error = 0, .at = -1, .wrong = 0, .wrong_at = -1};
  for (int64_t i = 0; i < n; ++i) {
    const T g = got[i];
    const Wide exact = want[i];
    const bool nan = std::isnan(exact);
    if (std::isnan(g) != nan || (std::isinf(exact) && g != T(exact)) ||
        (g == 0 && !nan && std::signbit(g) != std::signbit(exact))) {
      if (w.wrong++ == 0) w.wrong_at = i;
      continue;
    }
    if (nan || std::isinf(exact)) continue;
    const Wide magnitude = std::fabs(exact);
    if (std::isinf(g) && magnitude >= past && std::signbit(g) == std::signbit(exact)) continue;
    const Wide value = std::isinf(g) ? std::copysign(past, Wide(g)) : Wide(g);
    const int e = std::clamp(exponent_of(magnitude), 1 - F::max_exponent, F::max_exponent);
    const auto error = static_cast<double>(scaled(std::fabs(value - exact), F::mantissa - e));
    if (error > w.error) {
      w.error = error;
      w.at = i;
    }
  }
  return w;
}

template <class From, class To, class Via>
void map1(Via (*f)(Via), const From* x, To* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(f(static_cast<Via>(x[i])));
}
template <class From, class To, class Via>
void map2(Via (*f)(Via, Via), const From* a, const From* b, To* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<To>(f(static_cast<Via>(a[i]), static_cast<Via>(b[i])));
}

}  // namespace

extern "C" {

// map<operands>_<from>_<to>: by a function of the wider of the two.
#define PK_MAPS(from, to, From, To)                                                           \
  void map1_##from##_##to(To (*f)(To), const From* x, To* y, int64_t n) { map1(f, x, y, n); } \
  void map2_##from##_##to(To (*f)(To, To), const From* a, const From* b, To* y, int64_t n) {  \
    map2(f, a, b, y, n);                                                                      \
  }
PK_MAPS(f32, f32, float, float)
PK_MAPS(f64, f64, double, double)
PK_MAPS(f32, f64, float, double)
PK_MAPS(f64, f80, double, long double)
#undef PK_MAPS

// What the C library lacks.
double rsqrt(double x) { return 1 / std::sqrt(x); }
long double rsqrtl(long double x) { return 1 / std::sqrt(x); }

void worst_f32(const float* got, const double* want, int64_t n, Worst* result) {
  *result = worst(got, want, n);
}
void worst_f64(const double* got, const long double* want, int64_t n, Worst* result) {
  *result = worst(got, want, n);
}

}  // extern "C"
