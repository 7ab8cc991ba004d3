// Algebra: a table of rules with side conditions. A rule holds bit for bit on its types (NaN
// payloads apart), since results must not depend on which passes ran.
#include <bit>
#include <cmath>

#include "ir/eval.h"
#include "ir/rewriter.h"
#include "passes/common/passes.h"

namespace picokernel::passes {
namespace {

using namespace ir;

// One op of the new module, not yet made, and what its operands are.
struct Match {
  Builder& b;
  const Module& m;
  Opcode opcode;
  std::span<const ValueId> operands;
  DType dtype;  // of the result
  TypeId type;  // of the result

  const Op* def(size_t i) const { return m.def(operands[i]); }
  bool is(size_t i, Opcode opcode) const { return def(i) != nullptr && def(i)->opcode == opcode; }
  std::optional<Scalar> constant(size_t i) const {
    if (!is(i, Opcode::constant)) return std::nullopt;
    return def(i)->scalar();
  }
  bool equals(size_t i, int64_t v) const {
    const auto c = constant(i);
    return c && *c == ir::cast(Scalar::of(v), c->dtype);
  }
  bool same(size_t i, size_t j) const { return operands[i] == operands[j]; }
  bool real() const { return !is_bool(dtype); }
  ValueId splat(int64_t v) const { return b.constant(ir::cast(Scalar::of(v), dtype)); }
};
using Result = std::optional<ValueId>;

struct Rule {
  Opcode opcode;
  Result (*apply)(const Match&);
};

// x op x -> x
Result idempotent(const Match& r) { return r.same(0, 1) ? Result(r.operands[0]) : std::nullopt; }
// op(op(x)) -> x
Result involution(const Match& r) {
  return r.is(0, r.opcode) ? Result(r.def(0)->operands[0]) : std::nullopt;
}
// op(op(x)) -> op(x)
Result projection(const Match& r) {
  return r.is(0, r.opcode) ? Result(r.operands[0]) : std::nullopt;
}

std::optional<double> as_double(Scalar s) {
  if (!is_float(s.dtype)) return std::nullopt;
  return ir::cast(s, DType::f64).as<double>();
}

// x op x -> what it is for all x; floats: only where NaN gives it too
Result same_sides(const Match& r) {
  if (!r.same(0, 1)) return std::nullopt;
  const bool holds = r.opcode == Opcode::eq || r.opcode == Opcode::le || r.opcode == Opcode::ge;
  const bool maybe_nan = is_float(r.m.type(r.operands[0]).dtype);
  if (maybe_nan && r.opcode != Opcode::lt && r.opcode != Opcode::gt) return std::nullopt;
  return r.b.constant(Scalar::of(holds));
}

constexpr Rule kRules[] = {
    {Opcode::eq, same_sides},
    {Opcode::ne, same_sides},
    {Opcode::lt, same_sides},
    {Opcode::le, same_sides},
    {Opcode::gt, same_sides},
    {Opcode::ge, same_sides},
    // x + 0 -> x: integers; floats only for -0.0, since -0.0 + 0.0 is 0.0.
    {Opcode::add,
     [](const Match& r) -> Result {
       if (is_integer(r.dtype) && r.equals(1, 0)) return r.operands[0];
       if (is_integer(r.dtype) && r.equals(0, 0)) return r.operands[1];
       const auto c = r.constant(1);
       if (c && is_float(r.dtype) && *c == ir::cast(Scalar::of(-0.0), r.dtype))
         return r.operands[0];
       return std::nullopt;
     }},
    // x - 0 -> x; x - x -> 0 for integers (floats: NaN)
    {Opcode::sub,
     [](const Match& r) -> Result {
       if (r.equals(1, 0)) return r.operands[0];
       if (is_integer(r.dtype) && r.same(0, 1)) return r.splat(0);
       return std::nullopt;
     }},
    // x * 1 -> x; integers: x * 0 -> 0 (floats: NaN, signs)
    {Opcode::mul,
     [](const Match& r) -> Result {
       if (r.equals(1, 1)) return r.operands[0];
       if (r.equals(0, 1)) return r.operands[1];
       if (is_integer(r.dtype) && (r.equals(0, 0) || r.equals(1, 0))) return r.splat(0);
       return std::nullopt;
     }},
    // x / 1 -> x; x / 2^k -> x * 2^-k where both are normal: exact
    {Opcode::div,
     [](const Match& r) -> Result {
       if (r.equals(1, 1)) return r.operands[0];
       const auto c = r.constant(1);
       const auto v = c ? as_double(*c) : std::nullopt;
       int exponent = 0;
       const int limit = r.dtype == DType::f16 ? 13 : r.dtype == DType::f64 ? 1021 : 125;
       if (!v || *v == 0 || !std::isfinite(*v) || std::fabs(std::frexp(*v, &exponent)) != 0.5 ||
           std::abs(exponent) > limit)
         return std::nullopt;
       const ValueId inverse = r.b.constant(ir::cast(Scalar::of(1 / *v), r.dtype));
       return r.b.value(Opcode::mul, {r.operands[0], inverse});
     }},
    // x // 1 -> x for integers
    {Opcode::floordiv,
     [](const Match& r) -> Result {
       return is_integer(r.dtype) && r.equals(1, 1) ? Result(r.operands[0]) : std::nullopt;
     }},
    {Opcode::neg, involution},
    {Opcode::not_, involution},
    {Opcode::abs, projection},
    {Opcode::floor, projection},
    {Opcode::ceil, projection},
    {Opcode::trunc, projection},
    {Opcode::rint, projection},
    {Opcode::minimum, idempotent},
    {Opcode::maximum, idempotent},
    {Opcode::fmin, idempotent},
    {Opcode::fmax, idempotent},
    {Opcode::and_, idempotent},
    {Opcode::or_, idempotent},
    {Opcode::xor_,
     [](const Match& r) -> Result { return r.same(0, 1) ? Result(r.splat(0)) : std::nullopt; }},
    {Opcode::shl,
     [](const Match& r) -> Result {
       return r.equals(1, 0) ? Result(r.operands[0]) : std::nullopt;
     }},
    {Opcode::shr,
     [](const Match& r) -> Result {
       return r.equals(1, 0) ? Result(r.operands[0]) : std::nullopt;
     }},
    // select(c, x, x) -> x; select(not c, x, y) -> select(c, y, x); a constant condition picks
    {Opcode::select,
     [](const Match& r) -> Result {
       if (r.same(1, 2)) return r.operands[1];
       if (const auto c = r.constant(0)) return r.operands[c->bits != 0 ? 1 : 2];
       if (r.is(0, Opcode::not_))
         return r.b.value(Opcode::select, {r.def(0)->operands[0], r.operands[2], r.operands[1]});
       return std::nullopt;
     }},
    // A cast to the type at hand; back from a wider type of the same kind, which lost nothing. Of
    // integers the lower bits are all that counts, so one in between that keeps them can go.
    {Opcode::cast,
     [](const Match& r) -> Result {
       const DType from = r.m.type(r.operands[0]).dtype;
       if (from == r.dtype) return r.operands[0];
       if (!r.is(0, Opcode::cast)) return std::nullopt;
       const ValueId inner = r.def(0)->operands[0];
       const bool widened = kind_of(from) == kind_of(r.dtype) && size_of(from) > size_of(r.dtype);
       const DType first = r.m.type(inner).dtype;
       if (first == r.dtype && widened) return inner;
       if (!is_integer(first) || !is_integer(from) || !is_integer(r.dtype) ||
           size_of(from) < size_of(r.dtype))
         return std::nullopt;
       return first == r.dtype ? inner : r.b.cast(inner, r.dtype);
     }},
};

// A write broadcasts by itself: of a choice that is known it takes what was chosen, be it smaller.
bool write_choice(Rewriter& r, const Op& op) {
  const ValueId value = r[op.operands[1]];
  const Op* def = r.to().def(value);
  if (def == nullptr || def->opcode != Opcode::select) return false;
  const Op* condition = r.to().def(def->operands[0]);
  if (condition == nullptr || condition->opcode != Opcode::constant) return false;
  r.builder().write(r[op.operands[0]], def->operands[condition->scalar().bits != 0 ? 1 : 2]);
  return true;
}

}  // namespace

Module simplify(const Module& m, const Target&) {
  return Rewriter(m).run([](Rewriter& r, OpId id) -> std::optional<std::vector<ValueId>> {
    const Op& op = r.from().ops[id];
    if (op.opcode == Opcode::write && write_choice(r, op)) return std::vector<ValueId>{};
    if (!info(op.opcode).elementwise()) return std::nullopt;
    const std::vector<ValueId> operands = r.mapped(op.operands);
    const Type& type = r.from().type(op.results[0]);
    const Match match{r.builder(), r.to(),     op.opcode,
                      operands,    type.dtype, r.from().values[op.results[0]].type};
    for (const Rule& rule : kRules) {
      if (rule.opcode != op.opcode) continue;
      const Result result = rule.apply(match);
      // Dropping an operand may drop a dimension that only it had: then the rule does not hold.
      if (result && r.to().type(*result) == type) return {{*result}};
    }
    return std::nullopt;
  });
}

}  // namespace picokernel::passes
