// Casts, comparisons, floats, and the dispatch over ops. What each means is stated by ir/eval.cpp.
#include "backend/cpu/emit_ops.h"

#include <algorithm>
#include <cmath>

#include <llvm/IR/Intrinsics.h>

#include "support/check.h"

namespace picokernel::backend::cpu {

using ir::Opcode;

void set_attributes(llvm::Function& f, const Target& target) {
  f.setDoesNotThrow();
  // LLVM aligns a stack only if it may take a register to find it again: spilled vectors would
  // cross cache lines.
  f.addFnAttr("frame-pointer", "all");
  f.setUWTableKind(llvm::UWTableKind::Async);  // for debuggers and profilers
  f.addFnAttr("target-cpu", target.cpu);
  f.addFnAttr("prefer-vector-width", std::to_string(target.vector_bits));
}

llvm::Type* OpEmitter::type(DType t, unsigned lanes) const {
  llvm::LLVMContext& c = module_.getContext();
  // Half types are their bits: nothing is computed with them but conversions.
  llvm::Type* element = is_bool(t)        ? llvm::Type::getInt1Ty(c)
                        : t == DType::f32 ? llvm::Type::getFloatTy(c)
                        : t == DType::f64
                            ? llvm::Type::getDoubleTy(c)
                            : llvm::Type::getIntNTy(c, static_cast<unsigned>(size_of(t)) * 8);
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, lanes);
}

llvm::Constant* OpEmitter::constant(ir::Scalar s, unsigned lanes) const {
  llvm::Type* t = type(s.dtype, lanes);
  if (is_float(s.dtype) && !is_half(s.dtype)) {
    const bool single = s.dtype == DType::f32;
    const llvm::APInt bits(single ? 32 : 64, single ? s.bits & 0xffffffff : s.bits);
    return llvm::ConstantFP::get(
        t, llvm::APFloat(single ? llvm::APFloat::IEEEsingle() : llvm::APFloat::IEEEdouble(), bits));
  }
  const unsigned width = t->getScalarSizeInBits();
  return llvm::ConstantInt::get(t, llvm::APInt(64, s.bits).trunc(width));
}

namespace {

llvm::Type* with_element(llvm::Type* like, llvm::Type* element) {
  return like->getWithNewType(element);
}

llvm::Value* bits_of_float(llvm::IRBuilder<>& b, llvm::Value* v) {
  return b.CreateBitCast(
      v, with_element(v->getType(), b.getIntNTy(v->getType()->getScalarSizeInBits())));
}
llvm::Value* zero(llvm::Value* like) { return llvm::Constant::getNullValue(like->getType()); }

}  // namespace

llvm::Value* OpEmitter::cast(Builder& b, Value* v, DType from, DType to) {
  if (from == to) return v;
  if (is_half(from) || is_half(to)) return cast_half(b, v, from, to);
  llvm::Type* t = with_element(v->getType(), type(to));
  const bool is_signed_from = is_signed(from);
  if (is_bool(to)) return is_float(from) ? b.CreateFCmpUNE(v, zero(v)) : b.CreateICmpNE(v, zero(v));
  if (is_float(from)) {
    if (is_float(to)) return to == DType::f64 ? b.CreateFPExt(v, t) : b.CreateFPTrunc(v, t);
    return float_to_int(b, v, from, to);
  }
  if (is_float(to)) return is_signed_from ? b.CreateSIToFP(v, t) : b.CreateUIToFP(v, t);
  return is_signed_from ? b.CreateSExtOrTrunc(v, t) : b.CreateZExtOrTrunc(v, t);
}

