// The error function and its complement.
#include <tuple>

#include "passes/legalize/math/erf_coefficients.h"
#include "passes/legalize/math/exp_coefficients.h"
#include "passes/legalize/math/exp_parts.h"

namespace picokernel::passes::math {
namespace {

struct Format {
  double near;  // below it erf x = x + x p(x^2)
  double one;   // from here on erf x is 1
  double far;   // e^(-x^2) / 40 is a normal number up to here
  double k;     // of the argument of q, see erfc
  std::span<const double> erf, log2_erfc, q, exp;
};

const Format& format_of(Value x) {
  static constexpr Format f32{.near = 1,
                              .one = 4,
                              .far = 9,
                              .k = 2.53125,
                              .erf = kErf32,
                              .log2_erfc = kLog2Erfc32,
                              .q = kErfc32,
                              .exp = kExp32};
  static constexpr Format f64{.near = 1,
                              .one = 6,
                              .far = 26,
                              .k = 2.552490234375,
                              .erf = kErf64,
                              .log2_erfc = kLog2Erfc64,
                              .q = kErfc64,
                              .exp = kExp64};
  return x.dtype() == DType::f32 ? f32 : f64;
}

}  // namespace

// Near 0 x + x p(x^2), elsewhere 1 - 2^l(x), where l = log2 erfc need not be exact.
Value erf(Value x, Accuracy accuracy) {
  const Format& f = format_of(x);
  const Value y = abs(x);
  const Value inner = fma(x, horner(x * x, f.erf), x);
  const Value limited = select(y < f.one, y, f.one);
  const Value log2_erfc = horner(limited, f.log2_erfc);
  const Value outer = 1.0 - exp2_parts(log2_erfc, accuracy).ordinary();
  return select(!(y >= f.near), inner, copysign(outer, x));
}

// With y = |x|: 1 - x - x p(x^2) below 1/2, elsewhere e^(-y^2) q(t) / (1 + 1.625 y),
// t = (y - k) / (y + k), every factor of which has a low part.
Value erfc(Value x, Accuracy accuracy) {
  const Format& f = format_of(x);
  const ExpFormat& e = exp_format(x);
  const Value y = abs(x);
  const Value negative = x < 0;
  // 1 - erf x in the order that rounds least.
  const Value last = select(negative, x.like(1.0), x.like(0.5));
  const Value inner = fma(-x, horner(x * x, f.erf), (1.0 - last) - x) + last;

  // e^(-y^2) = 2^-n e^-r, y^2 = n ln 2 + r.
  const Pair square = two_product(y, y);
  const Value shifted = fma(square.high, e.log2_e, e.magic);
  const Value n = shifted - e.magic;
  const Value near = fma(n, -e.ln2, square.high);
  const Value correction = fma(n, -e.ln2_low, square.low);
  const Value r = -(near + correction);
  const Value r_low = -correction - (r + near);
  const Value p = horner(r, f.exp);

  const Value t = (y - f.k) / (y + f.k);
  const Value t_part = horner(t, f.q.subspan(1));
  const Value q = fma(t, t_part, f.q[0]);
  const Value denominator = fma(y, 1.625, 1.0);
  Value mantissa;
  if (accuracy == Accuracy::fast) {
    mantissa = fma(q, fma(p, r, 1.0) * r, q) / denominator;
  } else {
    const Value exp_high = r + 1;
    const Value exp_low = ((1.0 - exp_high) + r) + fma(r * r, p, r_low);
    const Value q_low = fma(t, t_part, f.q[0] - q);
    const Value denominator_low = fma(y, 1.625, 1.0 - denominator);
    const Value product = exp_high * q;
    const Value product_low = fma(exp_low, q, fma(exp_high, q_low, fma(exp_high, q, -product)));
    const Value inverse = 1.0 / denominator;
    const Value quotient = product * inverse;
    const Value rest =
        fma(-quotient, denominator, product) + fma(-quotient, denominator_low, product_low);
    mantissa = fma(rest, inverse, quotient);
  }
  const Value exponent = -(bits(shifted) << e.mantissa_bits);
  const Exponential tail{-square.high, mantissa, exponent, e.safe};
  const Value outer = rare(!(y <= f.far), [&] { return tail.anywhere(); }, tail.ordinary());
  return select(!(y >= 0.5), inner, select(negative, 2.0 - outer, outer));
}

}  // namespace picokernel::passes::math
