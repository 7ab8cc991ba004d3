// Integer x // 0 and x % 0 are 0, MIN // -1 wraps, MIN % -1 is 0. In MLX the last two kill the
// process (SIGFPE) and x % 0 is x.
#include "passes/legalize/expand.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {

using namespace ir;

Module expand_int_division(const Module& m, const Target&) {
  return expand_ops(m, [&](Expansion& e, const Op& op) -> ValueId {
    const bool floordiv = op.opcode == Opcode::floordiv;
    if ((!floordiv && op.opcode != Opcode::mod) || !is_integer(e.dtype())) return {};
    const ValueId x = e.operand(0), y = e.operand(1);
    const bool with_sign = is_signed(e.dtype());
    const auto divisor = e.as_constant(y);
    if (divisor && divisor->bits != 0 && !(with_sign && divisor->as<int64_t>() == -1)) return {};
    const ValueId zero = e.constant(0);
    const ValueId one = e.constant(1);
    const ValueId by_zero = e.op(Opcode::eq, {y, zero});
    ValueId unsafe = by_zero, by_minus_one;
    if (with_sign) {
      const ValueId minus_one = e.constant(-1);
      by_minus_one = e.op(Opcode::eq, {y, minus_one});
      unsafe = e.op(Opcode::or_, {by_zero, by_minus_one});
    }
    const ValueId safe = e.op(Opcode::select, {unsafe, one, y});
    const ValueId result = e.op(op.opcode, {x, safe});
    if (!floordiv) return result;  // x % 1 is the 0 that is wanted
    ValueId quotient = result;
    if (with_sign) {
      const ValueId negated = e.op(Opcode::neg, {x});
      quotient = e.op(Opcode::select, {by_minus_one, negated, result});
    }
    return e.op(Opcode::select, {by_zero, zero, quotient});
  });
}

}  // namespace picokernel::passes
