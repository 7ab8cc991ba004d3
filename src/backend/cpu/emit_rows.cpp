// The loops of a row, and its body at any number of lanes.
#include "backend/cpu/emit_rows.h"

#include <numeric>

#include <llvm/ADT/bit.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Metadata.h>

#include "support/check.h"

namespace picokernel::backend::cpu {

using ir::Opcode;
using ir::ValueId;

namespace {

constexpr uint64_t kLine = 64;              // bytes that one streaming write should fill
constexpr unsigned kLeastStreamBytes = 16;  // smaller stores past the caches do not exist
constexpr unsigned kStreamBits = 256;
constexpr size_t kOutlined = 48;  // ops of a rare side that make it a function
constexpr size_t kFewOps = 16;    // a body that memory outlasts, index arithmetic included

}  // namespace

void RowEmitter::emit(Value* lo, Value* hi) {
  llvm::BasicBlock *row = f_.new_block("row"), *loops = f_.new_block("loops"),
                   *exit = f_.new_block("row.end");
  // Nothing may be read for an empty row.
  b_.CreateCondBr(b_.CreateICmpSLT(lo, hi), row, exit);
  b_.SetInsertPoint(row);
  before_.SetInsertPoint(b_.CreateBr(loops));
  b_.SetInsertPoint(loops);
  prologue();

  const bool nontemporal =
      std::ranges::any_of(body().ops, [&](ir::OpId id) { return is_nontemporal(id); });
  f_.fence_ |= nontemporal;
  Value* at = lo;
  if (analysis_.masked_loops) {
    masked_pieces(lo, hi, nontemporal);
    at = hi;
  } else if (nontemporal) {
    const auto [head, possible] = alignment(lo, hi);
    llvm::BasicBlock *stream = f_.new_block("stream"), *plain = f_.new_block("plain"),
                     *join = f_.new_block("join");
    b_.CreateCondBr(possible, stream, plain);
    b_.SetInsertPoint(stream);
    Value* aligned = b_.CreateAdd(lo, head);
    rest(lo, aligned);
    Value* streamed = main_loop(aligned, hi, true);
    llvm::BasicBlock* stream_end = b_.GetInsertBlock();
    b_.CreateBr(join);
    b_.SetInsertPoint(plain);
    Value* stored = main_loop(lo, hi, false);
    llvm::BasicBlock* plain_end = b_.GetInsertBlock();
    b_.CreateBr(join);
    join->moveAfter(plain_end);
    b_.SetInsertPoint(join);
    llvm::PHINode* phi = b_.CreatePHI(b_.getInt64Ty(), 2);
    phi->addIncoming(streamed, stream_end);
    phi->addIncoming(stored, plain_end);
    at = phi;
  } else if (analysis_.lanes * analysis_.units > 1) {
    at = main_loop(lo, hi, false);
  }
  if (at != hi) rest(at, hi);
  b_.CreateBr(exit);
  exit->moveAfter(b_.GetInsertBlock());
  b_.SetInsertPoint(exit);
}

void RowEmitter::prologue() {
  affine_[body().params.back().value] = {b_.getInt64(0), b_.getInt64(1)};
  for (const ir::OpId id : body().ops) once(id);
  for (const ir::OpId id : analysis_.hoisted) once(id);
}

// What does not vary of an op: the same for all points of a turn.
void RowEmitter::once(ir::OpId id) {
  const ir::Op& op = f_.m_.ops[id];
  if (op.results.empty()) return;
  switch (analysis_.of(op.results[0]).kind) {
    case Variation::uniform:
      if (op.opcode == Opcode::load)
        f_.set(op.results[0],
               f_.load(before_, pointee(op.operands[0]),
                       f_.address(before_, op.operands[0], f_.scalar(op.operands[1]))));
      else
        f_.pure(place(op.results[0]), op);
      break;
    case Variation::affine:
      affine(op);
      break;
    case Variation::periodic:
    case Variation::varying:
      break;
  }
}

RowEmitter::Affine RowEmitter::affine_of(ValueId v) {
  if (analysis_.of(v).kind == Variation::uniform) return {f_.scalar(v), b_.getInt64(0)};
  return affine_[v.value];
}

void RowEmitter::affine(const ir::Op& op) {
  const Affine x = affine_of(op.operands[0]), y = affine_of(op.operands[1]);
  Affine& r = affine_[op.results[0].value];
  llvm::IRBuilder<>& b = place(op.results[0]);
  if (op.opcode == Opcode::add) {
    r = {b.CreateAdd(x.start, y.start), b.CreateAdd(x.step, y.step)};
  } else if (op.opcode == Opcode::sub) {
    r = {b.CreateSub(x.start, y.start), b.CreateSub(x.step, y.step)};
  } else {
    PK_CHECK(op.opcode == Opcode::mul, ir::info(op.opcode).name);
    const bool left = analysis_.of(op.operands[0]).kind == Variation::affine;
    const Affine& a = left ? x : y;
    Value* factor = left ? y.start : x.start;
    r = {b.CreateMul(a.start, factor), b.CreateMul(a.step, factor)};
  }
}

// On Zen 4, where memory is the limit, streams of 32-byte accesses are a tenth faster than of 64.
// Long bodies are limited by how many elements are in flight: these take whole vectors.
unsigned RowEmitter::stream_lanes() const {
  const bool narrow = f_.target_.vector_bits > kStreamBits && body().ops.size() <= kFewOps;
  return narrow ? std::max(1u, analysis_.lanes * kStreamBits / f_.target_.vector_bits)
                : analysis_.lanes;
}

uint64_t RowEmitter::store_width(ir::OpId id) const {
  const ir::Op& op = f_.m_.ops[id];
  if (op.opcode != Opcode::store) return 0;
  const uint64_t size = size_of(pointee(op.operands[1]));
  if (const Interleaved* all = analysis_.interleaved_with(id)) return size * all->members.size();
  return analysis_.of(op.operands[2]).unit() ? size : 0;
}

bool RowEmitter::is_nontemporal(ir::OpId id) const {
  return analysis_.nontemporal && f_.m_.ops[id].flag() &&
         stream_lanes() * store_width(id) >= kLeastStreamBytes;
}

std::pair<llvm::Value*, llvm::Value*> RowEmitter::alignment(Value* lo, Value* hi) {
  Value *head = nullptr, *possible = nullptr;
  for (const ir::OpId id : body().ops) {
    const ir::Op& op = f_.m_.ops[id];
    if (!is_nontemporal(id)) continue;
    const Interleaved* all = analysis_.interleaved_with(id);
    if (all != nullptr && id != all->at) continue;
    const ir::Op& first = all == nullptr ? op : f_.m_.ops[all->members[0]];
    Value* size = b_.getInt64(store_width(id));
    Value* address =
        b_.CreateAdd(b_.CreatePtrToInt(base(first.operands[1], first.operands[2]), b_.getInt64Ty()),
                     b_.CreateMul(lo, size));
    if (head == nullptr) {
      head = b_.CreateUDiv(b_.CreateAnd(b_.CreateNeg(address), b_.getInt64(kLine - 1)), size);
      Value* left = b_.CreateSub(b_.CreateSub(hi, lo), head);
      possible = b_.CreateICmpSGE(left, b_.getInt64(uint64_t{stream_lanes()} * analysis_.units));
    }
    Value* offset =
        b_.CreateAnd(b_.CreateAdd(address, b_.CreateMul(head, size)), b_.getInt64(kLine - 1));
    possible = b_.CreateAnd(possible, b_.CreateICmpEQ(offset, b_.getInt64(0)));
  }
  return {head, possible};
}

llvm::Value* RowEmitter::main_loop(Value* lo, Value* hi, bool nontemporal) {
  const unsigned lanes = nontemporal ? stream_lanes() : analysis_.lanes;
  const uint64_t step = uint64_t{lanes} * analysis_.units;
  Value* count = b_.CreateSub(hi, lo);
  Value* end = b_.CreateSub(hi, b_.CreateURem(count, b_.getInt64(step)));
  const Patterns repeated = patterns(lo, lanes);
  // Streams like to move on together: where memory is the limit, one vector after the other (each
  // load, then its store) is some 8 % faster than all loads of a stream, then the next stream's.
  const bool in_turn = nontemporal && body().ops.size() <= kFewOps;
  const unsigned units = in_turn ? 1 : analysis_.units;
  f_.counted_loop(lo, end, b_.getInt64(step), "main", [&](Value* index) {
    for (unsigned u = 0; u < analysis_.units; u += units) {
      Value* at = u == 0 ? index : b_.CreateAdd(index, b_.getInt64(uint64_t{u} * lanes));
      group({.index = at,
             .lanes = lanes,
             .units = units,
             .nontemporal = nontemporal,
             .patterns = &repeated,
             .first_unit = u});
    }
  });
  return end;
}

// The elements from lo to hi, however few.
void RowEmitter::rest(Value* lo, Value* hi) {
  const unsigned lanes = analysis_.lanes;
  Value* at = lo;
  // AVX2's masked stores are slow: they are for the last vector only.
  if (lanes > 1 && analysis_.units > 1 && !(analysis_.masked_tail && f_.target_.masks_any_type)) {
    Value* whole = b_.CreateAnd(b_.CreateSub(hi, lo), b_.getInt64(~uint64_t{lanes - 1}));
    at = b_.CreateAdd(lo, whole);
    f_.counted_loop(lo, at, b_.getInt64(lanes), "vector",
                    [&](Value* index) { group({.index = index, .lanes = lanes, .units = 1}); });
  }
  if (analysis_.masked_tail) return masked_loop(at, hi);
  f_.counted_loop(at, hi, b_.getInt64(1), "scalar",
                  [&](Value* index) { group({.index = index, .lanes = 1, .units = 1}); });
}

void RowEmitter::masked_loop(Value* lo, Value* hi) {
  const unsigned lanes = analysis_.lanes;
  f_.counted_loop(lo, hi, b_.getInt64(lanes), "masked", [&](Value* index) {
    Value* active = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(hi, index),
                                             b_.getInt64(lanes));
    group({.index = index, .lanes = lanes, .units = 1, .active = {mask(active)}});
  });
}

