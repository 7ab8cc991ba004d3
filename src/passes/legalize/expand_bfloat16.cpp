// Conversions of bfloat16 in integers: LLVM's instruction flushes subnormals, and most targets have
// none.
#include "passes/legalize/expand.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {

using namespace ir;

namespace {

// float32 -> bfloat16: the upper half of the bits, rounded to nearest, ties to even. A NaN keeps
// its upper half, made quiet.
ValueId to_bfloat16(Expansion& e, ValueId single) {
  const ValueId bits = e.bitcast(single, DType::u32);
  const ValueId sixteen = e.constant(Scalar::of(uint32_t{16}));
  const ValueId upper = e.op(Opcode::shr, {bits, sixteen});
  const ValueId odd = e.op(Opcode::and_, {upper, e.constant(Scalar::of(uint32_t{1}))});
  const ValueId below_half = e.constant(Scalar::of(uint32_t{0x7fff}));
  const ValueId bias = e.op(Opcode::add, {odd, below_half});
  const ValueId sum = e.op(Opcode::add, {bits, bias});
  const ValueId rounded = e.op(Opcode::shr, {sum, sixteen});
  const ValueId quiet = e.op(Opcode::or_, {upper, e.constant(Scalar::of(uint32_t{0x40}))});
  const ValueId nan = e.op(Opcode::isnan, {single});
  const ValueId chosen = e.op(Opcode::select, {nan, quiet, rounded});
  return e.bitcast(e.cast(chosen, DType::u16), DType::bf16);
}

ValueId from_bfloat16(Expansion& e, ValueId half) {
  const ValueId bits = e.cast(e.bitcast(half, DType::u16), DType::u32);
  return e.bitcast(e.op(Opcode::shl, {bits, e.constant(Scalar::of(uint32_t{16}))}), DType::f32);
}

}  // namespace

Module expand_bfloat16(const Module& m, const Target&) {
  return expand_ops(m, [&](Expansion& e, const Op& op) -> ValueId {
    if (op.opcode != Opcode::cast) return {};
    const DType from = e.dtype(), to = m.type(op.results[0]).dtype;
    if (from == DType::f32 && to == DType::bf16) return to_bfloat16(e, e.operand(0));
    if (from == DType::bf16 && to == DType::f32) return from_bfloat16(e, e.operand(0));
    return {};
  });
}

}  // namespace picokernel::passes
