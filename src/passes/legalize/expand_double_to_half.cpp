// float64 to float16 by way of float32, which processors convert, with the one rounding that it
// takes.
#include "passes/legalize/expand.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {

using namespace ir;

namespace {

// float64 -> float32, rounded to odd: towards zero, and an inexact result gets its last bit set. A
// rounding to fewer bits that follows is then as if it were the only one (S. Boldo, G. Melquiond:
// Emulation of FMA and correctly rounded sums, 2008).
ValueId to_odd(Expansion& e, ValueId wide) {
  const ValueId nearest = e.cast(wide, DType::f32);
  const ValueId back = e.cast(nearest, DType::f64);
  const ValueId bits = e.bitcast(nearest, DType::u32);
  const ValueId magnitude = e.op(Opcode::abs, {wide}), reached = e.op(Opcode::abs, {back});
  const ValueId away = e.op(Opcode::gt, {reached, magnitude});
  const ValueId towards_zero = e.op(Opcode::sub, {bits, e.cast(away, DType::u32)});
  const ValueId inexact = e.op(Opcode::ne, {back, wide});
  const ValueId odd = e.op(Opcode::or_, {towards_zero, e.cast(inexact, DType::u32)});
  return e.bitcast(odd, DType::f32);
}

}  // namespace

Module expand_double_to_half(const Module& m, const Target&) {
  return expand_ops(m, [&](Expansion& e, const Op& op) -> ValueId {
    if (op.opcode != Opcode::cast || e.dtype() != DType::f64) return {};
    if (m.type(op.results[0]).dtype != DType::f16) return {};
    return e.cast(to_odd(e, e.operand(0)), DType::f16);
  });
}

}  // namespace picokernel::passes
