// copysign negates where the sign bits differ, which is exact for zeros, infinities and NaN too.
#include "passes/legalize/expand.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {

using namespace ir;

Module expand_copysign(const Module& m, const Target&) {
  return expand_ops(m, [&](Expansion& e, const Op& op) -> ValueId {
    if (op.opcode != Opcode::copysign) return {};
    const ValueId x = e.operand(0), y = e.operand(1);
    const ValueId x_sign = e.op(Opcode::signbit, {x});
    const ValueId y_sign = e.op(Opcode::signbit, {y});
    const ValueId differ = e.op(Opcode::xor_, {x_sign, y_sign});
    const ValueId negated = e.op(Opcode::neg, {x});
    return e.op(Opcode::select, {differ, negated, x});
  });
}

}  // namespace picokernel::passes
