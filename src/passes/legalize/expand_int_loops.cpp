// Powers of integers and gcd become loops, by squaring and by Euclid's algorithm.
#include "passes/legalize/expand_formula.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {
namespace {

using namespace ir;
using math::Value;
using math::Values;

// The exponent is not negative: expand_int_pow comes first.
Value power(Value base, Value exponent) {
  const Values end = base.formula().loop(
      {base.like(1), base, cast(exponent, unsigned_of(exponent.dtype()))},
      [](const Values& v) { return v[2] != 0; },
      [](const Values& v) {
        const Value product = select((v[2] & 1) != 0, v[0] * v[1], v[0]);
        return Values{product, v[1] * v[1], v[2] >> 1};
      });
  return end[0];
}

Value greatest_divisor(Value x, Value y) {
  // Unsigned: the magnitude of MIN is one more than the maximum.
  const auto magnitude = [](Value v) { return cast(abs(v), unsigned_of(v.dtype())); };
  const Values end = x.formula().loop(
      {magnitude(x), magnitude(y)}, [](const Values& v) { return v[1] != 0; },
      [](const Values& v) { return Values{v[1], v[0].formula().op(Opcode::mod, {v[0], v[1]})}; });
  return cast(end[0], x.dtype());
}

}  // namespace

Module expand_int_loops(const Module& m, const Target&) {
  if (m.level == Level::graph) return m;  // graphs have no loops
  return expand_formulas(m, [](const Op& op, const Values& v, DType to) -> std::optional<Value> {
    if (!is_integer(to)) return std::nullopt;
    if (op.opcode == Opcode::pow) return power(v[0], v[1]);
    if (op.opcode == Opcode::gcd) return greatest_divisor(v[0], v[1]);
    return std::nullopt;
  });
}

}  // namespace picokernel::passes
