// Functions that MLX lacks, by those that it has: within 2 units in the last place.
#include <limits>

#include "passes/legalize/expand.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {
namespace {

using namespace ir;

// One step of Newton's method makes up for the rounding of 1/3.
ValueId cbrt(Expansion& e, ValueId x) {
  const ValueId third = e.constant(1.0 / 3.0);
  const ValueId magnitude = e.op(Opcode::abs, {x});
  const ValueId near = e.op(Opcode::pow, {magnitude, third});
  const ValueId square = e.op(Opcode::mul, {near, near});
  const ValueId quotient = e.op(Opcode::div, {magnitude, square});
  const ValueId error = e.op(Opcode::sub, {near, quotient});
  const ValueId step = e.op(Opcode::mul, {error, third});
  const ValueId nearer = e.op(Opcode::sub, {near, step});
  // 0, infinities and NaN are their own roots, up to the sign.
  const ValueId zero = e.constant(0.0);
  const ValueId not_zero = e.op(Opcode::ne, {x, zero});
  const ValueId finite = e.op(Opcode::isfinite, {x});
  const ValueId ordinary = e.op(Opcode::and_, {not_zero, finite});
  const ValueId root = e.op(Opcode::select, {ordinary, nearer, magnitude});
  return e.op(Opcode::copysign, {root, x});
}

// The quotient of the smaller by the larger neither overflows nor loses what counts.
ValueId hypot(Expansion& e, ValueId x, ValueId y) {
  const ValueId zero = e.constant(0.0);
  const ValueId one = e.constant(1.0);
  const ValueId infinity = e.constant(std::numeric_limits<double>::infinity());
  const ValueId a = e.op(Opcode::abs, {x});
  const ValueId b = e.op(Opcode::abs, {y});
  const ValueId larger = e.op(Opcode::maximum, {a, b});
  const ValueId smaller = e.op(Opcode::minimum, {a, b});
  const ValueId ratio = e.op(Opcode::div, {smaller, larger});
  const ValueId square = e.op(Opcode::mul, {ratio, ratio});
  const ValueId sum = e.op(Opcode::add, {square, one});
  const ValueId root = e.op(Opcode::sqrt, {sum});
  const ValueId product = e.op(Opcode::mul, {larger, root});
  const ValueId both_zero = e.op(Opcode::eq, {larger, zero});
  const ValueId finite = e.op(Opcode::select, {both_zero, larger, product});
  // An infinity decides, even beside NaN.
  const ValueId x_infinite = e.op(Opcode::isinf, {x});
  const ValueId y_infinite = e.op(Opcode::isinf, {y});
  const ValueId infinite = e.op(Opcode::or_, {x_infinite, y_infinite});
  return e.op(Opcode::select, {infinite, infinity, finite});
}

}  // namespace

Module expand_functions(const Module& m, const Target&) {
  return expand_ops(m, [&](Expansion& e, const Op& op) -> ValueId {
    if (op.opcode == Opcode::exp2) {
      const ValueId two = e.constant(2.0);
      return e.op(Opcode::pow, {two, e.operand(0)});
    }
    if (op.opcode == Opcode::cbrt) return cbrt(e, e.operand(0));
    if (op.opcode == Opcode::hypot) return hypot(e, e.operand(0), e.operand(1));
    return {};
  });
}

}  // namespace picokernel::passes
