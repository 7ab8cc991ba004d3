// Integer ops: wrapping arithmetic, division that never traps, shifts past the width, powers.
#include <llvm/IR/Intrinsics.h>

#include "backend/cpu/emit_ops.h"
#include "support/check.h"

namespace picokernel::backend::cpu {

using ir::Opcode;

llvm::Value* OpEmitter::integer(Builder& b, Opcode opcode, std::span<Value* const> x, DType t) {
  const auto binary = [&](llvm::Intrinsic::ID id) {
    return b.CreateBinaryIntrinsic(id, x[0], x[1]);
  };
  const bool sign = is_signed(t);
  if (opcode == Opcode::add) return b.CreateAdd(x[0], x[1]);
  if (opcode == Opcode::sub) return b.CreateSub(x[0], x[1]);
  if (opcode == Opcode::mul) return b.CreateMul(x[0], x[1]);
  if (opcode == Opcode::floordiv) return int_divmod(b, x[0], x[1], t, false);
  if (opcode == Opcode::mod) return int_divmod(b, x[0], x[1], t, true);
  if (opcode == Opcode::pow) return int_pow(b, x[0], x[1], t);
  if (opcode == Opcode::neg) return b.CreateNeg(x[0]);
  if (opcode == Opcode::abs) return magnitude(b, x[0], t);
  if (opcode == Opcode::gcd) return gcd(b, x[0], x[1], t);
  if (opcode == Opcode::minimum || opcode == Opcode::fmin)
    return binary(sign ? llvm::Intrinsic::smin : llvm::Intrinsic::umin);
  if (opcode == Opcode::maximum || opcode == Opcode::fmax)
    return binary(sign ? llvm::Intrinsic::smax : llvm::Intrinsic::umax);
  if (opcode == Opcode::and_) return b.CreateAnd(x[0], x[1]);
  if (opcode == Opcode::or_) return b.CreateOr(x[0], x[1]);
  if (opcode == Opcode::xor_) return b.CreateXor(x[0], x[1]);
  if (opcode == Opcode::not_) return b.CreateNot(x[0]);
  if (opcode == Opcode::shl) return shift(b, x[0], x[1], t, true);
  if (opcode == Opcode::shr) return shift(b, x[0], x[1], t, false);
  PK_UNREACHABLE(ir::info(opcode).name);
}

// Of MIN it is MIN, which is the magnitude as an unsigned integer.
llvm::Value* OpEmitter::magnitude(Builder& b, Value* x, DType t) {
  return is_signed(t) ? b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b.getFalse()) : x;
}

llvm::Value* OpEmitter::popcount(Builder& b, Value* x, DType t) {
  Value* bits = b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, magnitude(b, x, t));
  return b.CreateTrunc(bits, x->getType()->getWithNewType(b.getInt8Ty()));
}

// No vector ISA has Euclid's divisions.
llvm::Value* OpEmitter::gcd(Builder& b, Value* x, Value* y, DType t) {
  llvm::Type* word = x->getType()->getWithNewType(b.getInt64Ty());
  Value* const operands[] = {b.CreateZExt(magnitude(b, x, t), word),
                             b.CreateZExt(magnitude(b, y, t), word)};
  return b.CreateTrunc(call_by_lane(b, "pk_gcd", operands, DType::u64), x->getType());
}

// A negative amount is a large unsigned one.
llvm::Value* OpEmitter::shift(Builder& b, Value* x, Value* y, DType t, bool left) {
  llvm::Type* type = x->getType();
  const unsigned width = type->getScalarSizeInBits();
  if (!left && is_signed(t))
    return b.CreateAShr(x, b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, y,
                                                   llvm::ConstantInt::get(type, width - 1)));
  Value* inside = b.CreateICmpULT(y, llvm::ConstantInt::get(type, width));
  return b.CreateSelect(inside, left ? b.CreateShl(x, y) : b.CreateLShr(x, y),
                        llvm::Constant::getNullValue(type));
}

// Divisors 0 and -1 are replaced by 1 before dividing: neither a zero divisor nor MIN / -1 reaches
// an instruction.
llvm::Value* OpEmitter::int_divmod(Builder& b, Value* x, Value* y, DType t, bool remainder) {
  llvm::Type* type = x->getType();
  Value* const none = llvm::Constant::getNullValue(type);
  Value* is_zero = b.CreateICmpEQ(y, none);
  Value* is_minus =
      is_signed(t) ? b.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(type)) : nullptr;
  Value* special = is_minus != nullptr ? b.CreateOr(is_zero, is_minus) : is_zero;
  Value* divisor = b.CreateSelect(special, llvm::ConstantInt::get(type, 1), y);
  Value* q = floor_quotient(b, x, divisor, t);
  // Both special divisors leave 0, as 1 does.
  if (remainder) return b.CreateSub(x, b.CreateMul(q, divisor));
  q = b.CreateSelect(is_zero, none, q);
  return is_minus != nullptr ? b.CreateSelect(is_minus, b.CreateNeg(x), q) : q;
}

