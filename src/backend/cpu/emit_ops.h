// Elementwise ops as LLVM instructions, on scalars and vectors alike.
#pragma once

#include <map>
#include <span>
#include <string>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "backend/cpu/target.h"
#include "ir/module.h"

namespace picokernel::backend::cpu {

/// How every function of a kernel is compiled.
void set_attributes(llvm::Function& f, const Target& target);

// In registers bool is an i1, integers of either sign are iN. No instruction that it makes traps or
// is undefined, on any operands: lanes that a mask has switched off hold anything.
class OpEmitter {
 public:
  OpEmitter(llvm::Module& module, const Target& target) : module_(module), target_(target) {}

  llvm::Type* type(DType t, unsigned lanes = 1) const;
  llvm::Constant* constant(ir::Scalar s, unsigned lanes = 1) const;

  /// Operands have type `from` (for select: of the last two), all of one number of lanes.
  llvm::Value* emit(llvm::IRBuilder<>& b, ir::Opcode opcode, std::span<llvm::Value* const> operands,
                    DType from, DType to);
  llvm::Value* cast(llvm::IRBuilder<>& b, llvm::Value* v, DType from, DType to);
  /// The function of the module that is known by this text; null at first.
  llvm::Function*& shared_function(const std::string& text) { return shared_[text]; }

 private:
  using Builder = llvm::IRBuilder<>;
  using Value = llvm::Value;

  Value* float_to_int(Builder& b, Value* v, DType from, DType to);
  Value* cast_half(Builder& b, Value* v, DType from, DType to);
  Value* same(Builder& b, ir::Opcode opcode, std::span<Value* const> x, DType t);
  Value* boolean(Builder& b, ir::Opcode opcode, std::span<Value* const> x);
  Value* integer(Builder& b, ir::Opcode opcode, std::span<Value* const> x, DType t);
  Value* floating(Builder& b, ir::Opcode opcode, std::span<Value* const> x, DType t);
  Value* compare(Builder& b, ir::Opcode opcode, Value* x, Value* y, DType t);
  Value* test(Builder& b, ir::Opcode opcode, Value* x, DType t);
  Value* float_extreme(Builder& b, Value* x, Value* y, DType t, bool smaller, bool skip_nan);
  Value* magnitude(Builder& b, Value* x, DType t);
  Value* popcount(Builder& b, Value* x, DType t);
  Value* gcd(Builder& b, Value* x, Value* y, DType t);
  Value* int_divmod(Builder& b, Value* x, Value* y, DType t, bool remainder);
  Value* floor_quotient(Builder& b, Value* x, Value* y, DType t);
  Value* shift(Builder& b, Value* x, Value* y, DType t, bool left);
  Value* int_pow(Builder& b, Value* x, Value* y, DType t);
  Value* call_by_lane(Builder& b, const char* name, std::span<Value* const> operands, DType t);
  llvm::Function* helper(const std::string& name, Value* like, size_t operands, bool& fresh);

  llvm::Module& module_;
  const Target& target_;
  std::map<std::string, llvm::Function*> shared_;
};

}  // namespace picokernel::backend::cpu