// Saturates, and gives 0 for NaN. LLVM's intrinsics that do so take vectors apart.
llvm::Value* OpEmitter::float_to_int(Builder& b, Value* v, DType from, DType to) {
  const auto bits = static_cast<unsigned>(8 * size_of(to));
  const unsigned digits = bits - is_signed(to);
  const double past = std::ldexp(1.0, static_cast<int>(digits));  // the largest integer + 1
  const bool max_is_exact = digits <= (from == DType::f32 ? 24 : 53);
  const auto number = [&](double x) { return llvm::ConstantFP::get(v->getType(), x); };
  // x86's own maximum and minimum: of NaN and a bound, the bound.
  Value* low = number(is_signed(to) ? -past : 0);
  Value* x = b.CreateSelect(b.CreateFCmpOGT(v, low), v, low);
  if (max_is_exact) {
    Value* high = number(past - 1);
    x = b.CreateSelect(b.CreateFCmpOLT(x, high), x, high);
  }
  // There are no conversions to less than 32 bits.
  llvm::Type* t = with_element(v->getType(), type(to));
  llvm::Type* wide = with_element(v->getType(), b.getIntNTy(std::max(32u, bits)));
  const bool is_signed_wide = is_signed(to) || wide != t;
  Value* r = is_signed_wide ? b.CreateFPToSI(x, wide) : b.CreateFPToUI(x, wide);
  if (wide != t) r = b.CreateTrunc(r, t);
  if (!max_is_exact) {
    const uint64_t max = ~uint64_t{0} >> (64 - digits);
    r = b.CreateSelect(b.CreateFCmpOGE(v, number(past)), llvm::ConstantInt::get(t, max), r);
  }
  if (is_signed(to)) r = b.CreateSelect(b.CreateFCmpUNO(v, v), zero(r), r);
  return r;
}

llvm::Value* OpEmitter::cast_half(Builder& b, Value* v, DType from, DType to) {
  llvm::Type* half = with_element(v->getType(), b.getHalfTy());
  if (from == DType::f16 && to == DType::f32)
    return b.CreateFPExt(b.CreateBitCast(v, half), with_element(v->getType(), b.getFloatTy()));
  PK_CHECK(from == DType::f32 && to == DType::f16, "expand_halves has not run");
  return b.CreateBitCast(b.CreateFPTrunc(v, half), with_element(v->getType(), b.getInt16Ty()));
}

llvm::Value* OpEmitter::compare(Builder& b, Opcode opcode, Value* x, Value* y, DType t) {
  using P = llvm::CmpInst::Predicate;
  const auto predicate = [&](P floating, P signed_, P unsigned_) {
    return b.CreateCmp(is_float(t) ? floating : is_signed(t) ? signed_ : unsigned_, x, y);
  };
  if (opcode == Opcode::eq) return predicate(P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ);
  if (opcode == Opcode::ne) return predicate(P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE);
  if (opcode == Opcode::lt) return predicate(P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT);
  if (opcode == Opcode::le) return predicate(P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE);
  if (opcode == Opcode::gt) return predicate(P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT);
  if (opcode == Opcode::ge) return predicate(P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE);
  PK_UNREACHABLE(ir::info(opcode).name);
}

llvm::Value* OpEmitter::test(Builder& b, Opcode opcode, Value* x, DType t) {
  PK_CHECK(is_float(t), ir::info(opcode).name);
  if (opcode == Opcode::isnan) return b.CreateFCmpUNO(x, zero(x));
  if (opcode == Opcode::signbit) {
    Value* bits = bits_of_float(b, x);
    return b.CreateICmpSLT(bits, zero(bits));
  }
  Value* magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  llvm::Constant* infinity = llvm::ConstantFP::getInfinity(x->getType());
  if (opcode == Opcode::isinf) return b.CreateFCmpOEQ(magnitude, infinity);
  if (opcode == Opcode::isfinite) return b.CreateFCmpOLT(magnitude, infinity);
  PK_UNREACHABLE(ir::info(opcode).name);
}

