// Logarithms in parts, for the functions that are made of them.
#pragma once

#include <functional>

#include "passes/legalize/math/functions.h"

namespace picokernel::passes::math {

inline constexpr double kHalfSqrt2 = 0x1.6a09e667f3bcdp-1;

// x = 2^e m. Of a float32 the exponent is a multiple of 2^23, which spares a shift: `unit` is what
// a step of e is worth.
struct Split {
  Value m, e;
  double unit;
};
/// Not a positive, normal, finite number.
Value is_unusual(Value x);
/// m in [low, 2 low). x is not unusual.
Split split_normal(Value x, double low);
/// Of any x: where it has no logarithm, or an infinite one, e is that and m between low and 2 low.
Split split(Value x, double low);

/// The natural logarithm of u, whose low part is at most some units in the last place of the high
/// one; near 1 as precise as log1p. Where u.high is unusual, of `otherwise()`, whose m is in
/// [sqrt(1/2), sqrt(2)).
Value log_of_sum(Pair u, const std::function<Split()>& otherwise, Accuracy accuracy);
/// For `otherwise`: of 0, infinities, NaN and negative numbers.
Split split_limit(Value x);

}  // namespace picokernel::passes::math
