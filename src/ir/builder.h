// Appends ops to a block of a module; result types come from the type rules.
#pragma once

#include "ir/module.h"

namespace picokernel::ir {

// Operands are evaluated before the call, so texts never depend on C++'s order of arguments: pass
// values, not nested builder calls with effects on numbering, where order matters.
class Builder {
 public:
  /// Makes an empty body (block 0) if the module has none, and appends to it.
  explicit Builder(Module& m);
  Module& module() { return m_; }

  BlockId insertion_block() const { return block_; }
  void set_insertion_block(BlockId block) { block_ = block; }
  void set_location(const Location& location);
  void set_location(LocationId location) { location_ = location; }

  ValueId param(const Type& type, std::string name = {});  // of the function
  ValueId block_param(BlockId block, const Type& type, std::string name = {});
  BlockId new_block();

  // Throws InternalError if the type rules refuse the operands: front ends check before they build.
  OpId op(Opcode opcode, std::vector<ValueId> operands, uint64_t attribute = 0,
          std::vector<Type> stated = {});
  OpId op_with_regions(Opcode opcode, std::vector<ValueId> operands, std::vector<BlockId> regions,
                       std::vector<Type> stated = {});
  ValueId value(Opcode opcode, std::vector<ValueId> operands, uint64_t attribute = 0,
                std::vector<Type> stated = {}) {
    return m_.ops[op(opcode, std::move(operands), attribute, std::move(stated))].results[0];
  }

  ValueId constant(Scalar scalar);
  ValueId size(SizeId size);
  ValueId cast(ValueId v, DType dtype);
  ValueId view(ValueId ref, IndexMap map);
  ValueId scratch(DType dtype, std::vector<SizeId> shape);
  ValueId read(ValueId ref) { return value(Opcode::read, {ref}); }
  void write(ValueId ref, ValueId v) { op(Opcode::write, {ref, v}); }
  ValueId load(ValueId ptr, ValueId offset) { return value(Opcode::load, {ptr, offset}); }
  void store(ValueId v, ValueId ptr, ValueId offset, bool nontemporal = false) {
    op(Opcode::store, {v, ptr, offset}, nontemporal);
  }
  void return_values(std::vector<ValueId> values);

 private:
  Module& m_;
  BlockId block_ = Module::body();
  LocationId location_ = {};
};

}  // namespace picokernel::ir
