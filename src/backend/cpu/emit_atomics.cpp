// Atomics: one instruction where the processor has it, else a loop of compare and swap. Nothing but
// the step itself is ordered.
#include "backend/cpu/emit_function.h"
#include "support/check.h"

namespace picokernel::backend::cpu {

using ir::Opcode;
using RMW = llvm::AtomicRMWInst;

namespace {

constexpr auto kOrder = llvm::AtomicOrdering::Monotonic;

std::optional<RMW::BinOp> instruction(Opcode opcode, DType t) {
  const bool integer = is_integer(t), sign = is_signed(t);
  switch (opcode) {
    case Opcode::atomic_add:
      return integer ? std::optional(RMW::Add) : std::nullopt;
    case Opcode::atomic_minimum:
    case Opcode::atomic_fmin:
      return integer ? std::optional(sign ? RMW::Min : RMW::UMin) : std::nullopt;
    case Opcode::atomic_maximum:
    case Opcode::atomic_fmax:
      return integer ? std::optional(sign ? RMW::Max : RMW::UMax) : std::nullopt;
    case Opcode::atomic_and:
      return RMW::And;
    case Opcode::atomic_or:
      return RMW::Or;
    case Opcode::atomic_xor:
      return RMW::Xor;
    case Opcode::atomic_inc:
      return RMW::UIncWrap;
    case Opcode::atomic_dec:
      return RMW::UDecWrap;
    case Opcode::atomic_exchange:
      return RMW::Xchg;
    default:
      return std::nullopt;
  }
}

Opcode combining(Opcode opcode) {
  switch (opcode) {
    case Opcode::atomic_add:
      return Opcode::add;
    case Opcode::atomic_minimum:
      return Opcode::minimum;
    case Opcode::atomic_maximum:
      return Opcode::maximum;
    case Opcode::atomic_fmin:
      return Opcode::fmin;
    case Opcode::atomic_fmax:
      return Opcode::fmax;
    default:
      PK_UNREACHABLE(ir::info(opcode).name);
  }
}

}  // namespace

void FunctionEmitter::atomic(const ir::Op& op) {
  const DType t = m_.type(op.results[0]).dtype;
  Value* const at = address(b_, op.operands[0], scalar(op.operands[1]));
  Value* const operand = scalar(op.operands[2]);
  const llvm::Align align(size_of(t));
  if (const auto one = instruction(op.opcode, t)) {
    set(op.results[0], b_.CreateAtomicRMW(*one, at, operand, align, kOrder));
    return;
  }
  llvm::Type* const bits = b_.getIntNTy(bits_of(t));
  const auto swap = [&](Value* expected, Value* desired) {
    return b_.CreateAtomicCmpXchg(at, b_.CreateBitCast(expected, bits),
                                  b_.CreateBitCast(desired, bits), align, kOrder, kOrder);
  };
  if (op.opcode == Opcode::atomic_cas) {
    Value* const was = b_.CreateExtractValue(swap(operand, scalar(op.operands[3])), 0);
    set(op.results[0], b_.CreateBitCast(was, ops_.type(t)));
    return;
  }
  llvm::LoadInst* const first = b_.CreateAlignedLoad(bits, at, align);
  first->setAtomic(kOrder);
  llvm::BasicBlock *before = b_.GetInsertBlock(), *loop = new_block("atomic"),
                   *exit = new_block("atomic.end");
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* const seen = b_.CreatePHI(bits, 2);
  seen->addIncoming(first, before);
  Value* const old = b_.CreateBitCast(seen, ops_.type(t));
  Value* const operands[] = {old, operand};
  Value* const made = ops_.emit(b_, combining(op.opcode), operands, t, t);
  Value* const tried = swap(old, made);
  seen->addIncoming(b_.CreateExtractValue(tried, 0), b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateExtractValue(tried, 1), exit, loop);
  exit->moveAfter(b_.GetInsertBlock());
  b_.SetInsertPoint(exit);
  set(op.results[0], old);
}

}  // namespace picokernel::backend::cpu
