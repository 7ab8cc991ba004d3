// float32 functions that MLX's CPU computes wrong somewhere: exp has no denormals and gives up
// below its overflow, erf has an absolute error only, sin and erf lose the sign of zero. What is
// not selected stays finite, so that gradients do.
#include <numbers>

#include "passes/legalize/expand.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {
namespace {

using namespace ir;

// By the square of a root, beyond 87.
ValueId exp(Expansion& e, ValueId x) {
  const ValueId magnitude = e.op(Opcode::abs, {x});
  const ValueId far = e.op(Opcode::gt, {magnitude, e.constant(87.0)});
  const ValueId half = e.op(Opcode::mul, {x, e.constant(0.5)});
  const ValueId nearer = e.op(Opcode::select, {far, half, x});
  const ValueId power = e.op(Opcode::exp, {nearer});
  const ValueId square = e.op(Opcode::mul, {power, power});
  return e.op(Opcode::select, {far, square, power});
}

ValueId sin(Expansion& e, ValueId x) {
  const ValueId zero = e.op(Opcode::eq, {x, e.constant(0.0)});
  const ValueId sine = e.op(Opcode::sin, {x});
  return e.op(Opcode::select, {zero, x, sine});
}

// Its series below 0.5: the first term that is left out is less than a quarter of a unit there.
ValueId erf(Expansion& e, ValueId x) {
  const ValueId magnitude = e.op(Opcode::abs, {x});
  const ValueId near = e.op(Opcode::lt, {magnitude, e.constant(0.5)});
  const ValueId small = e.op(Opcode::select, {near, x, e.constant(0.0)});
  const ValueId square = e.op(Opcode::mul, {small, small});
  const double scale = 2 * std::numbers::inv_sqrtpi;
  ValueId sum = e.constant(-scale / 1320);
  for (const double divisor : {216.0, -42.0, 10.0, -3.0, 1.0}) {
    const ValueId product = e.op(Opcode::mul, {sum, square});
    sum = e.op(Opcode::add, {product, e.constant(scale / divisor)});
  }
  const ValueId series = e.op(Opcode::mul, {small, sum});
  const ValueId theirs = e.op(Opcode::erf, {x});
  return e.op(Opcode::select, {near, series, theirs});
}

}  // namespace

Module expand_inexact(const Module& m, const Target&) {
  return expand_ops(m, [&](Expansion& e, const Op& op) -> ValueId {
    const bool number = m.type(op.results[0]).is_scalar();  // which the host computes
    if (number || e.dtype() != DType::f32) return {};
    if (op.opcode == Opcode::exp) return exp(e, e.operand(0));
    if (op.opcode == Opcode::sin) return sin(e, e.operand(0));
    if (op.opcode == Opcode::erf) return erf(e, e.operand(0));
    return {};
  });
}

}  // namespace picokernel::passes
