// e^x = 2^n e^r, n being the integer nearest to x / ln 2; 2^x = 2^n 2^r; and e^x - 1.
#include <cmath>
#include <limits>

#include "passes/legalize/math/exp_coefficients.h"
#include "passes/legalize/math/exp_parts.h"

namespace picokernel::passes::math {
namespace {

using Coefficients = std::span<const double>;

Coefficients choose(Value x, Accuracy accuracy, Coefficients f32, Coefficients f32_fast,
                    Coefficients f64, Coefficients f64_fast) {
  if (x.dtype() == DType::f32) return accuracy == Accuracy::fast ? f32_fast : f32;
  return accuracy == Accuracy::fast ? f64_fast : f64;
}

// shifted: an integer plus the format's magic number.
Value to_exponent(Value shifted) { return bits(shifted) << exp_format(shifted).mantissa_bits; }

// Of base e: x is exact but for its low part.
Exponential base_e(Value x, const Value* low, Accuracy accuracy) {
  const ExpFormat& f = exp_format(x);
  const Value shifted = fma(x, f.log2_e, f.magic);
  const Value n = shifted - f.magic;
  const Value near = fma(n, -f.ln2, x);  // exact
  const Value r = low ? near + fma(n, -f.ln2_low, *low) : fma(n, -f.ln2_low, near);
  const Value p = horner(r, choose(x, accuracy, kExp32, kExp32Fast, kExp64, kExp64Fast));
  return {x, fma(fma(p, r, 1.0), r, 1.0), to_exponent(shifted), f.safe};
}

// x is what r and shifted make up.
Exponential base_2(Value x, Value r, Value shifted, Accuracy accuracy) {
  const Value p = horner(r, choose(r, accuracy, kExp2_32, kExp2_32Fast, kExp2_64, kExp2_64Fast));
  return {x, fma(p, r, 1.0), to_exponent(shifted), exp_format(r).safe_exp2};
}

Value whole(const Exponential& e) {
  return rare(e.is_extreme(), [&] { return e.anywhere(); }, e.ordinary());
}

}  // namespace

const ExpFormat& exp_format(Value x) {
  static constexpr ExpFormat f32{.mantissa_bits = 23,
                                 .bias = 127,
                                 .magic = 0x1.8p23,
                                 .log2_e = 0x1.715476p+0,
                                 .ln2 = 0x1.62e43p-1,
                                 .ln2_low = -0x1.05c61p-29,
                                 .safe = 87,
                                 .safe_exp2 = 125};
  static constexpr ExpFormat f64{.mantissa_bits = 52,
                                 .bias = 1023,
                                 .magic = 0x1.8p52,
                                 .log2_e = 0x1.71547652b82fep+0,
                                 .ln2 = 0x1.62e42fefa39efp-1,
                                 .ln2_low = 0x1.abc9e3b39803fp-56,
                                 .safe = 708,
                                 .safe_exp2 = 1021};
  return x.dtype() == DType::f32 ? f32 : f64;
}

Value Exponential::is_extreme() const { return !(abs(argument) <= safe); }

Value Exponential::ordinary() const { return float_of(bits(mantissa) + exponent); }

Value Exponential::anywhere() const {
  const ExpFormat& f = exp_format(argument);
  // In two steps: one to a normal number, and one that rounds it.
  const int step = f.bias - 27;
  const Value tiny = argument < 0;
  const Value shift = exponent.like(int64_t{step} << f.mantissa_bits);
  const Value normal = float_of(bits(mantissa) + exponent + select(tiny, shift, -shift));
  const Value back =
      select(tiny, argument.like(std::ldexp(1.0, -step)), argument.like(std::ldexp(1.0, step)));
  const double infinity = std::numeric_limits<double>::infinity();
  const Value far = select(tiny, argument.like(0), argument * infinity);  // NaN of NaN
  return select(abs(argument) <= safe * 1.25, normal * back, far);
}

Exponential exp_parts(Value x, Accuracy accuracy) { return base_e(x, nullptr, accuracy); }
Exponential exp_parts(Pair x, Accuracy accuracy) { return base_e(x.high, &x.low, accuracy); }
Exponential exp2_parts(Value x, Accuracy accuracy) {
  const double magic = exp_format(x).magic;
  const Value shifted = x + magic;
  return base_2(x, x - (shifted - magic), shifted, accuracy);
}
Exponential exp2_of_product(Value x, Pair y, Accuracy accuracy) {
  const double magic = exp_format(x).magic;
  const Value shifted = fma(x, y.high, magic), n = shifted - magic;
  return base_2(n, fma(x, y.low, fma(x, y.high, -n)), shifted, accuracy);
}

Reduced reduce_by_ln2(Value x, int offset) {
  const ExpFormat& f = exp_format(x);
  const double magic = f.magic + f.bias + offset;
  const Value shifted = fma(x, f.log2_e, magic);
  const Value n = shifted - magic;
  const Value near = fma(n, -f.ln2, x);  // exact
  const Value r = fma(n, -f.ln2_low, near);
  return {float_of(to_exponent(shifted)), {r, fma(n, -f.ln2_low, near - r)}};
}

Value exp(Value x, Accuracy accuracy) { return whole(exp_parts(x, accuracy)); }
Value exp2(Value x, Accuracy accuracy) { return whole(exp2_parts(x, accuracy)); }

// e^x - 1 = 2^n (e^r - 1) + (2^n - 1).
Value expm1(Value x, Accuracy accuracy) {
  const ExpFormat& f = exp_format(x);
  const auto [scale, r] = reduce_by_ln2(x, 0);
  const Value p = horner(r.high, choose(x, Accuracy::strict, kExpm1_32, {}, kExpm1_64, {}));
  const Value square = r.high * r.high;
  const Value less = scale - 1;
  Value y, q;
  if (accuracy == Accuracy::fast) {
    q = fma(square, p, r.high);
    y = fma(scale, q, less);
  } else {
    // 2^n r + (2^n - 1) cancels for n = 1: without loss only if its rounding error is kept.
    q = fma(square, p, r.low);
    const Value high = fma(scale, r.high, less);
    const Value low = fma(scale, r.high, less - high);
    y = high + fma(scale, q, low);
    q = r.high + q;
  }
  return copysign(  // for -0
      rare(
          !(abs(x) <= f.safe),
          [&] {
            const Value exponent = bits(scale) - bits(x.like(1.0));
            return select(x < 0, -1.0, Exponential{x, q + 1, exponent, f.safe}.anywhere());
          },
          y),
      x);
}

}  // namespace picokernel::passes::math
