// Signed floordiv and mod become unsigned ones of magnitudes, for targets whose division rounds
// towards zero.
#include "passes/legalize/expand_formula.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {

using namespace ir;
using math::Value;
using math::Values;

Module expand_signed_division(const Module& m, const Target&) {
  return expand_formulas(m, [](const Op& op, const Values& v, DType to) -> std::optional<Value> {
    const bool floordiv = op.opcode == Opcode::floordiv;
    if ((!floordiv && op.opcode != Opcode::mod) || !is_signed(to)) return std::nullopt;
    const DType type = unsigned_of(to);
    const Value x = cast(abs(v[0]), type), y = cast(abs(v[1]), type);
    const Value y_negative = v[1] < 0, differ = (v[0] < 0) != y_negative;
    const Value remainder = x.formula().op(Opcode::mod, {x, y}), inexact = remainder != 0;
    if (floordiv) {
      const Value quotient = x.formula().op(Opcode::floordiv, {x, y});
      return cast(select(differ, -(quotient + cast(inexact, type)), quotient), to);
    }
    const Value magnitude = select(differ & inexact, y - remainder, remainder);
    return cast(select(y_negative, -magnitude, magnitude), to);
  });
}

}  // namespace picokernel::passes