// What does not go past the caches lies before and behind what does: one loop takes both, for
// points run in any order.
void RowEmitter::masked_pieces(Value* lo, Value* hi, bool nontemporal) {
  if (!nontemporal) return masked_loop(lo, hi);
  const auto [head, possible] = alignment(lo, hi);
  Value* aligned = b_.CreateSelect(possible, b_.CreateAdd(lo, head), hi);
  Value* end = main_loop(aligned, hi, true);
  f_.counted_loop(b_.getInt64(0), b_.getInt64(2), b_.getInt64(1), "piece", [&](Value* piece) {
    Value* before = b_.CreateIsNull(piece);
    masked_loop(b_.CreateSelect(before, lo, end), b_.CreateSelect(before, aligned, hi));
  });
}

// `active` is from 1 to lanes.
llvm::Value* RowEmitter::mask(Value* active) {
  const unsigned lanes = analysis_.lanes;
  llvm::Type* type = llvm::FixedVectorType::get(b_.getInt1Ty(), lanes);
  if (f_.target_.masks_any_type) {
    llvm::Type* bits = b_.getIntNTy(lanes);
    Value* inactive = b_.CreateTrunc(b_.CreateSub(b_.getInt64(lanes), active), bits);
    return b_.CreateBitCast(b_.CreateLShr(llvm::Constant::getAllOnesValue(bits), inactive), type);
  }
  llvm::Type* element = b_.getIntNTy(f_.target_.vector_bits / lanes);
  llvm::SmallVector<llvm::Constant*, 32> numbers;
  for (unsigned i = 0; i < lanes; ++i) numbers.push_back(llvm::ConstantInt::get(element, i));
  return b_.CreateICmpULT(llvm::ConstantVector::get(numbers),
                          b_.CreateVectorSplat(lanes, b_.CreateTrunc(active, element)));
}

