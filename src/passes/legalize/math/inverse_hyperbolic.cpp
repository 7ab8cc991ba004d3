// asinh, acosh and atanh: logarithms of 1 + v, v being a pair.
#include <cmath>
#include <limits>

#include "passes/legalize/math/log_parts.h"

namespace picokernel::passes::math {
namespace {

Pair one_plus(Pair v) {
  const Pair u = two_sum(v.high.like(1), v.high);
  return {u.high, u.low + v.low};
}

// The square root of x, which may be 0.
Pair square_root(Pair x) {
  const Value high = sqrt(x.high);
  const Value rest = fma(-high, high, x.high) + x.low;
  return {high, rest / fma(high, 2.0, high.like(0x1p-100))};
}

// 2 x, where that may overflow or is infinite; NaN below 1.
Split split_double(Value x) {
  const Split s = split_normal(x, kHalfSqrt2);
  const Value e = select(x < std::numeric_limits<double>::infinity(), s.e + 1 / s.unit, x);
  return {s.m, select(x >= 1, e, std::nan("")), s.unit};
}

}  // namespace

// log(x + sqrt(x^2 + 1)) of positive x.
Value asinh(Value x, Accuracy accuracy) {
  const Value a = abs(x), square = fma(a, a, 1.0);
  const Pair root = square_root({square, fma(a, a, 1 - square)});
  const Pair v = fast_two_sum(a, root.high - 1);
  const Pair u = one_plus({v.high, v.low + root.low});
  return copysign(log_of_sum(u, [&] { return split_double(a); }, accuracy), x);
}

// log(x + sqrt(x^2 - 1)).
Value acosh(Value x, Accuracy accuracy) {
  // t = x - 1, square + square_low = x^2 - 1, and negative below 1.
  const Value t = x - 1, a = abs(t), twice = t + t, square = fma(t, a, twice);
  const Pair root = square_root({square, fma(t, a, twice - square)});
  const Pair v = fast_two_sum(root.high, t);
  const Pair u = one_plus({v.high, v.low + root.low});
  return log_of_sum(u, [&] { return split_double(x); }, accuracy);
}

// log(1 + 2 x / (1 - x)) / 2 of positive x.
Value atanh(Value x, Accuracy accuracy) {
  const Value a = abs(x), twice = a + a;
  const Pair d = fast_two_sum(a.like(1), -a);
  const Value r = a.like(1.0) / d.high, v = twice * r;
  const Value v_low = fma(-v, d.low, fma(-v, d.high, twice)) * r;
  const Pair u = one_plus({v, v_low});
  const Value log = log_of_sum(u, [&] { return split_limit(u.high); }, accuracy);
  return copysign(log * 0.5, x);
}

}  // namespace picokernel::passes::math
