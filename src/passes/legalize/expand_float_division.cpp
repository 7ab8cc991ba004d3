// NumPy's floor division and remainder of floats. MLX's floor(x / y) rounds the quotient first (1.0
// // 0.1 gives 10, not 9), and its remainder loses the sign of zero.
#include "passes/legalize/expand.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {
namespace {

using namespace ir;

// A magnitude (its sign bit is clear, or it is NaN) with the sign of y.
ValueId with_sign(Expansion& e, ValueId magnitude, ValueId negated, ValueId y) {
  const ValueId negative = e.op(Opcode::signbit, {y});
  return e.op(Opcode::select, {negative, negated, magnitude});
}

ValueId zero_with_sign(Expansion& e, ValueId y) {
  const ValueId zero = e.constant(0.0);
  const ValueId negative_zero = e.constant(-0.0);
  return with_sign(e, zero, negative_zero, y);
}

// mod of magnitudes is the exact remainder of both; with the dividend's sign it is C's fmod.
ValueId fmod(Expansion& e, ValueId x, ValueId y) {
  const ValueId x_magnitude = e.op(Opcode::abs, {x});
  const ValueId y_magnitude = e.op(Opcode::abs, {y});
  const ValueId magnitude = e.op(Opcode::mod, {x_magnitude, y_magnitude});
  const ValueId negated = e.op(Opcode::neg, {magnitude});
  return with_sign(e, magnitude, negated, x);
}

// The remainder is not zero and has the other sign than the divisor: one divisor has to be added.
ValueId wrong_side(Expansion& e, ValueId remainder, ValueId y, ValueId zero) {
  const ValueId divisor_negative = e.op(Opcode::lt, {y, zero});
  const ValueId remainder_negative = e.op(Opcode::lt, {remainder, zero});
  const ValueId differ = e.op(Opcode::ne, {divisor_negative, remainder_negative});
  const ValueId inexact = e.op(Opcode::ne, {remainder, zero});
  return e.op(Opcode::and_, {differ, inexact});
}

ValueId mod(Expansion& e, ValueId x, ValueId y) {
  const ValueId zero = e.constant(0.0);
  const ValueId remainder = fmod(e, x, y);
  const ValueId wrong = wrong_side(e, remainder, y, zero);
  const ValueId moved = e.op(Opcode::add, {remainder, y});
  const ValueId right = e.op(Opcode::select, {wrong, moved, remainder});
  // An exact zero takes the divisor's sign. NaN stays: it is no zero.
  const ValueId exact = e.op(Opcode::eq, {remainder, zero});
  const ValueId signed_zero = zero_with_sign(e, y);
  return e.op(Opcode::select, {exact, signed_zero, right});
}

ValueId floordiv(Expansion& e, ValueId x, ValueId y) {
  const ValueId zero = e.constant(0.0);
  const ValueId one = e.constant(1.0);
  const ValueId half = e.constant(0.5);
  const ValueId ratio = e.op(Opcode::div, {x, y});
  const ValueId remainder = fmod(e, x, y);
  const ValueId difference = e.op(Opcode::sub, {x, remainder});
  const ValueId multiple = e.op(Opcode::div, {difference, y});
  const ValueId wrong = wrong_side(e, remainder, y, zero);
  const ValueId less = e.op(Opcode::sub, {multiple, one});
  const ValueId quotient = e.op(Opcode::select, {wrong, less, multiple});
  // The quotient is a whole number up to rounding.
  const ValueId floor = e.op(Opcode::floor, {quotient});
  const ValueId rest = e.op(Opcode::sub, {quotient, floor});
  const ValueId nearly_next = e.op(Opcode::gt, {rest, half});
  const ValueId next = e.op(Opcode::add, {floor, one});
  const ValueId whole = e.op(Opcode::select, {nearly_next, next, floor});
  const ValueId none = e.op(Opcode::eq, {quotient, zero});
  const ValueId signed_zero = zero_with_sign(e, ratio);
  const ValueId signed_whole = e.op(Opcode::select, {none, signed_zero, whole});
  const ValueId by_zero = e.op(Opcode::eq, {y, zero});
  return e.op(Opcode::select, {by_zero, ratio, signed_whole});
}

// Already a mod of magnitudes, which targets compute exactly.
bool of_magnitudes(const Module& m, const Op& op) {
  for (const ValueId v : op.operands)
    if (m.def(v) == nullptr || m.def(v)->opcode != Opcode::abs) return false;
  return true;
}

}  // namespace

Module expand_float_division(const Module& m, const Target&) {
  return expand_ops(m, [&](Expansion& e, const Op& op) -> ValueId {
    if (!is_float(e.dtype())) return {};
    if (op.opcode == Opcode::mod && !of_magnitudes(m, op))
      return mod(e, e.operand(0), e.operand(1));
    if (op.opcode == Opcode::fmod) return fmod(e, e.operand(0), e.operand(1));
    if (op.opcode == Opcode::floordiv) return floordiv(e, e.operand(0), e.operand(1));
    return {};
  });
}

}  // namespace picokernel::passes