llvm::BasicBlock* RowEmitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(b_.getContext(), name, b_.GetInsertBlock()->getParent());
}

void RowEmitter::group(const Group& g) {
  for (const ir::OpId id : body().ops) op(g, id);
}

void RowEmitter::op(const Group& g, ir::OpId id) {
  const ir::Op& op = f_.m_.ops[id];
  if (const Interleaved* all = g.lanes == 1 ? nullptr : analysis_.interleaved_with(id)) {
    if (id != all->at) return;
    return op.opcode == Opcode::store ? store_interleaved(g, *all) : load_interleaved(g, *all);
  }
  if (op.opcode == Opcode::store) return store(g, id);
  if (op.opcode == Opcode::for_) return masked_for(g, {op});
  if (op.opcode == Opcode::if_)
    return runs_masked(f_.m_, op) ? masked_branch(g, {op}) : branch(g, {op});
  if (op.opcode == Opcode::while_) return loop(g, {op});
  if (!op.results.empty() && analysis_.of(op.results[0]).local) once(id);
  if (op.results.empty() || analysis_.of(op.results[0]).kind != Variation::varying) return;
  Units& result = values_[op.results[0].value];
  if (op.opcode == Opcode::load) {
    result = load(g, op);
    return;
  }
  result.clear();
  std::vector<Units> operands;
  for (const ValueId v : op.operands) operands.push_back(operand(g, v));
  for (unsigned u = 0; u < g.units; ++u) {
    llvm::SmallVector<Value*, 3> x;
    for (const Units& o : operands) x.push_back(o[u]);
    result.push_back(f_.ops_.emit(b_, op.opcode, {x.data(), x.size()},
                                  f_.m_.type(op.operands.back()).dtype,
                                  f_.m_.type(op.results[0]).dtype));
  }
}

