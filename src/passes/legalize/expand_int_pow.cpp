// A negative exponent of an integer power gives 0, or +-1 for base +-1; NumPy raises, MLX gives 0.
#include "passes/legalize/expand.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {

using namespace ir;

Module expand_int_pow(const Module& m, const Target&) {
  return expand_ops(m, [&](Expansion& e, const Op& op) -> ValueId {
    if (op.opcode != Opcode::pow || !is_signed(e.dtype())) return {};
    const ValueId x = e.operand(0), y = e.operand(1);
    const auto exponent = e.as_constant(y);
    if (exponent && exponent->as<int64_t>() >= 0) return {};
    const ValueId zero = e.constant(0);
    const ValueId one = e.constant(1);
    const ValueId minus_one = e.constant(-1);
    const ValueId clamped = e.op(Opcode::maximum, {y, zero});
    const ValueId power = e.op(Opcode::pow, {x, clamped});
    const ValueId last_bit = e.op(Opcode::and_, {y, one});
    const ValueId odd = e.op(Opcode::ne, {last_bit, zero});
    const ValueId sign = e.op(Opcode::select, {odd, minus_one, one});
    const ValueId is_minus_one = e.op(Opcode::eq, {x, minus_one});
    const ValueId of_minus_one = e.op(Opcode::select, {is_minus_one, sign, zero});
    const ValueId is_one = e.op(Opcode::eq, {x, one});
    const ValueId inverse = e.op(Opcode::select, {is_one, one, of_minus_one});
    const ValueId negative = e.op(Opcode::lt, {y, zero});
    return e.op(Opcode::select, {negative, inverse, power});
  });
}

}  // namespace picokernel::passes
