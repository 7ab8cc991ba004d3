// -x as a product or a difference, which are exact too. numpy.negative (2.4.6) gives wrong elements
// for some strides of input and output, such as both 16 bytes with 4-byte elements.
#include "passes/legalize/expand.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {

using namespace ir;

Module expand_neg(const Module& m, const Target&) {
  return expand_ops(m, [&](Expansion& e, const Op& op) -> ValueId {
    if (op.opcode != Opcode::neg) return {};
    if (is_float(e.dtype())) {
      const ValueId minus_one = e.constant(-1.0);
      return e.op(Opcode::mul, {e.operand(0), minus_one});
    }
    const ValueId zero = e.constant(0);
    return e.op(Opcode::sub, {zero, e.operand(0)});
  });
}

}  // namespace picokernel::passes
