// minimum and maximum become comparisons and selects; NaN wins, and -0.0 is less than 0.0.
#include "passes/legalize/expand_formula.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {

using namespace ir;
using math::Value;
using math::Values;

Module expand_minimum_maximum(const Module& m, const Target&) {
  return expand_formulas(m, [](const Op& op, const Values& v, DType to) -> std::optional<Value> {
    const bool minimum = op.opcode == Opcode::minimum;
    if (!minimum && op.opcode != Opcode::maximum) return std::nullopt;
    const Value x = v[0], y = v[1];
    if (is_bool(to)) return minimum ? x & y : x | y;
    const Value first = minimum ? x < y : x > y;
    if (is_integer(to)) return select(first, x, y);
    // Where y is NaN no comparison holds, and it is y that is chosen.
    const Value zero_first = minimum ? signbit(x) : !signbit(x);
    return select(first | isnan(x) | ((x == y) & zero_first), x, y);
  });
}

}  // namespace picokernel::passes