std::vector<RowEmitter::Units> RowEmitter::region(const Group& g, ir::BlockId id) {
  std::vector<Units> yields;
  for (const ir::OpId o : f_.m_.blocks[id].ops) {
    op(g, o);
    if (f_.m_.ops[o].opcode == Opcode::yield)
      for (const ValueId v : f_.m_.ops[o].operands) yields.push_back(operand(g, v));
  }
  return yields;
}

RowEmitter::Units RowEmitter::both(const Units& x, const Units& y) {
  if (y.empty()) return x;
  Units masks;
  for (size_t u = 0; u < x.size(); ++u) masks.push_back(b_.CreateAnd(x[u], y[u]));
  return masks;
}

llvm::Value* RowEmitter::any_lane(const Units& masks) {
  Value* any = masks[0];
  for (size_t u = 1; u < masks.size(); ++u) any = b_.CreateOr(any, masks[u]);
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(any->getType());
  if (vector == nullptr) return any;
  return b_.CreateIsNotNull(b_.CreateBitCast(any, b_.getIntNTy(vector->getNumElements())));
}

// The first side runs where some lane asks for it, the second one always: it is what is usual.
void RowEmitter::branch(const Group& g, ir::IfView view) {
  Group taken = g;
  const Units condition = operand(g, view.condition());
  taken.active = both(condition, g.active);
  const std::vector<Units> usual = region(g, view.else_block());
  llvm::BasicBlock *before = b_.GetInsertBlock(), *rare = new_block("rare"),
                   *join = new_block("join");
  b_.CreateCondBr(any_lane(taken.active), rare, join,
                  llvm::MDBuilder(b_.getContext()).createUnlikelyBranchWeights());
  b_.SetInsertPoint(rare);
  const bool outlined = op_count(view.then_block()) > kOutlined;
  std::vector<Units> mixed =
      outlined ? call_side(taken, view.then_block()) : region(taken, view.then_block());
  for (size_t i = 0; i < mixed.size(); ++i)
    for (unsigned u = 0; u < g.units; ++u)
      mixed[i][u] = b_.CreateSelect(condition[u], mixed[i][u], usual[i][u]);
  llvm::BasicBlock* rare_end = b_.GetInsertBlock();
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
  for (size_t i = 0; i < mixed.size(); ++i) {
    Units& result = values_[view.op.results[i].value];
    result.clear();
    for (unsigned u = 0; u < g.units; ++u) {
      llvm::PHINode* phi = b_.CreatePHI(usual[i][u]->getType(), 2);
      phi->addIncoming(usual[i][u], before);
      phi->addIncoming(mixed[i][u], rare_end);
      result.push_back(phi);
    }
  }
}

// The same for regions that compute the same of their inputs, which stand for themselves by number.
std::string RowEmitter::text_of(ir::BlockId region, std::map<ValueId, size_t>& numbers) const {
  std::string text;
  const auto number = [&](ValueId v) {
    text += " " + std::to_string(numbers.try_emplace(v, numbers.size()).first->second) +
            std::string(text_name(f_.m_.type(v).dtype));
  };
  for (const ValueId p : f_.m_.blocks[region].params) number(p);
  for (const ir::OpId id : f_.m_.blocks[region].ops) {
    const ir::Op& op = f_.m_.ops[id];
    text += "\n" + std::string(ir::info(op.opcode).name) + " " + std::to_string(op.attribute);
    for (const ValueId v : op.operands) number(v);
    text += " ->";
    for (const ValueId v : op.results) number(v);
    for (const ir::BlockId inner : op.regions) text += " {" + text_of(inner, numbers) + "}";
  }
  return text;
}

size_t RowEmitter::op_count(ir::BlockId region) const {
  size_t count = 0;
  for (const ir::OpId id : f_.m_.blocks[region].ops) {
    count += f_.m_.ops[id].opcode != Opcode::constant;
    for (const ir::BlockId inner : f_.m_.ops[id].regions) count += op_count(inner);
  }
  return count;
}

// Out of line: the loops stay short, and what several ops of a kernel share, as all of one function
// do, is compiled once. A call costs about as many instructions as there are registers to bring
// back.
std::vector<RowEmitter::Units> RowEmitter::call_side(const Group& g, ir::BlockId side) {
  std::vector<ValueId> inputs;
  std::map<ValueId, size_t> numbers;
  for (const ValueId v : ir::outer_operands(f_.m_, {.regions = {side}})) {
    const ir::Op* def = f_.m_.def(v);
    if (def != nullptr && def->opcode == Opcode::constant) continue;
    if (numbers.try_emplace(v, numbers.size()).second) inputs.push_back(v);
  }
  llvm::Function*& f = f_.ops_.shared_function(std::to_string(g.lanes) + text_of(side, numbers));
  if (f == nullptr) f = side_function(g, side, inputs);

  std::vector<Units> arguments, results;
  for (const ValueId v : inputs) arguments.push_back(operand(g, v));
  for (unsigned u = 0; u < g.units; ++u) {
    llvm::SmallVector<Value*, 8> operands{g.active[u]};
    for (const Units& a : arguments) operands.push_back(a[u]);
    Value* all = b_.CreateCall(f, operands);
    results.resize(all->getType()->getStructNumElements());
    for (unsigned i = 0; i < results.size(); ++i)
      results[i].push_back(b_.CreateExtractValue(all, i));
  }
  return results;
}

