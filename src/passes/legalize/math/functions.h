// Mathematical functions as formulas. Operands and result are float32 or float64; float32's use
// nothing wider than 32 bits but in rare cases' integers, for devices that have no float64.
#pragma once

#include "ir/module.h"
#include "passes/legalize/math/formula.h"

namespace picokernel::passes::math {

using ir::Accuracy;

Value exp(Value x, Accuracy accuracy);
Value sin(Value x, Accuracy accuracy);
Value cos(Value x, Accuracy accuracy);
Value tan(Value x, Accuracy accuracy);
Value asin(Value x, Accuracy accuracy);
Value acos(Value x, Accuracy accuracy);
Value atan(Value x, Accuracy accuracy);
Value atan2(Value y, Value x, Accuracy accuracy);
Value cbrt(Value x, Accuracy accuracy);
Value hypot(Value x, Value y, Accuracy accuracy);
Value fmod(Value x, Value y, Accuracy accuracy);
Value mod(Value x, Value y, Accuracy accuracy);
Value floordiv(Value x, Value y, Accuracy accuracy);
Value exp2(Value x, Accuracy accuracy);
Value log(Value x, Accuracy accuracy);
Value log2(Value x, Accuracy accuracy);
Value log10(Value x, Accuracy accuracy);
Value log1p(Value x, Accuracy accuracy);
Value asinh(Value x, Accuracy accuracy);
Value acosh(Value x, Accuracy accuracy);
Value atanh(Value x, Accuracy accuracy);
Value pow(Value x, Value y, Accuracy accuracy);
Value expm1(Value x, Accuracy accuracy);
Value sinh(Value x, Accuracy accuracy);
Value cosh(Value x, Accuracy accuracy);
Value tanh(Value x, Accuracy accuracy);
Value erf(Value x, Accuracy accuracy);
Value erfc(Value x, Accuracy accuracy);

}  // namespace picokernel::passes::math
