// Arithmetic that could overflow becomes unsigned arithmetic, which wraps: in C and its family
// signed overflow is undefined. Types narrower than int are computed in int there, which holds
// all of their sums and products but those of u16.
#include "passes/legalize/expand_formula.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {
namespace {

using namespace ir;
using math::Value;
using math::Values;

std::optional<Value> expand(const Op& op, const Values& v, DType to) {
  const bool narrow = size_of(to) < 4;
  const DType type = narrow ? DType::u32 : unsigned_of(to);
  const auto wide = [&](Value x) { return cast(x, type); };
  if (op.opcode == Opcode::abs) {
    if (is_unsigned(to)) return v[0];
    return cast(select(v[0] < 0, -wide(v[0]), wide(v[0])), to);
  }
  if (type == to || (narrow && op.opcode != Opcode::shl && op.opcode != Opcode::mul))
    return std::nullopt;
  if (op.opcode == Opcode::neg) return cast(-wide(v[0]), to);
  if (op.opcode == Opcode::add) return cast(wide(v[0]) + wide(v[1]), to);
  if (op.opcode == Opcode::sub) return cast(wide(v[0]) - wide(v[1]), to);
  if (op.opcode == Opcode::shl) return cast(wide(v[0]) << wide(v[1]), to);
  if (op.opcode == Opcode::mul && (!narrow || to == DType::u16))
    return cast(wide(v[0]) * wide(v[1]), to);
  return std::nullopt;
}

}  // namespace

Module expand_overflow(const Module& m, const Target&) {
  return expand_formulas(m, [](const Op& op, const Values& v, DType to) -> std::optional<Value> {
    return is_integer(to) ? expand(op, v, to) : std::nullopt;
  });
}

}  // namespace picokernel::passes
