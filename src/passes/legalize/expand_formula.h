// Expansions of elementwise ops written as formulas.
#pragma once

#include <optional>

#include "ir/rewriter.h"
#include "passes/legalize/math/formula.h"

namespace picokernel::passes {

/// Runs `expand(op, operands, result dtype)` on every elementwise op; without an answer it stays.
template <class F>
ir::Module expand_formulas(const ir::Module& m, F&& expand) {
  return ir::Rewriter(m).run(
      [&](ir::Rewriter& r, ir::OpId id) -> std::optional<std::vector<ir::ValueId>> {
        const ir::Op& op = m.ops[id];
        if (!ir::info(op.opcode).elementwise()) return std::nullopt;
        math::Formula formula(r.builder());
        math::Values operands;
        for (const ir::ValueId v : r.mapped(op.operands)) operands.push_back(formula.of(v));
        const std::optional<math::Value> made = expand(op, operands, m.type(op.results[0]).dtype);
        if (!made) return std::nullopt;
        return {{formula.emit(*made)}};
      });
}

/// The unsigned type of as many bits.
constexpr DType unsigned_of(DType t) {
  constexpr DType types[] = {DType::u8, DType::u16, DType::u32, DType::u32, DType::u64};
  return types[size_of(t) / 2];
}

}  // namespace picokernel::passes
