// Conversions between float32 and float16 in integers, for targets that have no float16.
#include "passes/legalize/expand_formula.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {
namespace {

using namespace ir;
using math::Value;
using math::Values;

// The exponent's bias is 112 less, the mantissa 13 bits shorter.
constexpr uint32_t kBias = 112u << 23, kInfinity = 0x7f800000;

Value from_float16(Value half) {
  const Value bits = cast(bitcast(half, DType::u16), DType::u32);
  const Value magnitude = bits & 0x7fff, wide = magnitude << 13;
  const Value subnormal = bitcast(cast(magnitude, DType::f32) * 0x1p-24, DType::u32);
  const Value normal = select(magnitude < 0x7c00, wide + kBias, wide | kInfinity);
  const Value sign = (bits & 0x8000) << 16;
  return bitcast(select(magnitude < 0x400, subnormal, normal) | sign, DType::f32);
}

// Rounds to nearest, ties to even; what lies past the range carries into infinity. NaN becomes
// quiet and keeps the upper bits of its payload.
Value to_float16(Value single) {
  const Value bits = bitcast(single, DType::u32), magnitude = bits & 0x7fffffff;
  const Value rest = magnitude - kBias, odd = (rest >> 13) & 1;
  const Value normal = (rest + odd + 0xfff) >> 13;
  // The last bit of a number beside 0.5 is the least float16: the sum rounds to it.
  const Value half = single.like(0.5);
  const Value subnormal = bitcast(abs(single) + half, DType::u32) - bitcast(half, DType::u32);
  const Value finite = select(magnitude < (113u << 23), subnormal, normal);
  const Value nan = ((magnitude >> 13) & 0x1ff) | 0x7e00, infinity = bits.like(0x7c00);
  const Value all =
      select(magnitude < (143u << 23), finite, select(magnitude > kInfinity, nan, infinity));
  const Value sign = (bits >> 16) & 0x8000;
  return bitcast(cast(all | sign, DType::u16), DType::f16);
}

}  // namespace

Module expand_float16(const Module& m, const Target&) {
  return expand_formulas(m, [](const Op& op, const Values& v, DType to) -> std::optional<Value> {
    if (op.opcode != Opcode::cast) return std::nullopt;
    const DType from = v[0].dtype();
    if (from == DType::f16 && to == DType::f32) return from_float16(v[0]);
    if (from == DType::f32 && to == DType::f16) return to_float16(v[0]);
    return std::nullopt;
  });
}

}  // namespace picokernel::passes