llvm::Function* RowEmitter::side_function(const Group& g, ir::BlockId side,
                                          std::span<const ValueId> inputs) {
  const auto type = [&](ValueId v) { return f_.ops_.type(f_.m_.type(v).dtype, g.lanes); };
  llvm::SmallVector<llvm::Type*, 8> parameters{f_.ops_.type(DType::b1, g.lanes)}, results;
  for (const ValueId v : inputs) parameters.push_back(type(v));
  for (const ValueId v : f_.m_.ops[f_.m_.blocks[side].ops.back()].operands)
    results.push_back(type(v));
  llvm::StructType* all = llvm::StructType::get(b_.getContext(), results);
  llvm::Function* f = llvm::Function::Create(llvm::FunctionType::get(all, parameters, false),
                                             llvm::Function::InternalLinkage, "rare", f_.out_);
  set_attributes(*f, f_.target_);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr(llvm::Attribute::Cold);

  const llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(llvm::BasicBlock::Create(b_.getContext(), "entry", f));
  std::vector<Units> outside = std::exchange(values_, std::vector<Units>(values_.size()));
  const bool nested = std::exchange(in_side_, true);
  for (unsigned i = 0; i < inputs.size(); ++i) values_[inputs[i].value] = {f->getArg(i + 1)};
  const Group inside{.index = g.index, .lanes = g.lanes, .units = 1, .active = {f->getArg(0)}};
  const std::vector<Units> yields = region(inside, side);
  Value* result = llvm::PoisonValue::get(all);
  for (unsigned i = 0; i < yields.size(); ++i)
    result = b_.CreateInsertValue(result, yields[i][0], i);
  b_.CreateRet(result);
  in_side_ = nested;
  values_ = std::move(outside);
  return f;
}

// Turns until no lane is left; a lane that has left keeps what it had.
void RowEmitter::loop(const Group& g, ir::WhileView view) {
  llvm::Type* mask_type = f_.ops_.type(DType::b1, g.lanes);
  std::vector<Units> initial, carried;
  for (const ValueId v : view.inits()) initial.push_back(operand(g, v));
  llvm::BasicBlock *before = b_.GetInsertBlock(), *head = new_block("while"),
                   *body = new_block("while.body"), *exit = new_block("while.end");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  Group turn = g;
  turn.active.clear();
  const auto phi = [&](Value* first) {
    llvm::PHINode* p = b_.CreatePHI(first->getType(), 2);
    p->addIncoming(first, before);
    return p;
  };
  for (unsigned u = 0; u < g.units; ++u)
    turn.active.push_back(
        phi(g.active.empty() ? llvm::Constant::getAllOnesValue(mask_type) : g.active[u]));
  for (const Units& first : initial) {
    Units& phis = carried.emplace_back();
    for (Value* v : first) phis.push_back(phi(v));
  }
  const auto bind = [&](std::span<const ValueId> to) {
    for (size_t i = 0; i < carried.size(); ++i) values_[to[i].value] = carried[i];
  };
  bind(f_.m_.blocks[view.condition()].params);
  const Units entered = turn.active;
  turn.active = both(region(turn, view.condition())[0], turn.active);
  b_.CreateCondBr(any_lane(turn.active), body, exit);

  b_.SetInsertPoint(body);
  bind(f_.m_.blocks[view.body()].params);
  const std::vector<Units> next = region(turn, view.body());
  std::vector<Units> kept = carried;
  for (size_t i = 0; i < carried.size(); ++i)
    for (unsigned u = 0; u < g.units; ++u)
      kept[i][u] = b_.CreateSelect(turn.active[u], next[i][u], carried[i][u]);
  llvm::BasicBlock* latch = b_.GetInsertBlock();
  b_.CreateBr(head);
  const auto close = [&](Value* p, Value* v) {
    llvm::cast<llvm::PHINode>(p)->addIncoming(v, latch);
  };
  for (unsigned u = 0; u < g.units; ++u) {
    close(entered[u], turn.active[u]);
    for (size_t i = 0; i < carried.size(); ++i) close(carried[i][u], kept[i][u]);
  }
  exit->moveAfter(latch);
  b_.SetInsertPoint(exit);
  bind(view.op.results);
}

