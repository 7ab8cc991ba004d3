// Scalar code: parameters, memory, for, while and if, and the loops round rows.
#include "backend/cpu/emit_function.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "backend/cpu/emit_rows.h"
#include "support/check.h"

namespace picokernel::backend::cpu {

using ir::Opcode;
using ir::ValueId;

namespace {
constexpr uint64_t kTile = 64;  // points a side
}

bool is_local(const ir::Module& m, const ir::Op& alloc) {
  const ir::Op* count = m.def(alloc.operands[0]);
  return m.type(alloc.results[0]).space == ir::Space::local && count != nullptr &&
         count->opcode == Opcode::constant;
}

llvm::Type* memory_type(llvm::IRBuilder<>& b, const OpEmitter& ops, DType t, unsigned lanes) {
  llvm::Type* element = is_bool(t) ? b.getInt8Ty() : ops.type(t);
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, lanes);
}

FunctionEmitter::FunctionEmitter(const ir::Module& m, llvm::Module& out, OpEmitter& ops,
                                 const Target& target, const std::string& name)
    : m_(m),
      out_(out),
      ops_(ops),
      target_(target),
      entry_(out.getContext()),
      b_(out.getContext()),
      scalars_(m.values.size()) {
  llvm::Type* pointer = llvm::PointerType::get(out.getContext(), 0);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(out.getContext()),
                                       {pointer, pointer, pointer}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, out);
  function_->setDSOLocal(true);
  set_attributes(*function_, target);
  constexpr const char* kNames[] = {"params", "lo", "hi"};
  for (unsigned i = 0; i < 3; ++i) function_->getArg(i)->setName(kNames[i]);
  auto* entry = llvm::BasicBlock::Create(out.getContext(), "entry", function_);
  llvm::BasicBlock* start = new_block("start");
  exit_ = new_block("exit");
  entry_.SetInsertPoint(llvm::BranchInst::Create(start, entry));
  b_.SetInsertPoint(start);
}

void FunctionEmitter::finish() {
  b_.CreateBr(exit_);
  exit_->moveAfter(&function_->back());
  b_.SetInsertPoint(exit_);
  // Stores past the caches are not ordered by the join of the threads.
  if (fence_ && target_.x86)
    b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, llvm::ArrayRef<llvm::Type*>(),
                       llvm::ArrayRef<Value*>());
  b_.CreateRetVoid();
}

llvm::BasicBlock* FunctionEmitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(out_.getContext(), name, function_);
}

llvm::Value* FunctionEmitter::slot(Value* array, size_t index, llvm::Type* type) {
  return entry_.CreateLoad(type,
                           entry_.CreateConstInBoundsGEP1_64(entry_.getInt64Ty(), array, index));
}

llvm::Value* FunctionEmitter::scalar(ValueId v) {
  Value*& value = scalars_[v.value];
  if (value != nullptr) return value;
  if (const ir::Op* op = m_.def(v)) {
    PK_CHECK(is_pure(m_, *op), "a value is used before it is computed");
    if (op->regions.empty())
      pure(entry_, *op);
    else
      before_start(*op);
    return scalars_[v.value];
  }
  const auto params = m_.params();
  const auto it = std::ranges::find(params, v);
  PK_CHECK(it != params.end(), "a region's parameter is used outside of it");
  const ir::Type& type = m_.type(v);
  Value* params_array = function_->getArg(0);
  const auto index = static_cast<size_t>(it - params.begin());
  if (type.kind == ir::TypeKind::ptr)
    value = slot(params_array, index, entry_.getPtrTy());
  else if (is_float(type.dtype))
    value = slot(params_array, index, ops_.type(type.dtype));  // the low bytes come first
  else
    value = is_bool(type.dtype)
                ? entry_.CreateICmpNE(slot(params_array, index, entry_.getInt64Ty()),
                                      entry_.getInt64(0))
                : entry_.CreateTrunc(slot(params_array, index, entry_.getInt64Ty()),
                                     ops_.type(type.dtype));
  return value;
}

std::vector<llvm::Value*> FunctionEmitter::scalars(std::span<const ValueId> values) {
  std::vector<Value*> list;
  for (const ValueId v : values) list.push_back(scalar(v));
  return list;
}

