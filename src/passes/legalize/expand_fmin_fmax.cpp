// fmin and fmax take the other operand where one is NaN; minimum and maximum give the NaN.
#include "passes/legalize/expand.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {

using namespace ir;

Module expand_fmin_fmax(const Module& m, const Target&) {
  return expand_ops(m, [&](Expansion& e, const Op& op) -> ValueId {
    if (op.opcode != Opcode::fmin && op.opcode != Opcode::fmax) return {};
    const ValueId x = e.operand(0), y = e.operand(1);
    const ValueId propagating =
        e.op(op.opcode == Opcode::fmin ? Opcode::minimum : Opcode::maximum, {x, y});
    if (!is_float(e.dtype())) return propagating;
    const ValueId y_nan = e.op(Opcode::isnan, {y});
    const ValueId without_y = e.op(Opcode::select, {y_nan, x, propagating});
    const ValueId x_nan = e.op(Opcode::isnan, {x});
    return e.op(Opcode::select, {x_nan, y, without_y});
  });
}

}  // namespace picokernel::passes