llvm::Value* RowEmitter::splat(Value* scalar, unsigned lanes) {
  if (lanes == 1) return scalar;
  Value*& vector = splats_[{scalar, lanes}];
  if (vector == nullptr) vector = before_.CreateVectorSplat(lanes, scalar);
  return vector;
}

RowEmitter::Units RowEmitter::operand(const Group& g, ValueId v) {
  if (in_side_ && !values_[v.value].empty()) return values_[v.value];
  switch (analysis_.of(v).kind) {
    case Variation::uniform: {
      const bool local = analysis_.of(v).local && g.lanes > 1;
      return Units(g.units, local ? b_.CreateVectorSplat(g.lanes, f_.scalar(v))
                                  : splat(f_.scalar(v), g.lanes));
    }
    case Variation::varying:
      return values_[v.value];
    case Variation::affine:
    case Variation::periodic:
      break;
  }
  const bool periodic = analysis_.of(v).kind == Variation::periodic;
  const Affine a = periodic ? Affine{b_.getInt64(0), b_.getInt64(1)} : affine_[v.value];
  Units units;
  for (unsigned u = 0; u < g.units; ++u) {
    Value* index = b_.CreateAdd(g.index, b_.getInt64(uint64_t{u} * g.lanes));
    Value* first = b_.CreateAdd(a.start, b_.CreateMul(index, a.step));
    if (g.lanes > 1) {
      llvm::SmallVector<llvm::Constant*, 16> numbers;
      for (unsigned i = 0; i < g.lanes; ++i) numbers.push_back(b_.getInt64(i));
      llvm::IRBuilder<>& b = place(v);
      Value* steps =
          b.CreateMul(llvm::ConstantVector::get(numbers), b.CreateVectorSplat(g.lanes, a.step));
      first = b_.CreateAdd(b_.CreateVectorSplat(g.lanes, first), steps);
    }
    if (periodic)
      first = b_.CreateURem(
          first,
          llvm::ConstantInt::get(first->getType(), static_cast<uint64_t>(*analysis_.of(v).step)));
    units.push_back(first);
  }
  return units;
}

// The pointer moved to where index 0 would be.
llvm::Value* RowEmitter::base(ValueId pointer, ValueId offset) {
  if (analysis_.of(offset).local) return f_.address(b_, pointer, affine_of(offset).start);
  Value*& p = bases_[{pointer, offset}];
  if (p == nullptr) p = f_.address(before_, pointer, affine_of(offset).start);
  return p;
}

llvm::Value* RowEmitter::unit_address(const Group& g, ValueId pointer, ValueId offset,
                                      unsigned unit) {
  llvm::Type* type = memory_type(b_, f_.ops_, pointee(pointer));
  Value* first = b_.CreateGEP(type, base(pointer, offset), g.index);
  return unit == 0 ? first : b_.CreateConstGEP1_64(type, first, uint64_t{unit} * g.lanes);
}

std::vector<llvm::Value*> RowEmitter::addresses(const Group& g, ValueId pointer, ValueId offset) {
  llvm::Type* type = memory_type(b_, f_.ops_, pointee(pointer));
  std::vector<Value*> list;
  if (analysis_.of(offset).kind == Variation::varying) {
    for (Value* unit : operand(g, offset))
      for (unsigned lane = 0; lane < g.lanes; ++lane) {
        Value* number = g.lanes == 1 ? unit : b_.CreateExtractElement(unit, uint64_t{lane});
        list.push_back(b_.CreateGEP(type, f_.scalar(pointer), number));
      }
    return list;
  }
  // Four at a time from one register: multiples of the step for each point would not fit into
  // registers.
  constexpr unsigned kTogether = 4;
  Value* step = affine_of(offset).step;
  const auto move = [&](Value* from, unsigned steps) {
    return b_.CreateGEP(type, from, before_.CreateMul(step, b_.getInt64(steps)));
  };
  list.push_back(b_.CreateGEP(type, base(pointer, offset), b_.CreateMul(g.index, step)));
  for (unsigned k = 1; k < g.lanes * g.units; ++k)
    list.push_back(k % kTogether == 0 ? move(list[k - kTogether], kTogether)
                                      : move(list[k - k % kTogether], k % kTogether));
  return list;
}

