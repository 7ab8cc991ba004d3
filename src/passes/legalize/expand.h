// What the expansions share: short names for building elementwise ops of one type.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ir/eval.h"
#include "ir/rewriter.h"

namespace picokernel::passes {

// Builds the replacement of one op. Operands are values of the new module.
class Expansion {
 public:
  Expansion(ir::Rewriter& r, const ir::Op& op)
      : b_(r.builder()),
        m_(r.to()),
        operands_(r.mapped(op.operands)),
        dtype_(m_.type(operands_.back()).dtype) {}

  ir::ValueId operand(size_t i) const { return operands_[i]; }
  /// Of the operands.
  DType dtype() const { return dtype_; }
  ir::ValueId op(ir::Opcode opcode, std::vector<ir::ValueId> operands) {
    return b_.value(opcode, std::move(operands));
  }
  ir::ValueId cast(ir::ValueId v, DType dtype) { return b_.cast(v, dtype); }
  ir::ValueId bitcast(ir::ValueId v, DType dtype) {
    return b_.value(ir::Opcode::bitcast, {v}, 0, {{.dtype = dtype}});
  }
  ir::ValueId constant(ir::Scalar s) { return b_.constant(s); }
  /// `v` in the operands' dtype.
  template <class T>
  ir::ValueId constant(T v) {
    return b_.constant(ir::cast(ir::Scalar::of(v), dtype_));
  }
  std::optional<ir::Scalar> as_constant(ir::ValueId v) const {
    const ir::Op* def = m_.def(v);
    if (def == nullptr || def->opcode != ir::Opcode::constant) return std::nullopt;
    return def->scalar();
  }

 private:
  ir::Builder& b_;
  const ir::Module& m_;
  std::vector<ir::ValueId> operands_;
  DType dtype_;
};

/// Runs `expand(Expansion&, const Op&)` on every elementwise op; an invalid value keeps the op.
template <class F>
ir::Module expand_ops(const ir::Module& m, F&& expand) {
  return ir::Rewriter(m).run(
      [&](ir::Rewriter& r, ir::OpId id) -> std::optional<std::vector<ir::ValueId>> {
        const ir::Op& op = r.from().ops[id];
        if (!ir::info(op.opcode).elementwise()) return std::nullopt;
        Expansion e(r, op);
        const ir::ValueId made = expand(e, op);
        if (!made.valid()) return std::nullopt;
        return {{made}};
      });
}

}  // namespace picokernel::passes