void FunctionEmitter::pure(llvm::IRBuilder<>& b, const ir::Op& op) {
  const ValueId result = op.results[0];
  if (op.opcode == Opcode::constant) {
    set(result, ops_.constant(op.scalar()));
    return;
  }
  const std::vector<Value*> operands = scalars(op.operands);
  set(result,
      ops_.emit(b, op.opcode, operands, m_.type(op.operands.back()).dtype, m_.type(result).dtype));
}

void FunctionEmitter::before_start(const ir::Op& op) {
  for (const ValueId v : outer_operands(m_, op)) scalar(v);
  llvm::Instruction* to_start = &*entry_.GetInsertPoint();
  llvm::BasicBlock* start = to_start->getSuccessor(0);
  const llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(to_start->getParent());
  to_start->eraseFromParent();
  this->op(op);
  entry_.SetInsertPoint(b_.CreateBr(start));
}

llvm::Value* FunctionEmitter::address(llvm::IRBuilder<>& b, ValueId pointer, Value* offset) {
  return b.CreateGEP(memory_type(b, ops_, m_.type(pointer).dtype), scalar(pointer), offset);
}

llvm::Value* FunctionEmitter::load(llvm::IRBuilder<>& b, DType t, Value* address) {
  Value* v = b.CreateAlignedLoad(memory_type(b, ops_, t), address, llvm::Align(1));
  return is_bool(t) ? b.CreateICmpNE(v, b.getInt8(0)) : v;
}

std::vector<llvm::Value*> FunctionEmitter::block(ir::BlockId id) {
  for (const ir::OpId o : m_.blocks[id].ops) {
    if (m_.ops[o].opcode == Opcode::yield) return scalars(m_.ops[o].operands);
    op(m_.ops[o]);
  }
  return {};
}

void FunctionEmitter::run_ops(std::span<const ir::OpId> ops) {
  for (const ir::OpId id : ops) op(m_.ops[id]);
}

void FunctionEmitter::op(const ir::Op& op) {
  if (ir::info(op.opcode).pure()) {
    if (scalars_[op.results[0].value] == nullptr) pure(b_, op);
  } else if (op.opcode == Opcode::load) {
    set(op.results[0], load(b_, m_.type(op.results[0]).dtype,
                            address(b_, op.operands[0], scalar(op.operands[1]))));
  } else if (op.opcode == Opcode::store) {
    const DType t = m_.type(op.operands[0]).dtype;
    Value* v = scalar(op.operands[0]);
    if (is_bool(t)) v = b_.CreateZExt(v, b_.getInt8Ty());
    b_.CreateAlignedStore(v, address(b_, op.operands[1], scalar(op.operands[2])), llvm::Align(1));
  } else if (op.opcode == Opcode::alloc) {
    alloc(op);
  } else if (op.opcode == Opcode::parallel) {
    const std::vector<Value*> hi = scalars(op.operands), lo(hi.size(), b_.getInt64(0));
    parallel({op}, lo, hi);
  } else if (op.opcode == Opcode::for_) {
    run_for({op});
  } else if (op.opcode == Opcode::while_) {
    run_while({op});
  } else if (op.opcode == Opcode::if_) {
    run_if({op});
  } else if (op.opcode == Opcode::return_) {
    return_values(op);
  } else if (ir::info(op.opcode).atomic()) {
    atomic(op);
  } else {
    PK_UNREACHABLE(ir::info(op.opcode).name);
  }
}

// pk_alloc's memory lives until the launch ends; a null pointer ends it at once. Local memory, of a
// constant size, is on the stack.
void FunctionEmitter::alloc(const ir::Op& op) {
  if (is_local(m_, op)) {
    set(op.results[0], entry_.CreateAlloca(memory_type(b_, ops_, m_.type(op.results[0]).dtype),
                                           entry_.getInt64(m_.def(op.operands[0])->attribute)));
    return;
  }
  Value* count =
      b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, scalar(op.operands[0]), b_.getInt64(1));
  llvm::FunctionCallee callee =
      out_.getOrInsertFunction("pk_alloc", b_.getPtrTy(), b_.getInt64Ty(), b_.getInt64Ty());
  llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();
  Value* memory =
      b_.CreateCall(callee, {count, b_.getInt64(size_of(m_.type(op.results[0]).dtype))});
  llvm::BasicBlock* next = new_block("allocated");
  b_.CreateCondBr(b_.CreateIsNull(memory), exit_, next);
  b_.SetInsertPoint(next);
  set(op.results[0], memory);
}