// Never outside of the array, whatever lanes a mask switches off.
llvm::Value* RowEmitter::periodic_load(ValueId pointer, ValueId offset, Value* index,
                                       unsigned lanes) {
  const DType t = pointee(pointer);
  Value* const period = b_.getInt64(static_cast<uint64_t>(*analysis_.of(offset).step));
  llvm::Type* element = memory_type(b_, f_.ops_, t);
  Value* v = llvm::PoisonValue::get(memory_type(b_, f_.ops_, t, lanes));
  for (unsigned lane = 0; lane < lanes; ++lane) {
    Value* at = b_.CreateURem(b_.CreateAdd(index, b_.getInt64(lane)), period);
    Value* one = b_.CreateAlignedLoad(element, b_.CreateGEP(element, f_.scalar(pointer), at),
                                      llvm::Align(1));
    v = lanes == 1 ? one : b_.CreateInsertElement(v, one, uint64_t{lane});
  }
  return is_bool(t) ? b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType())) : v;
}

RowEmitter::Patterns RowEmitter::patterns(Value* lo, unsigned lanes) {
  Patterns list;
  for (const ir::OpId id : body().ops) {
    const ir::Op& op = f_.m_.ops[id];
    if (op.opcode != Opcode::load || analysis_.of(op.operands[1]).kind != Variation::periodic)
      continue;
    for (unsigned u = 0; u < analysis_.units; ++u)
      list[op.results[0]].push_back(
          periodic_load(op.operands[0], op.operands[1],
                        b_.CreateAdd(lo, b_.getInt64(uint64_t{u} * lanes)), lanes));
  }
  return list;
}

RowEmitter::Units RowEmitter::load(const Group& g, const ir::Op& op) {
  const ValueId pointer = op.operands[0], offset = op.operands[1];
  const DType t = pointee(pointer);
  const llvm::Align align(1);  // arrays need not be aligned to their elements
  llvm::Type* type = memory_type(b_, f_.ops_, t, g.lanes);
  const Variance& variance = analysis_.of(offset);
  Units units;
  if (variance.kind == Variation::uniform) {
    Value* v = f_.load(b_, t, f_.address(b_, pointer, f_.scalar(offset)));
    return Units(g.units, g.lanes == 1 ? v : b_.CreateVectorSplat(g.lanes, v));
  }
  if (variance.kind == Variation::periodic) {
    for (unsigned u = 0; u < g.units; ++u)
      units.push_back(g.patterns != nullptr
                          ? g.patterns->at(op.results[0])[g.first_unit + u]
                          : periodic_load(pointer, offset,
                                          b_.CreateAdd(g.index, b_.getInt64(uint64_t{u} * g.lanes)),
                                          g.lanes));
    return units;
  }
  const std::vector<Value*> lanes =
      variance.unit() || !g.active.empty() ? std::vector<Value*>{} : addresses(g, pointer, offset);
  for (unsigned u = 0; u < g.units; ++u) {
    Value* v = nullptr;
    if (variance.unit()) {
      Value* address = unit_address(g, pointer, offset, u);
      v = g.active.empty() ? static_cast<Value*>(b_.CreateAlignedLoad(type, address, align))
                           : b_.CreateMaskedLoad(type, address, align, g.active[u],
                                                 llvm::Constant::getNullValue(type));
    } else if (!g.active.empty()) {
      v = masked_load(g, pointer, offset, u);
    } else {
      llvm::Type* element = memory_type(b_, f_.ops_, t);
      v = llvm::PoisonValue::get(type);
      for (unsigned lane = 0; lane < g.lanes; ++lane) {
        Value* one = b_.CreateAlignedLoad(element, lanes[u * g.lanes + lane], align);
        v = g.lanes == 1 ? one : b_.CreateInsertElement(v, one, uint64_t{lane});
      }
    }
    units.push_back(is_bool(t) ? b_.CreateICmpNE(v, llvm::Constant::getNullValue(type)) : v);
  }
  return units;
}

llvm::Value* RowEmitter::interleaved_address(const Group& g, const Interleaved& all,
                                             unsigned unit) {
  const ir::Op& op = f_.m_.ops[all.members[0]];
  const size_t pointer = op.opcode == Opcode::store ? 1 : 0;
  llvm::Type* type = memory_type(b_, f_.ops_, pointee(op.operands[pointer]));
  Value* point = b_.CreateAdd(g.index, b_.getInt64(uint64_t{unit} * g.lanes));
  return b_.CreateGEP(type, base(op.operands[pointer], op.operands[pointer + 1]),
                      b_.CreateMul(point, b_.getInt64(all.members.size())));
}

