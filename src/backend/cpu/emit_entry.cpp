// The function takes its arguments one by one, puts them into the slots that nests read, and runs
// the nests. Two more slots behind them hold the memory that the nests have allocated, as a list,
// and what the function returns.
#include "backend/cpu/emit_entry.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include "backend/c_like/printer.h"
#include "backend/cpu/emit_function.h"

namespace picokernel::backend::cpu {
namespace {

using llvm::Value;
using Builder = llvm::IRBuilder<>;

constexpr const char* kAllocate = "pk::allocate";
constexpr uint64_t kLink = 64;  // bytes before a block that hold the link: the block stays aligned

llvm::BasicBlock* new_block(llvm::Function* f, const char* name) {
  return llvm::BasicBlock::Create(f->getContext(), name, f);
}

Value* slot(Builder& b, Value* slots, uint64_t index) {
  return b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), slots, index);
}

llvm::FunctionCallee c_library(llvm::Module& module, const char* name, llvm::Type* result,
                               llvm::Type* parameter) {
  return module.getOrInsertFunction(name, llvm::FunctionType::get(result, {parameter}, false));
}

// ptr allocate(ptr list, i64 count, i64 size): null, and -1 as what is returned, where there is no
// memory.
llvm::Function* allocate(llvm::Module& module, const Target& target) {
  if (llvm::Function* known = module.getFunction(kAllocate)) return known;
  Builder b(module.getContext());
  llvm::Type *pointer = b.getPtrTy(), *word = b.getInt64Ty();
  auto* f = llvm::Function::Create(llvm::FunctionType::get(pointer, {pointer, word, word}, false),
                                   llvm::Function::InternalLinkage, kAllocate, module);
  set_attributes(*f, target);
  llvm::BasicBlock *entry = new_block(f, "entry"), *fits = new_block(f, "fits"),
                   *link = new_block(f, "link"), *none = new_block(f, "none");
  Value* list = f->getArg(0);

  b.SetInsertPoint(entry);
  Value* bytes =
      b.CreateBinaryIntrinsic(llvm::Intrinsic::umul_with_overflow, f->getArg(1), f->getArg(2));
  Value* all = b.CreateBinaryIntrinsic(llvm::Intrinsic::uadd_with_overflow,
                                       b.CreateExtractValue(bytes, 0), b.getInt64(kLink));
  b.CreateCondBr(b.CreateOr(b.CreateExtractValue(bytes, 1), b.CreateExtractValue(all, 1)), none,
                 fits);

  b.SetInsertPoint(fits);
  Value* memory =
      b.CreateCall(c_library(module, "malloc", pointer, word), {b.CreateExtractValue(all, 0)});
  b.CreateCondBr(b.CreateIsNull(memory), none, link);

  b.SetInsertPoint(link);
  b.CreateStore(b.CreateLoad(pointer, list), memory);
  b.CreateStore(memory, list);
  b.CreateRet(b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), memory, kLink));

  b.SetInsertPoint(none);
  b.CreateStore(b.getInt64(~uint64_t{0}), slot(b, list, 1));
  b.CreateRet(llvm::Constant::getNullValue(pointer));
  return f;
}

// A launch's arena is not there: nests allocate by the slots of their caller.
void replace_arena(llvm::Module& module, size_t list, const Target& target) {
  llvm::Function* arena = module.getFunction("pk_alloc");
  if (arena == nullptr) return;
  while (!arena->use_empty()) {
    auto* call = llvm::cast<llvm::CallInst>(arena->user_back());
    Builder b(call);
    Value* const slots = slot(b, call->getFunction()->getArg(0), list);
    call->replaceAllUsesWith(b.CreateCall(allocate(module, target),
                                          {slots, call->getArgOperand(0), call->getArgOperand(1)}));
    call->eraseFromParent();
  }
  arena->eraseFromParent();
}

