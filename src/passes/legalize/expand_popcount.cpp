// Counts of bits side by side: in pairs, in fours, in bytes; a product sums the bytes into the
// highest.
#include "passes/legalize/expand.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {

using namespace ir;

Module expand_popcount(const Module& m, const Target&) {
  return expand_ops(m, [&](Expansion& e, const Op& op) -> ValueId {
    if (op.opcode != Opcode::popcount) return {};
    const ValueId positive =
        is_signed(e.dtype()) ? e.op(Opcode::abs, {e.operand(0)}) : e.operand(0);
    const unsigned width = static_cast<unsigned>(size_of(e.dtype())) * 8;
    const DType type = width == 8    ? DType::u8
                       : width == 16 ? DType::u16
                       : width == 32 ? DType::u32
                                     : DType::u64;
    const auto constant = [&](uint64_t v) { return e.constant(ir::cast(Scalar::of(v), type)); };
    const auto shifted = [&](ValueId v, unsigned by) {
      const ValueId count = constant(by);
      return e.op(Opcode::shr, {v, count});
    };
    const ValueId bits = e.cast(positive, type);
    const ValueId alternate = constant(0x5555555555555555u);
    const ValueId odd_bits = e.op(Opcode::and_, {shifted(bits, 1), alternate});
    const ValueId pairs = e.op(Opcode::sub, {bits, odd_bits});
    const ValueId low_pairs = constant(0x3333333333333333u);
    const ValueId even_pairs = e.op(Opcode::and_, {pairs, low_pairs});
    const ValueId odd_pairs = e.op(Opcode::and_, {shifted(pairs, 2), low_pairs});
    const ValueId fours = e.op(Opcode::add, {even_pairs, odd_pairs});
    const ValueId both_fours = e.op(Opcode::add, {fours, shifted(fours, 4)});
    const ValueId low_fours = constant(0x0f0f0f0f0f0f0f0fu);
    const ValueId bytes = e.op(Opcode::and_, {both_fours, low_fours});
    if (width == 8) return bytes;
    const ValueId ones = constant(0x0101010101010101u);
    const ValueId sum = e.op(Opcode::mul, {bytes, ones});
    return e.cast(shifted(sum, width - 8), DType::u8);
  });
}

}  // namespace picokernel::passes