llvm::Value* OpEmitter::floor_quotient(Builder& b, Value* x, Value* y, DType t) {
  llvm::Type* type = x->getType();
  const unsigned width = type->getScalarSizeInBits();
  const bool sign = is_signed(t);
  // No vector ISA divides integers. A quotient of floats that hold both exactly has the exact
  // floor: where x / y is no integer, it is at least 1 / |y| away from one, and the rounding error
  // is at most 2^-24 or 2^-53 of |x| / |y|. A constant divisor becomes a multiplication anyway.
  if (type->isVectorTy() && width <= 32 && !llvm::isa<llvm::Constant>(y)) {
    llvm::Type* wide = type->getWithNewType(width == 32 ? b.getDoubleTy() : b.getFloatTy());
    const auto convert = [&](Value* v) {
      return sign ? b.CreateSIToFP(v, wide) : b.CreateUIToFP(v, wide);
    };
    Value* q = b.CreateFDiv(convert(x), convert(y));
    if (sign) q = b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, q);
    llvm::Type* word = type->getWithNewType(b.getInt32Ty());
    return b.CreateTrunc(sign || width < 32 ? b.CreateFPToSI(q, word) : b.CreateFPToUI(q, word),
                         type);
  }
  if (!sign) return b.CreateUDiv(x, y);
  Value* q = b.CreateSDiv(x, y);
  Value* r = b.CreateSub(x, b.CreateMul(q, y));
  Value* const none = llvm::Constant::getNullValue(type);
  Value* below = b.CreateAnd(b.CreateICmpNE(r, none), b.CreateICmpSLT(b.CreateXor(r, y), none));
  return b.CreateAdd(q, b.CreateSExt(below, type));
}

// Squaring, until no lane has exponent bits left.
llvm::Value* OpEmitter::int_pow(Builder& b, Value* x, Value* y, DType t) {
  llvm::Type* type = x->getType();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  const std::string name = "pk_pow." + std::string(text_name(t)) + ".x" +
                           std::to_string(vector ? vector->getNumElements() : 1);
  bool fresh = false;
  llvm::Function* f = helper(name, x, 2, fresh);
  if (fresh) {
    auto* entry = llvm::BasicBlock::Create(module_.getContext(), "entry", f);
    auto* loop = llvm::BasicBlock::Create(module_.getContext(), "loop", f);
    auto* done = llvm::BasicBlock::Create(module_.getContext(), "done", f);
    Builder h(entry);
    llvm::Constant *none = llvm::Constant::getNullValue(type),
                   *one = llvm::ConstantInt::get(type, 1);
    Value *base = f->getArg(0), *exponent = f->getArg(1);
    Value* negative = is_signed(t) ? h.CreateICmpSLT(exponent, none) : nullptr;
    Value* steps = negative != nullptr ? h.CreateSelect(negative, none, exponent) : exponent;
    h.CreateBr(loop);

    h.SetInsertPoint(loop);
    llvm::PHINode *result = h.CreatePHI(type, 2), *power = h.CreatePHI(type, 2),
                  *left = h.CreatePHI(type, 2);
    Value* odd = h.CreateICmpNE(h.CreateAnd(left, one), none);
    Value* next_result = h.CreateSelect(odd, h.CreateMul(result, power), result);
    Value* next_power = h.CreateMul(power, power);
    Value* next_left = h.CreateLShr(left, one);
    result->addIncoming(one, entry);
    result->addIncoming(next_result, loop);
    power->addIncoming(base, entry);
    power->addIncoming(next_power, loop);
    left->addIncoming(steps, entry);
    left->addIncoming(next_left, loop);
    Value* any = vector != nullptr ? h.CreateOrReduce(next_left) : next_left;
    h.CreateCondBr(h.CreateICmpNE(any, llvm::Constant::getNullValue(any->getType())), loop, done);

    h.SetInsertPoint(done);
    Value* value = next_result;
    if (negative != nullptr) {
      llvm::Constant* minus = llvm::Constant::getAllOnesValue(type);
      Value* is_odd = h.CreateICmpNE(h.CreateAnd(exponent, one), none);
      Value* of_minus = h.CreateSelect(is_odd, minus, one);
      Value* inverse = h.CreateSelect(h.CreateICmpEQ(base, one), one,
                                      h.CreateSelect(h.CreateICmpEQ(base, minus), of_minus, none));
      value = h.CreateSelect(negative, inverse, value);
    }
    h.CreateRet(value);
  }
  return b.CreateCall(f, {x, y});
}

}  // namespace picokernel::backend::cpu