// Equal operands differ in the sign of zero at most: or-ing the bits gives the smaller, and-ing the
// larger.
llvm::Value* OpEmitter::float_extreme(Builder& b, Value* x, Value* y, DType, bool smaller,
                                      bool skip_nan) {
  // The order of operands decides what comes out with a NaN: y for minimum, x for fmin.
  Value *first = skip_nan ? y : x, *second = skip_nan ? x : y;
  Value* nearer = b.CreateSelect(
      smaller ? b.CreateFCmpOLT(first, second) : b.CreateFCmpOGT(first, second), first, second);
  Value *x_bits = bits_of_float(b, x), *y_bits = bits_of_float(b, y);
  Value* equal_bits = smaller ? b.CreateOr(x_bits, y_bits) : b.CreateAnd(x_bits, y_bits);
  Value* value =
      b.CreateSelect(b.CreateFCmpOEQ(x, y), b.CreateBitCast(equal_bits, x->getType()), nearer);
  return b.CreateSelect(b.CreateFCmpUNO(x, zero(x)), skip_nan ? y : x, value);
}

llvm::Value* OpEmitter::boolean(Builder& b, Opcode opcode, std::span<Value* const> x) {
  if (opcode == Opcode::add || opcode == Opcode::or_ || opcode == Opcode::maximum ||
      opcode == Opcode::fmax)
    return b.CreateOr(x[0], x[1]);
  if (opcode == Opcode::mul || opcode == Opcode::and_ || opcode == Opcode::minimum ||
      opcode == Opcode::fmin)
    return b.CreateAnd(x[0], x[1]);
  if (opcode == Opcode::xor_) return b.CreateXor(x[0], x[1]);
  if (opcode == Opcode::not_) return b.CreateNot(x[0]);
  PK_UNREACHABLE(ir::info(opcode).name);
}

llvm::Value* OpEmitter::floating(Builder& b, Opcode opcode, std::span<Value* const> x, DType t) {
  const auto unary = [&](llvm::Intrinsic::ID id) { return b.CreateUnaryIntrinsic(id, x[0]); };
  if (opcode == Opcode::add) return b.CreateFAdd(x[0], x[1]);
  if (opcode == Opcode::sub) return b.CreateFSub(x[0], x[1]);
  if (opcode == Opcode::mul) return b.CreateFMul(x[0], x[1]);
  if (opcode == Opcode::div) return b.CreateFDiv(x[0], x[1]);
  if (opcode == Opcode::fma)
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {x[0]->getType()}, {x[0], x[1], x[2]});
  if (opcode == Opcode::neg) return b.CreateFNeg(x[0]);
  if (opcode == Opcode::abs) return unary(llvm::Intrinsic::fabs);
  if (opcode == Opcode::minimum) return float_extreme(b, x[0], x[1], t, true, false);
  if (opcode == Opcode::maximum) return float_extreme(b, x[0], x[1], t, false, false);
  if (opcode == Opcode::fmin) return float_extreme(b, x[0], x[1], t, true, true);
  if (opcode == Opcode::fmax) return float_extreme(b, x[0], x[1], t, false, true);
  if (opcode == Opcode::copysign)
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x[0], x[1]);
  if (opcode == Opcode::floor) return unary(llvm::Intrinsic::floor);
  if (opcode == Opcode::ceil) return unary(llvm::Intrinsic::ceil);
  if (opcode == Opcode::trunc) return unary(llvm::Intrinsic::trunc);
  if (opcode == Opcode::rint) return unary(llvm::Intrinsic::roundeven);
  if (opcode == Opcode::sqrt) return unary(llvm::Intrinsic::sqrt);
  PK_UNREACHABLE(ir::info(opcode).name);
}

llvm::Value* OpEmitter::same(Builder& b, Opcode opcode, std::span<Value* const> x, DType t) {
  switch (kind_of(t)) {
    case DTypeKind::boolean:
      return boolean(b, opcode, x);
    case DTypeKind::signed_integer:
    case DTypeKind::unsigned_integer:
      return integer(b, opcode, x, t);
    case DTypeKind::floating:
      return floating(b, opcode, x, t);
    case DTypeKind::complex:
      break;
  }
  PK_UNREACHABLE();
}

