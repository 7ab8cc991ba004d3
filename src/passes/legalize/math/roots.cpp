// cbrt and hypot.
#include <limits>

#include "passes/legalize/math/functions.h"
#include "passes/legalize/math/roots_coefficients.h"

namespace picokernel::passes::math {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// (1 - e)^(-1/3) = 1 + e / 3 + ...
constexpr double kSeries[] = {0x1.5555555555555p-2, 0x1.c71c71c71c71cp-3, 0x1.61f9add3c0ca4p-3};

struct Format {
  int mantissa, bias;
  double magic;  // added, it rounds to an integer, which the lowest bits then hold
  double least;  // the least normal number
  std::span<const double> inverse_cbrt, series;
  double scale;  // 2^(3 root_scale), which makes subnormal numbers normal
  int root_scale;
  double low, high;  // between them squares and their rounding errors are normal numbers
  double up, down;   // scales into that range
};

const Format& format_of(Value x) {
  static constexpr Format f32{.mantissa = 23,
                              .bias = 127,
                              .magic = 0x1.8p23,
                              .least = 0x1p-126,
                              .inverse_cbrt = kInverseCbrt32,
                              .series = std::span(kSeries).first<2>(),
                              .scale = 0x1p24,
                              .root_scale = 8,
                              .low = 0x1p-50,
                              .high = 0x1p60,
                              .up = 0x1p100,
                              .down = 0x1p-70};
  static constexpr Format f64{.mantissa = 52,
                              .bias = 1023,
                              .magic = 0x1.8p52,
                              .least = 0x1p-1022,
                              .inverse_cbrt = kInverseCbrt64,
                              .series = kSeries,
                              .scale = 0x1p54,
                              .root_scale = 18,
                              .low = 0x1p-450,
                              .high = 0x1p500,
                              .up = 0x1p700,
                              .down = 0x1p-600};
  return x.dtype() == DType::f32 ? f32 : f64;
}

// x = m 2^(3 k) of a normal number, 1/2 <= m < 4.
struct Cube {
  Value m, k;  // k as exponent bits
};
Cube split_cube(Value x, const Format& f) {
  const double whole = f.mantissa == 23 ? 0x1p23 : 0x1p52;  // its lowest bits are an integer's
  const Value exponent = float_of((bits(x) >> f.mantissa) | bits(x.like(whole))) - (whole + f.bias);
  const Value k = bits(fma(exponent, kSeries[0], f.magic)) << f.mantissa;
  return {float_of(bits(x) - (k + (k << 1))), k};
}

Value hypot_of(Value larger, Value smaller, Accuracy accuracy) {
  const Pair x = two_product(larger, larger), y = two_product(smaller, smaller);
  if (accuracy == Accuracy::fast) return sqrt(fma(larger, larger, y.high));
  const Pair sum = fast_two_sum(x.high, y.high);
  return sqrt(sum.high + (sum.low + (x.low + y.low)));
}

}  // namespace

Value cbrt(Value x, Accuracy accuracy) {
  const Format& f = format_of(x);
  const Value a = abs(x);
  const Cube normal = split_cube(a, f);
  const Values cube =
      x.formula().branch(!((a >= f.least) & (a < kInfinity)),
                         [&] {
                           const Cube up = split_cube(a * f.scale, f);
                           const int64_t down = int64_t{f.root_scale} << f.mantissa;
                           // 0, infinity and NaN: 1 times what gives their bits.
                           const Value subnormal = (a > 0) & (a < f.least), one = x.like(1.0);
                           return Values{select(subnormal, up.m, one),
                                         select(subnormal, up.k - down, bits(a) - bits(one))};
                         },
                         {normal.m, normal.k});
  const Value m = cube[0];
  // r is near 1 / cbrt(m): e = 1 - m r^3 is what is left.
  Value r = horner(m, f.inverse_cbrt);
  const Value e = fma(-(m * r), r * r, 1.0);
  r = fma(r * e, horner(e, f.series), r);
  // One step of Newton's method for y^3 = m, whose residual is exact to twice the digits.
  const Value square = r * r, y = m * square;
  const Pair y_square = two_product(y, y);
  Value residual = fma(-y_square.high, y, m);
  if (accuracy == Accuracy::strict) residual = fma(-y_square.low, y, residual);
  const Value root = fma(residual, square * kSeries[0], y);
  return copysign(float_of(bits(root) + cube[1]), x);
}

Value hypot(Value x, Value y, Accuracy accuracy) {
  const Format& f = format_of(x);
  const Value a = abs(x), b = abs(y), second = b > a;
  const Value larger = select(second, b, a), smaller = select(second, a, b);
  return rare(
      !((larger >= f.low) & (larger <= f.high)),
      [&] {
        const Value big = larger > 1;
        const Value scale = select(big, f.down, x.like(f.up));
        const Value back = select(big, 1 / f.down, x.like(1 / f.up));
        const Value scaled = hypot_of(larger * scale, smaller * scale, accuracy) * back;
        return select((a == kInfinity) | (b == kInfinity), kInfinity, scaled);
      },
      hypot_of(larger, smaller, accuracy));
}

}  // namespace picokernel::passes::math
