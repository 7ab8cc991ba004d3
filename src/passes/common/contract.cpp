// What fastmath allows: fused products and sums, products for quotients. Decided in the IR, so that
// all backends that run it have the same bits. The functions of expand_math come later and stay
// exact.
#include <cmath>

#include "ir/eval.h"
#include "ir/rewriter.h"
#include "passes/common/passes.h"

namespace picokernel::passes {
namespace {

using namespace ir;

std::vector<size_t> count_uses(const Module& m) {
  std::vector<size_t> uses(m.values.size(), 0);
  walk(m, [&](OpId id) {
    for (const ValueId v : m.ops[id].operands) ++uses[v.value];
  });
  return uses;
}

class Contraction {
 public:
  explicit Contraction(const Module& m) : m_(m), uses_(count_uses(m)) {}

  std::optional<std::vector<ValueId>> operator()(Rewriter& r, OpId id) const {
    const Op& op = m_.ops[id];
    if (op.results.size() != 1) return std::nullopt;
    const DType t = m_.type(op.results[0]).dtype;
    if (t != DType::f32 && t != DType::f64) return std::nullopt;  // halves round after each op
    Builder& b = r.builder();
    if (op.opcode == Opcode::add || op.opcode == Opcode::sub) {
      const ValueId x = op.operands[0], y = op.operands[1];
      const bool subtracts = op.opcode == Opcode::sub;
      if (const Op* product = product_of(x)) {
        ValueId addend = r[y];
        if (subtracts) addend = b.value(Opcode::neg, {addend});
        return {{fma(r, r[product->operands[0]], r[product->operands[1]], addend)}};
      }
      if (const Op* product = product_of(y)) {
        ValueId factor = r[product->operands[0]];
        if (subtracts) factor = b.value(Opcode::neg, {factor});
        return {{fma(r, factor, r[product->operands[1]], r[x])}};
      }
    }
    if (op.opcode == Opcode::div) {
      const Op* divisor = m_.def(op.operands[1]);
      if (divisor == nullptr || divisor->opcode != Opcode::constant) return std::nullopt;
      const double inverse = 1 / ir::cast(divisor->scalar(), DType::f64).as<double>();
      const Scalar rounded = ir::cast(Scalar::of(inverse), t);
      const double kept = ir::cast(rounded, DType::f64).as<double>();
      if (!std::isnormal(kept)) return std::nullopt;  // 0, infinities, NaN: another meaning
      return {{b.value(Opcode::mul, {r[op.operands[0]], b.constant(rounded)})}};
    }
    return std::nullopt;
  }

 private:
  // A product that only this sum takes: fused, it costs nothing.
  const Op* product_of(ValueId v) const {
    const Op* def = m_.def(v);
    return def != nullptr && def->opcode == Opcode::mul && uses_[v.value] == 1 ? def : nullptr;
  }
  static ValueId fma(Rewriter& r, ValueId x, ValueId y, ValueId z) {
    return r.builder().value(Opcode::fma, {x, y, z});
  }

  const Module& m_;
  const std::vector<size_t> uses_;
};

}  // namespace

Module contract(const Module& m, const Target&) {
  if (!m.floats.fastmath || m.level == Level::graph) return m;
  return Rewriter(m).run(Contraction(m));
}

}  // namespace picokernel::passes
