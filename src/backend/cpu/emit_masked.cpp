// Regions with accesses, and `for`: lanes that do not take part are masked in every access.
#include "backend/cpu/emit_rows.h"

namespace picokernel::backend::cpu {

using ir::ValueId;

// Each side runs where some lane asks for it.
void RowEmitter::masked_branch(const Group& g, ir::IfView view) {
  const Units condition = operand(g, view.condition());
  const size_t count = view.op.results.size();
  std::array<std::vector<Units>, 2> given;
  for (const size_t side : {0, 1}) {
    const ir::BlockId block = side == 0 ? view.then_block() : view.else_block();
    if (f_.m_.blocks[block].ops.empty()) continue;
    Group taken = g;
    taken.active = condition;
    if (side == 1)
      for (Value*& mask : taken.active) mask = b_.CreateNot(mask);
    taken.active = both(taken.active, g.active);
    llvm::BasicBlock *before = b_.GetInsertBlock(), *run = new_block("side"),
                     *join = new_block("side.end");
    b_.CreateCondBr(any_lane(taken.active), run, join);
    b_.SetInsertPoint(run);
    given[side] = region(taken, block);
    llvm::BasicBlock* end = b_.GetInsertBlock();
    b_.CreateBr(join);
    b_.SetInsertPoint(join);
    for (Units& units : given[side])
      for (Value*& v : units) {
        llvm::PHINode* phi = b_.CreatePHI(v->getType(), 2);
        phi->addIncoming(llvm::Constant::getNullValue(v->getType()), before);
        phi->addIncoming(v, end);
        v = phi;
      }
  }
  for (size_t i = 0; i < count; ++i) {
    Units& result = values_[view.op.results[i].value];
    result.clear();
    for (unsigned u = 0; u < g.units; ++u)
      result.push_back(b_.CreateSelect(condition[u], given[0][i][u], given[1][i][u]));
  }
}

// Bounds and step are the same for all lanes.
void RowEmitter::masked_for(const Group& g, ir::ForView view) {
  Value *from = f_.scalar(view.from()), *to = f_.scalar(view.to()), *step = f_.scalar(view.step());
  const auto& params = f_.m_.blocks[view.body()].params;
  std::vector<Units> initial, carried;
  for (const ValueId v : view.inits()) initial.push_back(operand(g, v));
  llvm::BasicBlock *before = b_.GetInsertBlock(), *head = new_block("for"),
                   *body = new_block("for.body"), *exit = new_block("for.end");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  const auto phi = [&](Value* first) {
    llvm::PHINode* p = b_.CreatePHI(first->getType(), 2);
    p->addIncoming(first, before);
    return p;
  };
  llvm::PHINode* const index = phi(from);
  // An index that would leave 64 bits is past any bound.
  llvm::PHINode* const ended = phi(b_.getFalse());
  for (const Units& first : initial) {
    Units& phis = carried.emplace_back();
    for (Value* v : first) phis.push_back(phi(v));
  }
  Value* none = b_.getInt64(0);
  Value* up = b_.CreateAnd(b_.CreateICmpSGT(step, none), b_.CreateICmpSLT(index, to));
  Value* down = b_.CreateAnd(b_.CreateICmpSLT(step, none), b_.CreateICmpSGT(index, to));
  b_.CreateCondBr(b_.CreateAnd(b_.CreateOr(up, down), b_.CreateNot(ended)), body, exit);

  b_.SetInsertPoint(body);
  f_.set(params[0], index);
  for (size_t i = 0; i < carried.size(); ++i) values_[params[i + 1].value] = carried[i];
  const std::vector<Units> next = region(g, view.body());
  Value* sum = b_.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_with_overflow, index, step);
  llvm::BasicBlock* latch = b_.GetInsertBlock();
  index->addIncoming(b_.CreateExtractValue(sum, 0), latch);
  ended->addIncoming(b_.CreateExtractValue(sum, 1), latch);
  for (size_t i = 0; i < carried.size(); ++i)
    for (unsigned u = 0; u < g.units; ++u)
      llvm::cast<llvm::PHINode>(carried[i][u])->addIncoming(next[i][u], latch);
  b_.CreateBr(head);
  exit->moveAfter(latch);
  b_.SetInsertPoint(exit);
  for (size_t i = 0; i < carried.size(); ++i) values_[view.op.results[i].value] = carried[i];
}

llvm::Value* RowEmitter::lane_addresses(const Group& g, ValueId pointer, ValueId offset,
                                        unsigned unit) {
  llvm::Type* element = memory_type(b_, f_.ops_, pointee(pointer));
  return b_.CreateGEP(element, f_.scalar(pointer), operand(g, offset)[unit]);
}

llvm::Value* RowEmitter::masked_load(const Group& g, ValueId pointer, ValueId offset,
                                     unsigned unit) {
  llvm::Type* type = memory_type(b_, f_.ops_, pointee(pointer), g.lanes);
  return b_.CreateMaskedGather(type, lane_addresses(g, pointer, offset, unit), llvm::Align(1),
                               g.active[unit], llvm::Constant::getNullValue(type));
}

void RowEmitter::masked_store(const Group& g, const ir::Op& op) {
  Units values = operand(g, op.operands[0]);
  const DType t = pointee(op.operands[1]);
  for (unsigned u = 0; u < g.units; ++u) {
    Value* v = values[u];
    if (is_bool(t)) v = b_.CreateZExt(v, memory_type(b_, f_.ops_, t, g.lanes));
    b_.CreateMaskedScatter(v, lane_addresses(g, op.operands[1], op.operands[2], u), llvm::Align(1),
                           g.active[u]);
  }
}

}  // namespace picokernel::backend::cpu