// Result i goes, as ir::Scalar's bits, to where the slot i behind the parameters points.
void FunctionEmitter::return_values(const ir::Op& op) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const DType t = m_.type(op.operands[i]).dtype;
    Value* v = scalar(op.operands[i]);
    if (is_float(t)) v = b_.CreateBitCast(v, b_.getIntNTy(bits_of(t)));
    v = is_signed(t) ? b_.CreateSExt(v, b_.getInt64Ty()) : b_.CreateZExt(v, b_.getInt64Ty());
    b_.CreateStore(v, slot(function_->getArg(0), m_.params().size() + i, b_.getPtrTy()));
  }
}

void FunctionEmitter::run_for(ir::ForView loop) {
  Value *from = scalar(loop.from()), *to = scalar(loop.to()), *step = scalar(loop.step());
  const std::vector<Value*> inits = scalars(loop.inits());
  const auto& params = m_.blocks[loop.body()].params;
  llvm::BasicBlock *before = b_.GetInsertBlock(), *head = new_block("for"),
                   *body = new_block("for.body"), *exit = new_block("for.end");
  b_.CreateBr(head);

  b_.SetInsertPoint(head);
  std::vector<llvm::PHINode*> carried;
  llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2);
  index->addIncoming(from, before);
  set(params[0], index);
  for (size_t i = 0; i < inits.size(); ++i) {
    carried.push_back(b_.CreatePHI(inits[i]->getType(), 2));
    carried.back()->addIncoming(inits[i], before);
    set(params[i + 1], carried.back());
  }
  Value* none = b_.getInt64(0);
  Value* up = b_.CreateAnd(b_.CreateICmpSGT(step, none), b_.CreateICmpSLT(index, to));
  Value* down = b_.CreateAnd(b_.CreateICmpSLT(step, none), b_.CreateICmpSGT(index, to));
  b_.CreateCondBr(b_.CreateOr(up, down), body, exit);

  b_.SetInsertPoint(body);
  const std::vector<Value*> yields = block(loop.body());
  Value* next = b_.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_with_overflow, index, step);
  llvm::BasicBlock* latch = b_.GetInsertBlock();
  index->addIncoming(b_.CreateExtractValue(next, 0), latch);
  for (size_t i = 0; i < yields.size(); ++i) carried[i]->addIncoming(yields[i], latch);
  // An index that would leave 64 bits is past any bound.
  b_.CreateCondBr(b_.CreateExtractValue(next, 1), exit, head);

  exit->moveAfter(latch);
  b_.SetInsertPoint(exit);
  for (size_t i = 0; i < yields.size(); ++i) {
    llvm::PHINode* result = b_.CreatePHI(yields[i]->getType(), 2);
    result->addIncoming(carried[i], head);
    result->addIncoming(yields[i], latch);
    set(loop.op.results[i], result);
  }
}

void FunctionEmitter::run_while(ir::WhileView loop) {
  const std::vector<Value*> inits = scalars(loop.inits());
  llvm::BasicBlock *before = b_.GetInsertBlock(), *head = new_block("while"),
                   *body = new_block("while.body"), *exit = new_block("while.end");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  std::vector<llvm::PHINode*> carried;
  for (size_t i = 0; i < inits.size(); ++i) {
    carried.push_back(b_.CreatePHI(inits[i]->getType(), 2));
    carried.back()->addIncoming(inits[i], before);
    set(m_.blocks[loop.condition()].params[i], carried.back());
    set(m_.blocks[loop.body()].params[i], carried.back());
    set(loop.op.results[i], carried.back());
  }
  Value* condition = block(loop.condition())[0];
  b_.CreateCondBr(condition, body, exit);
  b_.SetInsertPoint(body);
  const std::vector<Value*> yields = block(loop.body());
  for (size_t i = 0; i < yields.size(); ++i)
    carried[i]->addIncoming(yields[i], b_.GetInsertBlock());
  b_.CreateBr(head);
  exit->moveAfter(b_.GetInsertBlock());
  b_.SetInsertPoint(exit);
}

