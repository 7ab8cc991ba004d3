// Constant folding.
#include <algorithm>

#include "ir/eval.h"
#include "ir/rewriter.h"
#include "passes/common/passes.h"

namespace picokernel::passes {

using namespace ir;

Module fold(const Module& m, const Target&) {
  return Rewriter(m).run([](Rewriter& r, OpId id) -> std::optional<std::vector<ValueId>> {
    const Op& op = r.from().ops[id];
    if (op.opcode == Opcode::size) {
      const auto value = r.to().sizes.as_constant(op.size());
      if (!value) return std::nullopt;
      return {{r.builder().constant(Scalar::of(*value))}};
    }
    if (!info(op.opcode).elementwise()) return std::nullopt;
    const std::vector<ValueId> operands = r.mapped(op.operands);
    std::vector<Scalar> constants;
    for (const ValueId v : operands)
      if (const Op* def = r.to().def(v); def != nullptr && def->opcode == Opcode::constant)
        constants.push_back(def->scalar());
    if (constants.size() != operands.size()) return std::nullopt;
    return {{r.builder().constant(eval(op.opcode, constants, r.from().type(op.results[0]).dtype))}};
  });
}

}  // namespace picokernel::passes
