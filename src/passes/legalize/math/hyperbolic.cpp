// sinh, cosh and tanh.
#include "passes/legalize/math/exp_parts.h"
#include "passes/legalize/math/hyperbolic_coefficients.h"

namespace picokernel::passes::math {
namespace {

using Coefficients = std::span<const double>;

Coefficients choose(Value x, Coefficients f32, Coefficients f64) {
  return x.dtype() == DType::f32 ? f32 : f64;
}

// y = n ln 2 + r >= 0, h = 2^(n-1), g = 2^(-n-1):
// sinh y = (h - g) cosh r + (h + g) sinh r, cosh y = (h + g) cosh r + (h - g) sinh r.
struct Parts {
  Value y;
  Value h;
  Value sum, sum_lost;  // h + g, and what rounding loses of it
  Value difference, difference_lost;
  Value r;
  Value cosh_less;  // cosh r - 1
  Value sinh;       // sinh r
  Value sinh_less;  // sinh r - r, in which r has a low part

  /// e^y / 2 anywhere.
  Value half_exp() const {
    const Value mantissa = ((sinh_less + cosh_less) + r) + 1;
    return Exponential{y, mantissa, bits(h) - bits(y.like(1.0)), exp_format(y).safe}.anywhere();
  }
  Value is_extreme() const { return !(y <= exp_format(y).safe); }
};

Parts parts_of(Value y) {
  const auto [h, r] = reduce_by_ln2(y, -1);
  // Of exponents n - 1 and -n - 1: the sum is constant.
  const Value g = float_of(bits(y.like(0.25)) + bits(y.like(1.0)) - bits(h));
  const Value sum = h + g, difference = h - g;
  const Value square = r.high * r.high;
  const Value cube = square * r.high;
  const Value p = horner(square, choose(y, kSinh32, kSinh64));
  return {.y = y,
          .h = h,
          .sum = sum,
          .sum_lost = g - (sum - h),
          .difference = difference,
          .difference_lost = (h - difference) - g,
          .r = r.high,
          .cosh_less = square * horner(square, choose(y, kCosh32, kCosh64)),
          .sinh = fma(cube, p, r.high),
          .sinh_less = fma(cube, p, r.low)};
}

}  // namespace

Value sinh(Value x, Accuracy accuracy) {
  const Parts p = parts_of(abs(x));
  Value y;
  if (accuracy == Accuracy::fast) {
    y = fma(p.difference, p.cosh_less, fma(p.sum, p.sinh, p.difference));
  } else {
    const Value high = fma(p.sum, p.r, p.difference);
    const Value low = fma(p.sum, p.r, p.difference - high);
    const Value lost = x.dtype() == DType::f32 ? low : low + p.difference_lost;
    y = high + fma(p.sum, p.sinh_less, fma(p.difference, p.cosh_less, lost));
  }
  return copysign(rare(p.is_extreme(), [&] { return p.half_exp(); }, y), x);
}

Value cosh(Value x, Accuracy accuracy) {
  const Parts p = parts_of(abs(x));
  const Value rest = accuracy == Accuracy::fast
                         ? fma(p.difference, p.sinh, p.sum * p.cosh_less)
                         : fma(p.difference, p.r,
                               fma(p.difference, p.sinh_less, fma(p.sum, p.cosh_less, p.sum_lost)));
  return rare(p.is_extreme(), [&] { return p.half_exp(); }, p.sum + rest);
}

// With y = |x| = n ln 2 / 2 + v, tanh v = v - v^3 / q(v^2) = u / q, s = 2^n:
// tanh y = 1 - 2 / (e^2y + 1) = 1 - (q - u) / (s q - (s - 1) / 2 (q - u)).
// Near 0 n is 0, which makes the denominator q, and tanh y = y - y y^2 / q.
Value tanh(Value x, Accuracy accuracy) {
  const ExpFormat& f = exp_format(x);
  const double magic = f.magic + f.bias;
  const Value y = abs(x);
  const Value near = !(y >= 1.0);  // and NaN
  const Value limited = select(y < 20, y, 20.0);
  const Value shifted = select(near, magic, fma(limited, f.log2_e * 2, magic));
  const Value n = shifted - magic;
  const Value rounded = fma(n, -f.ln2 / 2, limited);
  const bool short_ln2 = x.dtype() == DType::f32 || accuracy == Accuracy::fast;
  const Value v = short_ln2 ? rounded : fma(n, -f.ln2_low / 2, rounded);
  const Value square = v * v;
  const Value q = horner(square, choose(x, kTanh32, kTanh64));
  const Value numerator = fma(-v, q - square, q);
  const Value scale = float_of(bits(shifted) << f.mantissa_bits);
  const Value denominator = fma(fma(scale, -0.5, 0.5), numerator, scale * q);
  const Value quotient = select(near, square, numerator) / denominator;
  const Value limit = select(near, y, 1.0);
  return copysign(fma(-limit, quotient, limit), x);
}

}  // namespace picokernel::passes::math
