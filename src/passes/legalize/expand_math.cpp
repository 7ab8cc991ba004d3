// Mathematical functions become arithmetic, the same on every target.
#include "ir/rewriter.h"
#include "passes/legalize/math/functions.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {
namespace {

using namespace ir;
using math::Formula;
using math::Value;
using math::Values;

using Function = Value (*)(const Values&, Accuracy);

struct Row {
  Opcode opcode;
  Function function;
};

#define PK_UNARY(name) \
  {Opcode::name, [](const Values& x, Accuracy a) { return math::name(x[0], a); }}
#define PK_BINARY(name) \
  {Opcode::name, [](const Values& x, Accuracy a) { return math::name(x[0], x[1], a); }}
constexpr Row kFunctions[] = {
    PK_UNARY(exp),   PK_UNARY(sin),   PK_UNARY(cos),       PK_UNARY(tan),    PK_UNARY(asin),
    PK_UNARY(acos),  PK_UNARY(atan),  PK_UNARY(cbrt),      PK_BINARY(atan2), PK_BINARY(hypot),
    PK_BINARY(fmod), PK_BINARY(mod),  PK_BINARY(floordiv), PK_UNARY(exp2),   PK_UNARY(log),
    PK_UNARY(log2),  PK_UNARY(log10), PK_UNARY(erf),       PK_UNARY(erfc),   PK_UNARY(log1p),
    PK_UNARY(asinh), PK_UNARY(acosh), PK_UNARY(atanh),     PK_BINARY(pow),   PK_UNARY(expm1),
    PK_UNARY(sinh),  PK_UNARY(cosh),  PK_UNARY(tanh),
};
#undef PK_UNARY
#undef PK_BINARY

Function function_of(Opcode opcode) {
  for (const Row& row : kFunctions)
    if (row.opcode == opcode) return row.function;
  return nullptr;
}

}  // namespace

Module expand_math(const Module& m, const Target&) {
  if (m.level == Level::graph) return m;  // rare cases are control flow, which graphs have not
  return Rewriter(m).run([&](Rewriter& r, OpId id) -> std::optional<std::vector<ValueId>> {
    const Op& op = m.ops[id];
    const Function function = function_of(op.opcode);
    if (function == nullptr || !is_float(m.type(op.results[0]).dtype)) return std::nullopt;
    r.builder().set_location(m.location(op));
    const DType dtype = m.type(op.results[0]).dtype;
    Formula formula(r.builder());
    Values operands;
    for (const ValueId v : r.mapped(op.operands)) {
      const Value operand = formula.of(v);
      operands.push_back(is_half(dtype) ? math::cast(operand, DType::f32) : operand);
    }
    return {{formula.emit(math::cast(function(operands, m.floats.accuracy), dtype))}};
  });
}

}  // namespace picokernel::passes
