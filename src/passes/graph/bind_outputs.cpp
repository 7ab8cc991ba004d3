// Results become written parameters, after the function's own.
#include "ir/rewriter.h"
#include "passes/graph/passes.h"

namespace picokernel::passes {

using namespace ir;

Module bind_outputs(const Module& m, const Target&) {
  if (m.results.empty()) return m;
  std::vector<ValueId> outputs;
  Rewriter rewriter(m);
  const bool graph = m.level == Level::graph;
  Module out = rewriter.run([&](Rewriter& r, OpId id) -> std::optional<std::vector<ValueId>> {
    const Op& op = r.from().ops[id];
    if (op.opcode != Opcode::return_) return std::nullopt;
    Builder& b = r.builder();
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const Type& type = m.type(op.operands[i]);
      outputs.push_back(b.param(
          {.kind = graph ? TypeKind::ref : TypeKind::ptr, .dtype = type.dtype, .shape = type.shape},
          op.operands.size() == 1 ? "out" : "out" + std::to_string(i)));
    }
    const ValueId zero = graph ? ValueId{} : b.constant(Scalar::of(int64_t{0}));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (graph)
        b.write(outputs[i], r[op.operands[i]]);
      else
        b.store(r[op.operands[i]], outputs[i], zero);
    }
    return std::vector<ValueId>{};
  });
  out.results.clear();
  return out;
}

}  // namespace picokernel::passes