void FunctionEmitter::run_if(ir::IfView branch) {
  llvm::BasicBlock *yes = new_block("then"), *no = new_block("else"), *join = new_block("if.end");
  b_.CreateCondBr(scalar(branch.condition()), yes, no);
  b_.SetInsertPoint(yes);
  const std::vector<Value*> then_values = block(branch.then_block());
  llvm::BasicBlock* then_end = b_.GetInsertBlock();
  b_.CreateBr(join);
  b_.SetInsertPoint(no);
  const std::vector<Value*> else_values = block(branch.else_block());
  llvm::BasicBlock* else_end = b_.GetInsertBlock();
  b_.CreateBr(join);
  join->moveAfter(else_end);
  b_.SetInsertPoint(join);
  for (size_t i = 0; i < then_values.size(); ++i) {
    llvm::PHINode* result = b_.CreatePHI(then_values[i]->getType(), 2);
    result->addIncoming(then_values[i], then_end);
    result->addIncoming(else_values[i], else_end);
    set(branch.op.results[i], result);
  }
}

void FunctionEmitter::counted_loop(Value* from, Value* to, Value* step, const char* name,
                                   const std::function<void(Value*)>& body) {
  llvm::BasicBlock *before = b_.GetInsertBlock(), *loop = new_block(name), *exit = new_block("end");
  b_.CreateCondBr(b_.CreateICmpSLT(from, to), loop, exit);
  b_.SetInsertPoint(loop);
  llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2, "i");
  index->addIncoming(from, before);
  body(index);
  Value* next = b_.CreateAdd(index, step);
  index->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, to), loop, exit);
  exit->moveAfter(b_.GetInsertBlock());
  b_.SetInsertPoint(exit);
}

// An access that runs across the rows meets each of its cache lines in as many rows as the line has
// elements: within a tile, lines stay in the nearest cache until then.
void FunctionEmitter::tiles(ir::ParallelView loop, const BodyAnalysis& analysis,
                            std::span<Value* const> lo, std::span<Value* const> hi) {
  Value* const side = b_.getInt64(kTile);
  const ValueId outer = *(m_.blocks[loop.body()].params.end() - 2);
  const auto end = [&](Value* start, Value* limit) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(start, side), limit);
  };
  counted_loop(lo[0], hi[0], side, "tiles", [&](Value* row) {
    Value* last_row = end(row, hi[0]);
    counted_loop(lo[1], hi[1], side, "tile", [&](Value* column) {
      Value* last_column = end(column, hi[1]);
      counted_loop(row, last_row, b_.getInt64(1), "outer", [&](Value* index) {
        set(outer, index);
        RowEmitter(*this, loop, analysis).emit(column, last_column);
      });
    });
  });
}

BodyAnalysis FunctionEmitter::run_parallel(const ir::Op& op) {
  std::vector<Value*> lo, hi;
  for (size_t d = 0; d < op.operands.size(); ++d) {
    lo.push_back(slot(function_->getArg(1), d, entry_.getInt64Ty()));
    hi.push_back(slot(function_->getArg(2), d, entry_.getInt64Ty()));
  }
  return parallel({op}, lo, hi);
}

BodyAnalysis FunctionEmitter::parallel(ir::ParallelView loop, std::span<Value* const> lo,
                                       std::span<Value* const> hi) {
  BodyAnalysis analysis = analyse(m_, loop.op, target_);
  const auto& params = m_.blocks[loop.body()].params;
  const std::function<void(size_t)> dimension = [&](size_t d) {
    if (analysis.tiled && d + 2 == params.size()) {
      tiles(loop, analysis, lo.last(2), hi.last(2));
    } else if (d + 1 == params.size() && analysis.vectorised) {
      RowEmitter(*this, loop, analysis).emit(lo[d], hi[d]);
    } else if (d == params.size()) {
      block(loop.body());
    } else {
      counted_loop(lo[d], hi[d], b_.getInt64(1), "outer", [&](Value* index) {
        set(params[d], index);
        dimension(d + 1);
      });
    }
  };
  dimension(0);
  return analysis;
}

}  // namespace picokernel::backend::cpu
