// One LLVM function from ops of a kernel: scalar code with control flow, and parallel loops.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "backend/cpu/analysis.h"
#include "backend/cpu/emit_ops.h"
#include "ir/module.h"

namespace picokernel::backend::cpu {

// void name(const uint64_t* params, const int64_t* lo, const int64_t* hi). Parameters, and pure ops
// of the kernel's body that the function needs but was not given to run, are computed once at its
// entry.
class FunctionEmitter {
 public:
  using Value = llvm::Value;

  FunctionEmitter(const ir::Module& m, llvm::Module& out, OpEmitter& ops, const Target& target,
                  const std::string& name);

  /// One parallel op over the points lo <= index < hi. Gives what its analysis found.
  BodyAnalysis run_parallel(const ir::Op& op);
  /// Ops of the body in order, a parallel among them over its whole domain.
  void run_ops(std::span<const ir::OpId> ops);
  void finish();

 private:
  friend class RowEmitter;

  Value* scalar(ir::ValueId v);
  void set(ir::ValueId v, Value* value) { scalars_[v.value] = value; }
  std::vector<Value*> scalars(std::span<const ir::ValueId> values);
  Value* slot(Value* array, size_t index, llvm::Type* type);

  // Scalar code at the insertion point.
  std::vector<Value*> block(ir::BlockId id);
  void op(const ir::Op& op);
  void pure(llvm::IRBuilder<>& b, const ir::Op& op);
  /// Control flow without effects, at the end of what runs before the start.
  void before_start(const ir::Op& op);
  Value* address(llvm::IRBuilder<>& b, ir::ValueId pointer, Value* offset);
  Value* load(llvm::IRBuilder<>& b, DType t, Value* address);
  void alloc(const ir::Op& op);
  void atomic(const ir::Op& op);
  void run_for(ir::ForView loop);
  void run_while(ir::WhileView loop);
  void run_if(ir::IfView branch);
  void return_values(const ir::Op& op);
  void tiles(ir::ParallelView loop, const BodyAnalysis& analysis, std::span<Value* const> lo,
             std::span<Value* const> hi);
  BodyAnalysis parallel(ir::ParallelView loop, std::span<Value* const> lo,
                        std::span<Value* const> hi);

  llvm::BasicBlock* new_block(const char* name);
  /// Runs `body` with index = from, from + step, ... while index < to; the index never passes `to`
  /// by step or more.
  void counted_loop(Value* from, Value* to, Value* step, const char* name,
                    const std::function<void(Value*)>& body);

  const ir::Module& m_;
  llvm::Module& out_;
  OpEmitter& ops_;
  const Target& target_;
  llvm::Function* function_;
  llvm::IRBuilder<> entry_;  // before the entry block's branch
  llvm::IRBuilder<> b_;
  llvm::BasicBlock* exit_;
  std::vector<Value*> scalars_;  // by value; null: not computed yet
  bool fence_ = false;           // stores past the caches have to be fenced
};

/// Memory of one thread, of a constant size.
bool is_local(const ir::Module& m, const ir::Op& alloc);
/// How a value lies in memory: bool is a byte.
llvm::Type* memory_type(llvm::IRBuilder<>& b, const OpEmitter& ops, DType t, unsigned lanes = 1);

}  // namespace picokernel::backend::cpu