void free_list(Builder& b, llvm::Module& module, Value* list) {
  llvm::Function* f = b.GetInsertBlock()->getParent();
  llvm::BasicBlock *before = b.GetInsertBlock(), *next = new_block(f, "free"),
                   *done = new_block(f, "freed");
  Value* first = b.CreateLoad(b.getPtrTy(), list);
  b.CreateCondBr(b.CreateIsNull(first), done, next);
  b.SetInsertPoint(next);
  llvm::PHINode* memory = b.CreatePHI(b.getPtrTy(), 2);
  Value* following = b.CreateLoad(b.getPtrTy(), memory);
  b.CreateCall(c_library(module, "free", b.getVoidTy(), b.getPtrTy()), {memory});
  memory->addIncoming(first, before);
  memory->addIncoming(following, next);
  b.CreateCondBr(b.CreateIsNull(following), done, next);
  b.SetInsertPoint(done);
}

}  // namespace

void emit_entry(const ir::Module& kernel, const KernelInfo& info, llvm::Module& module,
                const Target& target) {
  Builder b(module.getContext());
  const OpEmitter ops(module, target);
  const std::string name = c_like::function_name(kernel);
  llvm::Type* word = b.getInt64Ty();
  const auto params = kernel.params();
  std::vector<llvm::Type*> types;
  for (const ir::ValueId v : params) {
    const ir::Type& t = kernel.type(v);
    types.push_back(t.kind == ir::TypeKind::ptr ? b.getPtrTy() : memory_type(b, ops, t.dtype));
  }
  llvm::Type* result = info.allocates ? b.getInt32Ty() : b.getVoidTy();
  auto* f = llvm::Function::Create(llvm::FunctionType::get(result, types, false),
                                   llvm::Function::ExternalLinkage, name, module);
  set_attributes(*f, target);
  b.SetInsertPoint(new_block(f, "entry"));
  const auto words = [&](size_t count) {
    return b.CreateAlloca(llvm::ArrayType::get(word, count));
  };
  const size_t list = params.size();
  Value* const slots = words(list + 2);
  for (size_t i = 0; i < params.size(); ++i) {
    Value* v = f->getArg(static_cast<unsigned>(i));
    if (v->getType()->isIntegerTy()) v = b.CreateZExt(v, word);
    b.CreateStore(v, slot(b, slots, i));
  }
  for (const size_t i : {list, list + 1}) b.CreateStore(b.getInt64(0), slot(b, slots, i));

  llvm::BasicBlock* done = new_block(f, "done");
  for (size_t n = 0; n < info.nests.size(); ++n) {
    llvm::Function* nest = module.getFunction(nest_symbol(kernel.name, n));
    nest->setLinkage(llvm::Function::InternalLinkage);
    nest->setName(name + ".nest");  // no nest of the next kernel's
    const std::vector<Extent>& extents = info.nests[n].extents;
    Value *const lo = words(extents.size()), *const hi = words(extents.size());
    for (size_t d = 0; d < extents.size(); ++d) {
      const auto value = static_cast<uint64_t>(extents[d].value);
      b.CreateStore(b.getInt64(0), slot(b, lo, d));
      b.CreateStore(extents[d].constant ? static_cast<Value*>(b.getInt64(value))
                                        : b.CreateLoad(word, slot(b, slots, value)),
                    slot(b, hi, d));
    }
    b.CreateCall(nest, {slots, lo, hi});
    if (!info.allocates) continue;
    llvm::BasicBlock* next = new_block(f, "next");
    b.CreateCondBr(b.CreateIsNull(b.CreateLoad(word, slot(b, slots, list + 1))), next, done);
    b.SetInsertPoint(next);
  }
  b.CreateBr(done);
  done->moveAfter(b.GetInsertBlock());
  b.SetInsertPoint(done);
  replace_arena(module, list, target);
  if (!info.allocates) {
    b.CreateRetVoid();
    return;
  }
  free_list(b, module, slot(b, slots, list));
  b.CreateRet(b.CreateTrunc(b.CreateLoad(word, slot(b, slots, list + 1)), b.getInt32Ty()));
}

}  // namespace picokernel::backend::cpu
