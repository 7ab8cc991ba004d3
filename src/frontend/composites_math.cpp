// Functions that are formulas over other ops, and those that take floats apart by their bits.
#include <cmath>
#include <numbers>

#include "frontend/ufuncs.h"
#include "ir/eval.h"
#include "support/check.h"

namespace picokernel::frontend::composites {

using ir::Opcode;
using ir::ValueId;
using Operands = std::span<const ValueId>;

namespace {

// A float of the type is a sign, an exponent and the mantissa's lower bits, the last of them being
// bit 0.
struct Format {
  DType bits;  // the signed integer of its size
  int mantissa;
  int max_exponent;  // of a finite number; the least of a normal one is 1 - max_exponent
  int64_t exponent_mask() const { return 2 * int64_t{max_exponent} + 1; }
};

Format format_of(DType type) {
  if (type == DType::f16) return {.bits = DType::i16, .mantissa = 10, .max_exponent = 15};
  if (type == DType::bf16) return {.bits = DType::i16, .mantissa = 7, .max_exponent = 127};
  if (type == DType::f32) return {.bits = DType::i32, .mantissa = 23, .max_exponent = 127};
  PK_CHECK(type == DType::f64, text_name(type));
  return {.bits = DType::i64, .mantissa = 52, .max_exponent = 1023};
}

ValueId integer(ir::Builder& b, DType type, int64_t value) {
  return b.constant(ir::cast(ir::Scalar::of(value), type));
}

ValueId power_of_two(ir::Builder& b, DType type, int exponent) {
  return number(b, type, std::ldexp(1.0, exponent));
}

ValueId bitcast(ir::Builder& b, ValueId v, DType type) {
  return b.value(Opcode::bitcast, {v}, 0, {{.dtype = type}});
}

// Not 0, not an infinity, not NaN.
ValueId is_ordinary(ir::Builder& b, ValueId x, DType type) {
  const ValueId not_zero = b.value(Opcode::ne, {x, number(b, type, 0)});
  const ValueId finite = b.value(Opcode::isfinite, {x});
  return b.value(Opcode::and_, {not_zero, finite});
}

// Denormals are scaled by 2^(mantissa + 1), to have a leading bit where the others have theirs.
struct Normalized {
  ValueId is_denormal, bits;
};

Normalized normalize(ir::Builder& b, ValueId x, DType type) {
  const Format f = format_of(type);
  const ValueId magnitude = b.value(Opcode::abs, {x});
  const ValueId least = power_of_two(b, type, 1 - f.max_exponent);
  const ValueId is_denormal = b.value(Opcode::lt, {magnitude, least});
  const ValueId factor = power_of_two(b, type, f.mantissa + 1);
  const ValueId scaled = b.value(Opcode::mul, {x, factor});
  const ValueId normal = b.value(Opcode::select, {is_denormal, scaled, x});
  return {is_denormal, bitcast(b, normal, f.bits)};
}

// NumPy's npy_logaddexp: the larger one, plus log1p(exp(-distance)). `log_of_sum` has that second
// term from minus the distance, `of_equals` is it for equal operands.
template <class F>
ValueId log_add(ir::Builder& b, Operands x, DType type, double of_equals, F&& log_of_sum) {
  const ValueId zero = number(b, type, 0);
  const ValueId difference = b.value(Opcode::sub, {x[0], x[1]});
  const ValueId first_larger = b.value(Opcode::gt, {difference, zero});
  const ValueId larger = b.value(Opcode::select, {first_larger, x[0], x[1]});
  const ValueId distance = b.value(Opcode::abs, {difference});
  const ValueId minus_distance = b.value(Opcode::neg, {distance});
  const ValueId term = log_of_sum(minus_distance);
  const ValueId sum = b.value(Opcode::add, {larger, term});
  const ValueId equal = b.value(Opcode::eq, {x[0], x[1]});  // infinities of one sign too
  const ValueId doubled = b.value(Opcode::add, {x[0], number(b, type, of_equals)});
  return b.value(Opcode::select, {equal, doubled, sum});
}

}  // namespace

ValueId logaddexp(ir::Builder& b, Operands x, DType type) {
  return log_add(b, x, type, std::numbers::ln2, [&](ValueId v) {
    const ValueId ratio = b.value(Opcode::exp, {v});
    return b.value(Opcode::log1p, {ratio});
  });
}

ValueId logaddexp2(ir::Builder& b, Operands x, DType type) {
  return log_add(b, x, type, 1, [&](ValueId v) {
    const ValueId ratio = b.value(Opcode::exp2, {v});
    const ValueId natural = b.value(Opcode::log1p, {ratio});
    return b.value(Opcode::mul, {number(b, type, std::numbers::log2e), natural});
  });
}

// Truncating: the remainder of floor division, one divisor back where the signs differ.
ValueId fmod(ir::Builder& b, Operands x, DType type) {
  if (is_float(type)) return b.value(Opcode::fmod, {x[0], x[1]});
  const ValueId remainder = b.value(Opcode::mod, {x[0], x[1]});
  if (is_unsigned(type)) return remainder;
  const ValueId zero = number(b, type, 0);
  const ValueId inexact = b.value(Opcode::ne, {remainder, zero});
  const ValueId x_negative = b.value(Opcode::lt, {x[0], zero});
  const ValueId y_negative = b.value(Opcode::lt, {x[1], zero});
  const ValueId differ = b.value(Opcode::xor_, {x_negative, y_negative});
  const ValueId moves = b.value(Opcode::and_, {inexact, differ});
  const ValueId moved = b.value(Opcode::sub, {remainder, x[1]});
  return b.value(Opcode::select, {moves, moved, remainder});
}

// On unsigned integers, as MIN has no magnitude among the signed ones; 0 // 0 is 0.
ValueId lcm(ir::Builder& b, Operands x, DType type) {
  const DType wide = type == DType::i8    ? DType::u8
                     : type == DType::i16 ? DType::u16
                     : type == DType::i32 ? DType::u32
                     : type == DType::i64 ? DType::u64
                                          : type;
  const auto magnitude = [&](ValueId v) {
    return b.cast(absolute(b, std::span(&v, 1), type), wide);
  };
  const ValueId first = magnitude(x[0]), second = magnitude(x[1]);
  const ValueId divisor = b.value(Opcode::gcd, {first, second});
  const ValueId quotient = b.value(Opcode::floordiv, {first, divisor});
  return b.cast(b.value(Opcode::mul, {quotient, second}), type);
}

ValueId conjugate(ir::Builder&, Operands x, DType) { return x[0]; }

// Numbers of one sign are in the order of their bits.
ValueId nextafter(ir::Builder& b, Operands operands, DType type) {
  const ValueId x = operands[0], y = operands[1];
  const Format f = format_of(type);
  const ValueId zero = number(b, type, 0);
  const ValueId above = b.value(Opcode::gt, {y, x});
  const ValueId positive = b.value(Opcode::gt, {x, zero});
  const ValueId inwards = b.value(Opcode::xor_, {above, positive});
  const ValueId one = integer(b, f.bits, 1), minus_one = integer(b, f.bits, -1);
  const ValueId step = b.value(Opcode::select, {inwards, minus_one, one});
  const ValueId bits = b.value(Opcode::add, {bitcast(b, x, f.bits), step});
  const ValueId stepped = bitcast(b, bits, type);
  const ValueId least = bitcast(b, one, type);
  const ValueId from_zero = b.value(Opcode::copysign, {least, y});
  const ValueId is_zero = b.value(Opcode::eq, {x, zero});
  const ValueId moved = b.value(Opcode::select, {is_zero, from_zero, stepped});
  const ValueId there = b.value(Opcode::eq, {x, y});
  const ValueId result = b.value(Opcode::select, {there, y, moved});
  const ValueId x_nan = b.value(Opcode::isnan, {x}), y_nan = b.value(Opcode::isnan, {y});
  const ValueId without_y = b.value(Opcode::select, {y_nan, y, result});
  return b.value(Opcode::select, {x_nan, x, without_y});
}

// Away from 0, with the sign of x. Of the largest number it is an infinity, of infinities NaN.
ValueId spacing(ir::Builder& b, Operands x, DType type) {
  const Format f = format_of(type);
  const ValueId magnitude = b.value(Opcode::abs, {x[0]});
  const ValueId bits = bitcast(b, magnitude, f.bits);
  const ValueId next = b.value(Opcode::add, {bits, integer(b, f.bits, 1)});
  const ValueId distance = b.value(Opcode::sub, {bitcast(b, next, type), magnitude});
  const ValueId negated = b.value(Opcode::neg, {distance});
  const ValueId is_negative = b.value(Opcode::lt, {x[0], number(b, type, 0)});  // not for -0
  return b.value(Opcode::select, {is_negative, negated, distance});
}

// By three factors that are powers of two in range. Two of them are exact, or the result is 0 or an
// infinity anyway: the one towards 0 stops where a denormal can lose bits only once.
ValueId ldexp(ir::Builder& b, Operands operands, DType type) {
  const Format f = format_of(type);
  const int64_t most = f.max_exponent, least = 1 - f.max_exponent, small = least + f.mantissa + 1;
  // Clamped before it is narrowed.
  const auto clamp = [&](ValueId v, DType t, int64_t low, int64_t high) {
    const ValueId above = b.value(Opcode::maximum, {v, integer(b, t, low)});
    return b.value(Opcode::minimum, {above, integer(b, t, high)});
  };
  const DType given = b.module().type(operands[1]).dtype;
  ValueId n = b.cast(clamp(operands[1], given, 3 * least, 3 * most), f.bits);
  ValueId result = operands[0];
  const auto scale = [&](ValueId by) {
    const ValueId biased = b.value(Opcode::add, {by, integer(b, f.bits, f.max_exponent)});
    const ValueId bits = b.value(Opcode::shl, {biased, integer(b, f.bits, f.mantissa)});
    result = b.value(Opcode::mul, {result, bitcast(b, bits, type)});
  };
  for (int i = 0; i < 2; ++i) {
    const ValueId over = b.value(Opcode::gt, {n, integer(b, f.bits, most)});
    const ValueId under = b.value(Opcode::lt, {n, integer(b, f.bits, least)});
    const ValueId low = b.value(Opcode::select, {under, integer(b, f.bits, small), n});
    const ValueId part = b.value(Opcode::select, {over, integer(b, f.bits, most), low});
    scale(part);
    n = b.value(Opcode::sub, {n, part});
  }
  scale(clamp(n, f.bits, least, most));
  return result;
}

// In [0.5, 1), with the sign of x.
ValueId frexp_mantissa(ir::Builder& b, Operands x, DType type) {
  const Format f = format_of(type);
  const ValueId bits = normalize(b, x[0], type).bits;
  const ValueId others = integer(b, f.bits, ~(f.exponent_mask() << f.mantissa));
  const ValueId kept = b.value(Opcode::and_, {bits, others});
  const ValueId half = integer(b, f.bits, (int64_t{f.max_exponent} - 1) << f.mantissa);
  const ValueId mantissa = bitcast(b, b.value(Opcode::or_, {kept, half}), type);
  return b.value(Opcode::select, {is_ordinary(b, x[0], type), mantissa, x[0]});
}

// 0 where frexp_mantissa is x itself.
ValueId frexp_exponent(ir::Builder& b, Operands x, DType type) {
  const Format f = format_of(type);
  const Normalized n = normalize(b, x[0], type);
  const ValueId high = b.value(Opcode::shr, {n.bits, integer(b, f.bits, f.mantissa)});
  const ValueId field = b.value(Opcode::and_, {high, integer(b, f.bits, f.exponent_mask())});
  const ValueId bias = integer(b, f.bits, int64_t{f.max_exponent} - 1);
  const ValueId bias_of_denormal = integer(b, f.bits, int64_t{f.max_exponent} + f.mantissa);
  const ValueId subtracted = b.value(Opcode::select, {n.is_denormal, bias_of_denormal, bias});
  const ValueId exponent = b.value(Opcode::sub, {field, subtracted});
  const ValueId ordinary = is_ordinary(b, x[0], type);
  return b.cast(b.value(Opcode::select, {ordinary, exponent, integer(b, f.bits, 0)}), DType::i32);
}

// With the sign of x; 0 of infinities.
ValueId modf_fraction(ir::Builder& b, Operands x, DType type) {
  const ValueId rest = b.value(Opcode::sub, {x[0], modf_whole(b, x, type)});
  const ValueId infinite = b.value(Opcode::isinf, {x[0]});
  const ValueId fraction = b.value(Opcode::select, {infinite, number(b, type, 0), rest});
  return b.value(Opcode::copysign, {fraction, x[0]});
}

ValueId modf_whole(ir::Builder& b, Operands x, DType) { return b.value(Opcode::trunc, {x[0]}); }

}  // namespace picokernel::frontend::composites
