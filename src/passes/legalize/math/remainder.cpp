// fmod, exact; mod and floordiv, NumPy's, in the steps of ir/eval.cpp.
#include <limits>

#include "passes/legalize/math/functions.h"

namespace picokernel::passes::math {
namespace {

struct Format {
  int mantissa, bias;
  double least;            // the least normal number
  double scale;            // makes subnormal numbers normal
  double quotients;        // below it a rounded quotient is at most 1 too large
  double exact_quotients;  // below it x - x mod y over y is near enough to a whole number
};

const Format& format_of(Value x) {
  static constexpr Format f32{.mantissa = 23,
                              .bias = 127,
                              .least = 0x1p-126,
                              .scale = 0x1p23,
                              .quotients = 0x1p24,
                              .exact_quotients = 0x1p21};
  static constexpr Format f64{.mantissa = 52,
                              .bias = 1023,
                              .least = 0x1p-1022,
                              .scale = 0x1p52,
                              .quotients = 0x1p53,
                              .exact_quotients = 0x1p50};
  return x.dtype() == DType::f32 ? f32 : f64;
}

// |x| = quotient |y| + remainder, where |x / y| is below Format::quotients.
struct Division {
  Value ratio, quotient, remainder;
};

Division divide(Value x, Value y) {
  const Value a = abs(x), b = abs(y), ratio = x / y;
  const Value quotient = trunc(abs(ratio)), remainder = fma(-quotient, b, a);
  const Value one_less = remainder < 0;
  // An infinite y has been multiplied by 0.
  return {ratio, select(one_less, quotient - 1, quotient),
          select(a < b, a, select(one_less, remainder + b, remainder))};
}

// |x| mod |y| where the quotient is Format::quotients or more, so that x is normal, by long
// division of the mantissas: as many bits a turn as the mantissa has. NaN unless x is finite and y
// is a number other than 0.
Value long_division(Value x, Value y) {
  const Format& f = format_of(x);
  const Value a = abs(x), b = abs(y), tiny = b < f.least;
  const Value normal = select(tiny, b * f.scale, b);
  const int64_t below = (int64_t{1} << f.mantissa) - 1;
  const auto mantissa = [&](Value v) { return float_of((bits(v) & below) | bits(x.like(1.0))); };
  const Value divisor = mantissa(normal);
  const Value steps = (bits(a) >> f.mantissa) - (bits(normal) >> f.mantissa) +
                      select(tiny, f.mantissa, bits(a).like(0));
  const Values end = x.formula().loop(
      {mantissa(a), steps}, [&](const Values& v) { return v[1] > 0; },
      [&](const Values& v) {
        const Value step = select(v[1] < f.mantissa, v[1], v[1].like(f.mantissa));
        const Value dividend = v[0] * float_of((step + f.bias) << f.mantissa);
        const Value rest = fma(-trunc(dividend / divisor), divisor, dividend);
        return Values{select(rest < 0, rest + divisor, rest), v[1] - step};
      });
  const Value unit = float_of(bits(normal) & ~below);
  const Value remainder = end[0] * unit * select(tiny, 1 / f.scale, x.like(1.0));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return select(isfinite(x) & (b > 0), remainder, nan);
}

Value other_signs(Value x, Value y) { return (bits(x) ^ bits(y)) < 0; }

}  // namespace

Value fmod(Value x, Value y, Accuracy) {
  const Division d = divide(x, y);
  const Value remainder = rare(
      !(abs(d.ratio) < format_of(x).quotients), [&] { return long_division(x, y); }, d.remainder);
  return copysign(remainder, x);
}

Value mod(Value x, Value y, Accuracy accuracy) {
  const Value r = fmod(x, y, accuracy);
  const Value moved = select(other_signs(x, y), r + y, r);
  return select(r == 0, copysign(x.like(0.0), y), moved);
}

Value floordiv(Value x, Value y, Accuracy) {
  const Division d = divide(x, y);
  const Value down = other_signs(x, y) & (d.remainder != 0);
  const Value usual = copysign(select(down, d.quotient + 1, d.quotient), d.ratio);
  return rare(
      !(abs(d.ratio) < format_of(x).exact_quotients),
      [&] {
        // Of smaller quotients x may be subnormal, which long division is not made for.
        const Value small = abs(d.ratio) < format_of(x).quotients;
        const Value r = copysign(select(small, d.remainder, long_division(x, y)), x);
        const Value multiple = (x - r) / y;
        const Value q = select(other_signs(x, y) & (r != 0), multiple - 1, multiple);
        const Value below = floor(q);
        const Value nearest = select(q - below > 0.5, below + 1, below);
        const Value signed_zero = select(q == 0, copysign(x.like(0.0), d.ratio), nearest);
        return select(y == 0, d.ratio, signed_zero);
      },
      usual);
}

}  // namespace picokernel::passes::math
