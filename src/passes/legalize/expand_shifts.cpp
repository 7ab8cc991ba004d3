// A shift by the width or more, or by a negative count, gives 0, or the sign for shr of signed
// integers. Processors and MLX take the count modulo something.
#include "passes/legalize/expand.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {

using namespace ir;

Module expand_shifts(const Module& m, const Target&) {
  return expand_ops(m, [&](Expansion& e, const Op& op) -> ValueId {
    if (op.opcode != Opcode::shl && op.opcode != Opcode::shr) return {};
    const ValueId x = e.operand(0), y = e.operand(1);
    const auto width = static_cast<int64_t>(8 * size_of(e.dtype()));
    const bool with_sign = is_signed(e.dtype());
    if (const auto count = e.as_constant(y)) {
      const bool negative = with_sign && count->as<int64_t>() < 0;
      if (!negative && count->bits < static_cast<uint64_t>(width)) return {};
    }
    const ValueId zero = e.constant(0);
    const ValueId last = e.constant(width - 1);
    ValueId outside = e.op(Opcode::gt, {y, last});
    if (with_sign) {
      const ValueId negative = e.op(Opcode::lt, {y, zero});
      outside = e.op(Opcode::or_, {outside, negative});
    }
    // The sign is what a shift by width - 1 leaves.
    const bool keeps_sign = with_sign && op.opcode == Opcode::shr;
    const ValueId safe = e.op(Opcode::select, {outside, keeps_sign ? last : zero, y});
    const ValueId shifted = e.op(op.opcode, {x, safe});
    if (keeps_sign) return shifted;
    return e.op(Opcode::select, {outside, zero, shifted});
  });
}

}  // namespace picokernel::passes
