// Ufuncs that are several ops.
#include <cmath>
#include <limits>
#include <numbers>

#include "frontend/ufuncs.h"
#include "ir/eval.h"
#include "support/check.h"

namespace picokernel::frontend::composites {

using ir::Opcode;
using ir::ValueId;
using Operands = std::span<const ValueId>;

ValueId number(ir::Builder& b, DType type, double value) {
  return b.constant(ir::cast(ir::Scalar::of(value), type));
}

ValueId positive(ir::Builder&, Operands x, DType) { return x[0]; }

ValueId absolute(ir::Builder& b, Operands x, DType type) {
  return is_bool(type) || is_unsigned(type) ? x[0] : b.value(Opcode::abs, {x[0]});
}

// NaN is neither positive, negative nor zero and stays; -0 becomes 0.
ValueId sign(ir::Builder& b, Operands x, DType type) {
  const ValueId zero = number(b, type, 0), one = number(b, type, 1);
  const ValueId is_positive = b.value(Opcode::gt, {x[0], zero});
  if (is_unsigned(type)) return b.value(Opcode::select, {is_positive, one, zero});
  const ValueId minus_one = number(b, type, -1);
  ValueId rest = zero;
  if (is_float(type)) {
    const ValueId is_zero = b.value(Opcode::eq, {x[0], zero});
    rest = b.value(Opcode::select, {is_zero, zero, x[0]});
  }
  const ValueId is_negative = b.value(Opcode::lt, {x[0], zero});
  const ValueId not_positive = b.value(Opcode::select, {is_negative, minus_one, rest});
  return b.value(Opcode::select, {is_positive, one, not_positive});
}

ValueId signbit(ir::Builder& b, Operands x, DType type) {
  if (is_float(type)) return b.value(Opcode::signbit, {x[0]});
  if (!is_signed(type)) return always(b, false, x[0]);
  const ValueId zero = number(b, type, 0);
  return b.value(Opcode::lt, {x[0], zero});
}

ValueId square(ir::Builder& b, Operands x, DType) { return b.value(Opcode::mul, {x[0], x[0]}); }

// Of integers only 1 and -1 have a reciprocal that is not truncated to 0.
ValueId reciprocal(ir::Builder& b, Operands x, DType type) {
  const ValueId one = number(b, type, 1);
  if (is_float(type)) return b.value(Opcode::div, {one, x[0]});
  ValueId kept = b.value(Opcode::eq, {x[0], one});
  if (is_signed(type)) {
    const ValueId minus_one = number(b, type, -1);
    const ValueId is_minus_one = b.value(Opcode::eq, {x[0], minus_one});
    kept = b.value(Opcode::or_, {kept, is_minus_one});
  }
  const ValueId zero = number(b, type, 0);
  return b.value(Opcode::select, {kept, x[0], zero});
}

ValueId heaviside(ir::Builder& b, Operands x, DType type) {
  const ValueId zero = number(b, type, 0), one = number(b, type, 1);
  const ValueId is_zero = b.value(Opcode::eq, {x[0], zero});
  const ValueId at_zero = b.value(Opcode::select, {is_zero, x[1], x[0]});
  const ValueId is_negative = b.value(Opcode::lt, {x[0], zero});
  const ValueId not_positive = b.value(Opcode::select, {is_negative, zero, at_zero});
  const ValueId is_positive = b.value(Opcode::gt, {x[0], zero});
  return b.value(Opcode::select, {is_positive, one, not_positive});
}

// A bound that is not there is no valid id.
ValueId clip(ir::Builder& b, Operands x, DType) {
  const ValueId above = x[1].valid() ? b.value(Opcode::maximum, {x[0], x[1]}) : x[0];
  return x[2].valid() ? b.value(Opcode::minimum, {above, x[2]}) : above;
}

// The factor is computed in the loop's own type, as NumPy does.
ValueId degrees(ir::Builder& b, Operands x, DType type) {
  const double factor =
      type == DType::f32 ? 180.0f / std::numbers::pi_v<float> : 180.0 / std::numbers::pi;
  const ValueId by = number(b, type, factor);
  return b.value(Opcode::mul, {x[0], by});
}

ValueId radians(ir::Builder& b, Operands x, DType type) {
  const double factor =
      type == DType::f32 ? std::numbers::pi_v<float> / 180.0f : std::numbers::pi / 180.0;
  const ValueId by = number(b, type, factor);
  return b.value(Opcode::mul, {x[0], by});
}

ValueId static_power(ir::Builder& b, ValueId x, DType type, double exponent) {
  if (exponent == 1) return x;
  if (exponent == 2) return b.value(Opcode::mul, {x, x});
  if (!is_float(type)) return {};
  if (exponent == 0.5) return b.value(Opcode::sqrt, {x});
  if (exponent == -1) return reciprocal(b, std::span(&x, 1), type);
  return {};
}

ValueId compare_mixed(ir::Builder& b, Opcode comparison, ValueId x, ValueId y) {
  // Below 0, y is less than every x. Else y is a uint64 too.
  const bool if_negative =
      comparison == Opcode::ne || comparison == Opcode::gt || comparison == Opcode::ge;
  const ValueId zero = number(b, DType::i64, 0);
  const ValueId unsigned_y = b.cast(y, DType::u64);
  const ValueId otherwise = b.value(comparison, {x, unsigned_y});
  const ValueId sign = b.value(if_negative ? Opcode::lt : Opcode::ge, {y, zero});
  return b.value(if_negative ? Opcode::or_ : Opcode::and_, {sign, otherwise});
}

ValueId always(ir::Builder& b, bool truth, ValueId x) {
  return b.value(truth ? Opcode::eq : Opcode::ne, {x, x});
}

}  // namespace picokernel::frontend::composites
