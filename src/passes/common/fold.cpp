// Constant folding: ops on constants become constants, and an `if` on one becomes its side.
#include <algorithm>

#include "ir/eval.h"
#include "ir/rewriter.h"
#include "passes/common/passes.h"

namespace picokernel::passes {
namespace {

using namespace ir;

std::optional<Scalar> constant(const Module& m, ValueId v) {
  const Op* def = m.def(v);
  if (def == nullptr || def->opcode != Opcode::constant) return std::nullopt;
  return def->scalar();
}

std::optional<std::vector<ValueId>> visit(Rewriter& r, OpId id) {
  const Op& op = r.from().ops[id];
  if (op.opcode == Opcode::size) {
    const auto value = r.to().sizes.as_constant(op.size());
    if (!value) return std::nullopt;
    return {{r.builder().constant(Scalar::of(*value))}};
  }
  if (op.opcode == Opcode::if_) {
    const IfView view{op};
    const auto condition = constant(r.to(), r[view.condition()]);
    if (!condition) return std::nullopt;
    return r.splice(condition->bits != 0 ? view.then_block() : view.else_block(), visit);
  }
  if (!info(op.opcode).elementwise()) return std::nullopt;
  const DType dtype = r.from().type(op.results[0]).dtype;
  if (!is_exact(op.opcode, dtype)) return std::nullopt;
  std::vector<Scalar> operands;
  for (const ValueId v : r.mapped(op.operands))
    if (const auto c = constant(r.to(), v)) operands.push_back(*c);
  if (operands.size() != op.operands.size()) return std::nullopt;
  return {{r.builder().constant(eval(op.opcode, operands, dtype))}};
}

}  // namespace

Module fold(const Module& m, const Target&) { return Rewriter(m).run(visit); }

}  // namespace picokernel::passes
