// asin, acos, atan and atan2: odd polynomials, and for the other half of the range
//   asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)),   atan(x) = pi/2 - atan(1 / x).
#include <limits>
#include <optional>

#include "passes/legalize/math/functions.h"
#include "passes/legalize/math/inverse_trigonometric_coefficients.h"
#include "passes/legalize/math/trigonometric_coefficients.h"

namespace picokernel::passes::math {
namespace {

struct Format {
  double least;        // the least normal number
  double tiny, scale;  // remainders of divisions by less than tiny need a scale
  std::span<const double> asin, atan;
  std::span<const double> half_pi;
};

const Format& format_of(Value x) {
  static constexpr Format f32{.least = 0x1p-126,
                              .tiny = 0x1p-60,
                              .scale = 0x1p60,
                              .asin = kAsin32,
                              .atan = kAtan32,
                              .half_pi = kHalfPi32};
  static constexpr Format f64{.least = 0x1p-1022,
                              .tiny = 0x1p-500,
                              .scale = 0x1p500,
                              .asin = kAsin64,
                              .atan = kAtan64,
                              .half_pi = kHalfPi64};
  return x.dtype() == DType::f32 ? f32 : f64;
}

// high (1 + relative) + low; fast angles have no low part.
struct Angle {
  Value high, relative;
  std::optional<Value> low = {};
};

// quarters pi/2 + factor angle, of quarters 0, 1 or 2.
Value add_to_base(Value quarters, Value factor, const Angle& angle, const Format& f) {
  const Value high = factor * angle.high;
  const Pair sum = fast_two_sum(quarters * f.half_pi[0], high);
  Value low = fma(quarters, f.half_pi[1], sum.low);
  if (angle.low) low = fma(factor, *angle.low, low);
  return sum.high + fma(high, angle.relative, low);
}

// asin(a) of a <= 1/2, and asin(sqrt((1 - a) / 2)) past it.
Angle asin_of_half(Value a, Value large, Accuracy accuracy, const Format& f) {
  const Value square = select(large, fma(a, -0.5, 0.5), a * a);
  const Value root = sqrt(square);
  Angle angle{select(large, root, a), square * horner(square, f.asin)};
  if (accuracy == Accuracy::strict) {
    // What the root's rounding lost; the root may be 0.
    const Value lost = fma(-root, root, square) / fma(root, 2.0, f.least);
    angle.low = select(large, lost, 0.0);
  }
  return angle;
}

// atan(t + lost) of 0 <= t <= 1.
Angle atan_of_ratio(Value t, Value lost, Accuracy accuracy, const Format& f) {
  const Value square = t * t;
  if (accuracy == Accuracy::fast) return {t, square * horner(square, f.atan)};
  // The leading term is exact but for the square's rounding.
  const Value others = square * square * horner(square, f.atan.subspan(1));
  const Value slope = fma(square, -0.5, 1.0);  // 1 / (1 + t^2), nearly
  return {t, fma(square, f.atan[0], others), lost * slope};
}

}  // namespace

Value asin(Value x, Accuracy accuracy) {
  const Format& f = format_of(x);
  const Value a = abs(x), large = a > 0.5;
  const Angle v = asin_of_half(a, large, accuracy, f);
  const Value quarters = select(large, 1.0, x.like(0.0));
  const Value factor = select(large, -2.0, x.like(1.0));
  return copysign(add_to_base(quarters, factor, v, f), x);
}

Value acos(Value x, Accuracy accuracy) {
  const Format& f = format_of(x);
  const Value a = abs(x), large = a > 0.5;
  const Angle v = asin_of_half(a, large, accuracy, f);
  // Far from 0: 2 v, or pi - 2 v of negative x; else pi/2 - v.
  const Value quarters = select(large, select(x < 0, 2.0, x.like(0.0)), 1.0);
  const Value factor = copysign(select(large, 2.0, x.like(1.0)), select(large, x, -x));
  return add_to_base(quarters, factor, v, f);
}

Value atan(Value x, Accuracy accuracy) {
  const Format& f = format_of(x);
  const Value a = abs(x), large = a > 1;
  const Value bounded = select(a > 0x1p60, 0x1p60, a);  // infinity times 0 would be NaN
  const Value inverse = 1.0 / bounded;
  const Value t = select(large, inverse, a);
  const Value lost = fma(-inverse, bounded, 1.0) * inverse;
  const Angle v = atan_of_ratio(t, select(large, lost, 0.0), accuracy, f);
  const Value quarters = select(large, 1.0, x.like(0.0));
  const Value factor = select(large, -1.0, x.like(1.0));
  return copysign(add_to_base(quarters, factor, v, f), x);
}

Value atan2(Value y, Value x, Accuracy accuracy) {
  const Format& f = format_of(x);
  const double infinity = std::numeric_limits<double>::infinity();
  const Value height = abs(y), width = abs(x), steep = height > width;
  const Value larger = select(steep, height, width), smaller = select(steep, width, height);
  const Values ratio = x.formula().branch(
      !((larger >= f.tiny) & (larger < infinity)),
      [&] {
        // 0 / 0 is 0 here, and infinities are alike. NaN stays.
        const Value n = select(smaller == infinity, 1.0, smaller * 0.0);
        const Value small = (larger > 0) & (larger < f.tiny);
        return Values{select(small, smaller * f.scale, n + select(isnan(larger), larger, 0.0)),
                      select(small, larger * f.scale, 1.0)};
      },
      {smaller, larger});
  const Value t = ratio[0] / ratio[1];
  const Value lost = fma(-t, ratio[1], ratio[0]) / ratio[1];
  const Angle v = atan_of_ratio(t, lost, accuracy, f);
  // v, pi/2 - v, pi/2 + v and pi - v, counted from the positive x axis.
  const Value left = signbit(x);
  const Value quarters = select(steep, 1.0, select(left, 2.0, x.like(0.0)));
  const Value factor = select(steep != left, -1.0, x.like(1.0));
  return copysign(add_to_base(quarters, factor, v, f), y);
}

}  // namespace picokernel::passes::math