llvm::Value* OpEmitter::emit(Builder& b, Opcode opcode, std::span<Value* const> x, DType from,
                             DType to) {
  if (opcode == Opcode::cast) return cast(b, x[0], from, to);
  if (opcode == Opcode::bitcast)
    return b.CreateBitCast(x[0], with_element(x[0]->getType(), type(to)));
  switch (ir::info(opcode).rule) {
    case ir::Rule::same:
    case ir::Rule::math:
      return same(b, opcode, x, from);
    case ir::Rule::compare:
      return compare(b, opcode, x[0], x[1], from);
    case ir::Rule::test:
      return test(b, opcode, x[0], from);
    case ir::Rule::count:
      return popcount(b, x[0], from);
    case ir::Rule::select:
      return b.CreateSelect(x[0], x[1], x[2]);
    case ir::Rule::explicit_:
    case ir::Rule::none:
    case ir::Rule::custom:
      break;
  }
  PK_UNREACHABLE(ir::info(opcode).name);
}

llvm::Function* OpEmitter::helper(const std::string& name, Value* like, size_t operands,
                                  bool& fresh) {
  llvm::Function* f = module_.getFunction(name);
  fresh = f == nullptr;
  if (!fresh) return f;
  llvm::Type* t = like->getType();
  const std::vector<llvm::Type*> parameters(operands, t);
  f = llvm::Function::Create(llvm::FunctionType::get(t, parameters, false),
                             llvm::Function::InternalLinkage, name, module_);
  set_attributes(*f, target_);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->setDoesNotAccessMemory();
  f->setWillReturn();
  return f;
}

// A function of the allow-list, lane by lane.
llvm::Value* OpEmitter::call_by_lane(Builder& b, const char* name, std::span<Value* const> operands,
                                     DType t) {
  llvm::Type* element = type(t);
  const std::vector<llvm::Type*> parameters(operands.size(), element);
  llvm::FunctionCallee callee =
      module_.getOrInsertFunction(name, llvm::FunctionType::get(element, parameters, false));
  auto* external = llvm::cast<llvm::Function>(callee.getCallee());
  external->setDoesNotThrow();
  external->setDoesNotAccessMemory();
  external->setWillReturn();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(operands[0]->getType());
  if (vector == nullptr)
    return b.CreateCall(callee, llvm::ArrayRef(operands.data(), operands.size()));

  const unsigned lanes = vector->getNumElements();
  bool fresh = false;
  llvm::Function* f = helper(external->getName().str() + ".x" + std::to_string(lanes), operands[0],
                             operands.size(), fresh);
  if (fresh) {
    auto* entry = llvm::BasicBlock::Create(module_.getContext(), "entry", f);
    auto* loop = llvm::BasicBlock::Create(module_.getContext(), "loop", f);
    auto* done = llvm::BasicBlock::Create(module_.getContext(), "done", f);
    Builder h(entry);
    std::vector<Value*> arrays;
    for (llvm::Argument& a : f->args()) {
      arrays.push_back(h.CreateAlloca(a.getType()));
      h.CreateStore(&a, arrays.back());
    }
    h.CreateBr(loop);
    h.SetInsertPoint(loop);
    llvm::PHINode* lane = h.CreatePHI(h.getInt64Ty(), 2);
    std::vector<Value*> scalars;
    for (Value* array : arrays)
      scalars.push_back(h.CreateLoad(element, h.CreateGEP(element, array, lane)));
    h.CreateStore(h.CreateCall(callee, scalars), h.CreateGEP(element, arrays[0], lane));
    Value* next = h.CreateAdd(lane, h.getInt64(1));
    lane->addIncoming(h.getInt64(0), entry);
    lane->addIncoming(next, loop);
    h.CreateCondBr(h.CreateICmpULT(next, h.getInt64(lanes)), loop, done);
    h.SetInsertPoint(done);
    h.CreateRet(h.CreateLoad(f->getReturnType(), arrays[0]));
  }
  return b.CreateCall(f, llvm::ArrayRef(operands.data(), operands.size()));
}

}  // namespace picokernel::backend::cpu
