// x^y = 2^(y log2 x), the logarithm being a pair: y log2 x may have ten bits before its point.
#include <cmath>
#include <limits>

#include "passes/legalize/math/exp_parts.h"
#include "passes/legalize/math/log_parts.h"
#include "passes/legalize/math/pow_coefficients.h"

namespace picokernel::passes::math {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// a + x (b + y), x y being small against a, which a_low belongs to.
Pair quadratic(Value x, double b, Value y, double a, double a_low) {
  const Value high = fma(x, y + b, a);
  return {high, fma(x, b, a - high) + fma(x, y, a_low)};
}

// log2 x within 2^-31 of itself; m from kLow32.
constexpr double kLow32 = 9.0 / 13;
Pair log2_f32(const Split& x) {
  // c m = 1 + f exactly, with few digits of c; log2 m = log2(1 + f) - log2 c.
  const Value m = x.m, below = m < 0.887, above = m > 1.107;
  const auto by_interval = [&](double first, double second, double third) {
    return select(below, first, select(above, m.like(third), m.like(second)));
  };
  const Value f = fma(m, by_interval(1.25, 1, 0.8125), -1);
  const Value n = fma(x.e, x.unit, by_interval(-0x1.49a8p-2, 0, 0x1.32cp-2));
  const Value n_low = by_interval(0x1.ed0cbap-20, 0, -0x1.1c8f12p-22);
  // log2(1 + f) = f (1/ln 2 - f (1/(2 ln 2) - f p)).
  const double c = 0x1.715476p+0, c_low = 0x1.4ae0cp-26;
  const Value q = fma(f, horner(f, kPowLog32), -c_low / 2);
  const Pair v = quadratic(f, -c / 2, q, c, c_low);
  // |n| is 0 or at least |f v|, so that n - high is exact.
  const Value high = fma(f, v.high, n);
  return {high, fma(f, v.high, n - high) + fma(f, v.low, n_low)};
}

// log2 x within 2^-66 of itself; m from kHalfSqrt2.
Pair log2_f64(const Split& x) {
  // log m = 2 atanh s; s + s_low = f / (f + 2).
  const Value f = x.m - 1, g = f + 2, g_low = f - (g - 2);
  const Value r = f.like(1.0) / g, s = f * r;
  const Value s_low = fma(-s, g_low, fma(-s, g, f)) * r;
  // log2 m = s (c + z (c/3 + z p)); to its low part s_low gives c s_low / (1 - z).
  const double c = 0x1.71547652b82fep+1, c_low = 0x1.777d0ffda0d24p-55;
  const double third = 0x1.ec709dc3a03fdp-1, third_low = 0x1.d27f05548af0cp-55;
  const auto [z, z_low] = two_product(s, s);
  const Value p = horner(z, kPowLog64);
  const Pair v = quadratic(z, third, fma(z, p, third_low), c, c_low);
  const Value derivative = fma(fma(z, c, c), z, c);
  const Value more = fma(s_low, derivative, s * fma(z_low, fma(z, p, third), v.low));
  const Value high = fma(s, v.high, x.e);
  return {high, fma(s, v.high, x.e - high) + more};
}

// What C99's annex F says of x^y, and `ordinary` where it says nothing. ordinary: |x|^y, of any
// bits where x is 0, infinite or NaN.
Value special_cases(Value x, Value y, Value ordinary) {
  const Value a = abs(x), half = y * 0.5;
  const Value is_whole = rint(y) == y, is_odd = is_whole & (rint(half) != half);
  const Value edge = select((a < 1) == (y < 0), kInfinity, x.like(0));
  Value result = select((a == 0) | isinf(x), edge, ordinary);
  result = select(is_odd, copysign(result, x), result);
  const Value is_undefined = (x < 0) & !(is_whole | isinf(x));
  result = select(is_undefined | isnan(x) | isnan(y), std::nan(""), result);
  const Value is_one = (x == 1) | (y == 0) | ((a == 1) & isinf(y));
  return select(is_one, 1.0, result);
}

}  // namespace

Value pow(Value x, Value y, Accuracy accuracy) {
  const bool is_f32 = x.dtype() == DType::f32;
  const double low = is_f32 ? kLow32 : kHalfSqrt2;
  const auto power = [&](const Split& s) {
    return exp2_of_product(y, is_f32 ? log2_f32(s) : log2_f64(s), accuracy);
  };
  const Exponential usual = power(split_normal(x, low));
  return rare(
      is_unusual(x) | usual.is_extreme(),
      [&] {
        // Anew, for |x| may be another number, and subnormal. One branch costs the others less.
        const Value a = abs(x), is_tiny = a < (is_f32 ? 0x1p-126 : 0x1p-1022);
        const int up = 64;
        Split s = split_normal(select(is_tiny, a * std::ldexp(1.0, up), a), low);
        s.e = s.e - select(is_tiny, x.like(up / s.unit), x.like(0));
        return special_cases(x, y, power(s).anywhere());
      },
      usual.ordinary());
}

}  // namespace picokernel::passes::math
