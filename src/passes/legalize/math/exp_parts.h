// e^x and 2^x in parts, for the functions that are made of them.
#pragma once

#include "passes/legalize/math/functions.h"

namespace picokernel::passes::math {

// What the functions of this family must know of a float.
struct ExpFormat {
  int mantissa_bits, bias;
  double magic;  // added, it rounds to an integer, which the lowest bits then hold
  double log2_e;
  double ln2, ln2_low;     // their sum is ln 2
  double safe, safe_exp2;  // up to here e^x and 2^x are normal numbers
};
const ExpFormat& exp_format(Value x);

// mantissa * 2^n, n being the integer nearest to the exponent in base 2. The low part of a pair is
// at most some units in the last place of the high one.
struct Exponential {
  Value argument;  // or a number near it, which is as extreme
  Value mantissa;  // in [0.7, 1.42]
  Value exponent;  // n, where a float has its exponent
  double safe;     // up to here the value is a normal number

  /// The argument is past `safe`, or NaN.
  Value is_extreme() const;
  /// The value where the argument is not extreme.
  Value ordinary() const;
  /// The value anywhere, rounded once more where it is subnormal. For rare cases.
  Value anywhere() const;
};

/// e^x and 2^x.
Exponential exp_parts(Value x, Accuracy accuracy);
Exponential exp_parts(Pair x, Accuracy accuracy);
Exponential exp2_parts(Value x, Accuracy accuracy);
/// 2^(x y), y.low being at most some units in the last place of y.high.
Exponential exp2_of_product(Value x, Pair y, Accuracy accuracy);

// x = n ln 2 + r for an integer n; |r| is at most ln 2 / 2.
struct Reduced {
  Value scale;  // 2^(n + offset), if that is a normal number
  Pair r;       // its low part costs operations only where it is used
};
Reduced reduce_by_ln2(Value x, int offset);

}  // namespace picokernel::passes::math
