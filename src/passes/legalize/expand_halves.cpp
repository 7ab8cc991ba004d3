// float16 and bfloat16 are storage: every op computes in float32 and rounds its result.
#include "passes/legalize/expand.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {

using namespace ir;

Module expand_halves(const Module& m, const Target&) {
  return expand_ops(m, [&](Expansion& e, const Op& op) -> ValueId {
    const DType from = e.dtype(), to = m.type(op.results[0]).dtype;
    if (!is_half(from) && !is_half(to)) return {};
    if (op.opcode == Opcode::select || op.opcode == Opcode::bitcast) return {};
    if (op.opcode == Opcode::cast) {
      if (from == DType::f32 || to == DType::f32) return {};
      if (from == DType::f64 && to == DType::f16) return {};
      return e.cast(e.cast(e.operand(0), DType::f32), to);
    }
    std::vector<ValueId> wide;
    for (size_t i = 0; i < op.operands.size(); ++i)
      wide.push_back(e.cast(e.operand(i), DType::f32));
    const ValueId result = e.op(op.opcode, std::move(wide));
    return is_half(to) ? e.cast(result, to) : result;
  });
}

}  // namespace picokernel::passes