void RowEmitter::load_interleaved(const Group& g, const Interleaved& all) {
  const auto count = static_cast<unsigned>(all.members.size());
  const DType t = pointee(f_.m_.ops[all.members[0]].operands[0]);
  llvm::Type* type = memory_type(b_, f_.ops_, t, g.lanes * count);
  for (const ir::OpId id : all.members) values_[f_.m_.ops[id].results[0].value].clear();
  for (unsigned u = 0; u < g.units; ++u) {
    Value* whole = b_.CreateAlignedLoad(type, interleaved_address(g, all, u), llvm::Align(1));
    if (is_bool(t)) whole = b_.CreateICmpNE(whole, llvm::Constant::getNullValue(type));
    for (unsigned k = 0; k < count; ++k) {
      llvm::SmallVector<int, 64> lanes;
      for (unsigned lane = 0; lane < g.lanes; ++lane)
        lanes.push_back(static_cast<int>(lane * count + k));
      values_[f_.m_.ops[all.members[k]].results[0].value].push_back(
          b_.CreateShuffleVector(whole, lanes));
    }
  }
}

void RowEmitter::store_interleaved(const Group& g, const Interleaved& all) {
  const auto count = static_cast<unsigned>(all.members.size());
  const DType t = pointee(f_.m_.ops[all.members[0]].operands[1]);
  llvm::SmallVector<Units, 4> values;
  for (const ir::OpId id : all.members) values.push_back(operand(g, f_.m_.ops[id].operands[0]));
  const auto joined = [&](Value* x, Value* y, unsigned lanes) {
    llvm::SmallVector<int, 128> order(2 * lanes);
    std::iota(order.begin(), order.end(), 0);
    return b_.CreateShuffleVector(x, y, order);
  };
  const bool stream = g.nontemporal && is_nontemporal(all.at);
  for (unsigned u = 0; u < g.units; ++u) {
    Value* const nothing = llvm::PoisonValue::get(values[0][u]->getType());
    Value* whole = joined(values[0][u], values[1][u], g.lanes);
    if (count > 2)
      whole = joined(whole, joined(values[2][u], count > 3 ? values[3][u] : nothing, g.lanes),
                     2 * g.lanes);
    llvm::SmallVector<int, 128> order;
    for (unsigned lane = 0; lane < g.lanes; ++lane)
      for (unsigned k = 0; k < count; ++k) order.push_back(static_cast<int>(k * g.lanes + lane));
    whole = b_.CreateShuffleVector(whole, order);
    if (is_bool(t)) whole = b_.CreateZExt(whole, memory_type(b_, f_.ops_, t, g.lanes * count));
    const uint64_t line = std::min(kLine, llvm::bit_floor(g.lanes * count * size_of(t)));
    llvm::StoreInst* s = b_.CreateAlignedStore(whole, interleaved_address(g, all, u),
                                               llvm::Align(stream ? line : 1));
    if (stream) mark_nontemporal(s);
  }
}

void RowEmitter::mark_nontemporal(llvm::StoreInst* store) {
  store->setMetadata(
      "nontemporal",
      llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt32(1))));
}

void RowEmitter::store(const Group& g, ir::OpId id) {
  const ir::Op& op = f_.m_.ops[id];
  if (!g.active.empty() && !analysis_.of(op.operands[2]).unit()) return masked_store(g, op);
  const ValueId pointer = op.operands[1], offset = op.operands[2];
  const DType t = pointee(pointer);
  llvm::Align align(1);
  const Variance& variance = analysis_.of(offset);
  Units values = operand(g, op.operands[0]);
  if (is_bool(t))
    for (Value*& v : values) v = b_.CreateZExt(v, memory_type(b_, f_.ops_, t, g.lanes));
  if (variance.kind == Variation::uniform) {
    // Points run in any order: the first one of the group is as good as any, and always active.
    Value* v = g.lanes == 1 ? values[0] : b_.CreateExtractElement(values[0], uint64_t{0});
    b_.CreateAlignedStore(v, f_.address(b_, pointer, f_.scalar(offset)), align);
    return;
  }
  const std::vector<Value*> lanes =
      variance.unit() ? std::vector<Value*>{} : addresses(g, pointer, offset);
  const bool stream = g.nontemporal && is_nontemporal(id);
  if (stream) align = llvm::Align(std::min(kLine, g.lanes * size_of(t)));
  for (unsigned u = 0; u < g.units; ++u) {
    if (variance.unit()) {
      Value* address = unit_address(g, pointer, offset, u);
      if (!g.active.empty()) {
        b_.CreateMaskedStore(values[u], address, align, g.active[u]);
      } else {
        llvm::StoreInst* s = b_.CreateAlignedStore(values[u], address, align);
        if (stream) mark_nontemporal(s);
      }
    } else {
      for (unsigned lane = 0; lane < g.lanes; ++lane) {
        Value* one = g.lanes == 1 ? values[u] : b_.CreateExtractElement(values[u], uint64_t{lane});
        b_.CreateAlignedStore(one, lanes[u * g.lanes + lane], align);
      }
    }
  }
}

}  // namespace picokernel::backend::cpu
