// isnan, isinf, isfinite and signbit become comparisons and bits: what others call so is often a
// macro, an int, or gone under a flag.
#include <limits>

#include "passes/legalize/expand_formula.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {

using namespace ir;
using math::Value;
using math::Values;

Module expand_float_tests(const Module& m, const Target&) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return expand_formulas(m, [](const Op& op, const Values& v, DType) -> std::optional<Value> {
    if (op.opcode == Opcode::isnan) return v[0] != v[0];
    if (op.opcode == Opcode::isinf) return abs(v[0]) == kInfinity;
    if (op.opcode == Opcode::isfinite) return abs(v[0]) < kInfinity;
    if (op.opcode == Opcode::signbit) {
      const DType type = unsigned_of(v[0].dtype());
      return (bitcast(v[0], type) >> (8 * size_of(type) - 1)) != 0;
    }
    return std::nullopt;
  });
}

}  // namespace picokernel::passes
