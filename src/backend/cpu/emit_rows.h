// Vector code: the innermost loop of a parallel op whose body is straight-line code.
#pragma once

#include <map>
#include <utility>

#include <llvm/ADT/SmallVector.h>

#include "backend/cpu/emit_function.h"

namespace picokernel::backend::cpu {

// A row is emitted as
// - uniform values, starts and steps of affine ones;
// - the main loop: `units` vectors of `lanes` elements. Where nontemporal stores can be aligned,
//   elements up to the alignment come first, and the main loop stores past the caches;
// - the rest: masked vectors, or a loop of single vectors and one of scalars.
// The same body is emitted for each, at other numbers of lanes and units.
class RowEmitter {
 public:
  using Value = llvm::Value;

  RowEmitter(FunctionEmitter& f, ir::ParallelView loop, const BodyAnalysis& analysis)
      : f_(f),
        b_(f.b_),
        before_(f.out_.getContext()),
        loop_(loop),
        analysis_(analysis),
        values_(f.m_.values.size()),
        affine_(f.m_.values.size()) {}

  void emit(Value* lo, Value* hi);

 private:
  // A value in the group being emitted: one llvm value per unit.
  using Units = llvm::SmallVector<Value*, 4>;
  struct Affine {
    Value *start = nullptr, *step = nullptr;  // value at index 0; change per index
  };
  // What periodic loads give in each unit of a turn of the main loop: by value.
  using Patterns = std::map<ir::ValueId, Units>;
  // The points of one turn of a loop.
  struct Group {
    Value* index;  // of the first point
    unsigned lanes, units;
    Units active = {};  // masks of lanes, by unit; empty: all
    bool nontemporal = false;
    const Patterns* patterns = nullptr;  // of the loop that the group belongs to; null: none
    unsigned first_unit = 0;             // of those in a pattern
  };

  void prologue();
  void once(ir::OpId id);
  void affine(const ir::Op& op);
  Affine affine_of(ir::ValueId v);

  /// Elements from lo that bring all stores to 64 bytes, and whether that is possible.
  std::pair<Value*, Value*> alignment(Value* lo, Value* hi);
  void rest(Value* lo, Value* hi);
  void masked_loop(Value* lo, Value* hi);
  void masked_pieces(Value* lo, Value* hi, bool nontemporal);
  Value* main_loop(Value* lo, Value* hi, bool nontemporal);
  Value* mask(Value* active);

  void group(const Group& g);
  void op(const Group& g, ir::OpId id);
  /// Emits the ops of a region; what it yields.
  std::vector<Units> region(const Group& g, ir::BlockId id);
  void branch(const Group& g, ir::IfView view);
  /// What a side of a branch yields, computed by a function of its own.
  std::vector<Units> call_side(const Group& g, ir::BlockId side);
  size_t op_count(ir::BlockId region) const;
  std::string text_of(ir::BlockId region, std::map<ir::ValueId, size_t>& numbers) const;
  llvm::Function* side_function(const Group& g, ir::BlockId side,
                                std::span<const ir::ValueId> inputs);
  void loop(const Group& g, ir::WhileView view);
  // emit_masked.cpp: regions with accesses, and `for`
  void masked_branch(const Group& g, ir::IfView view);
  void masked_for(const Group& g, ir::ForView view);
  Value* masked_load(const Group& g, ir::ValueId pointer, ir::ValueId offset, unsigned unit);
  void masked_store(const Group& g, const ir::Op& op);
  /// Pointers of a unit's lanes.
  Value* lane_addresses(const Group& g, ir::ValueId pointer, ir::ValueId offset, unsigned unit);
  /// Where a value's parts that do not vary are computed.
  llvm::IRBuilder<>& place(ir::ValueId v) { return analysis_.of(v).local ? b_ : before_; }
  Units both(const Units& x, const Units& y);
  Value* any_lane(const Units& masks);
  /// In the function being emitted.
  llvm::BasicBlock* new_block(const char* name);
  Units operand(const Group& g, ir::ValueId v);
  Units load(const Group& g, const ir::Op& op);
  Value* periodic_load(ir::ValueId pointer, ir::ValueId offset, Value* index, unsigned lanes);
  Patterns patterns(Value* lo, unsigned lanes);
  void store(const Group& g, ir::OpId id);
  void mark_nontemporal(llvm::StoreInst* store);
  void load_interleaved(const Group& g, const Interleaved& all);
  void store_interleaved(const Group& g, const Interleaved& all);
  /// Where the vectors of all members begin for a unit.
  Value* interleaved_address(const Group& g, const Interleaved& all, unsigned unit);
  Value* unit_address(const Group& g, ir::ValueId pointer, ir::ValueId offset, unsigned unit);
  /// Where each point of the group accesses memory, units outermost.
  std::vector<Value*> addresses(const Group& g, ir::ValueId pointer, ir::ValueId offset);
  unsigned stream_lanes() const;
  bool is_nontemporal(ir::OpId id) const;
  /// Bytes from one point to the next; 0: its stores are no whole vectors.
  uint64_t store_width(ir::OpId id) const;

  Value* splat(Value* scalar, unsigned lanes);
  Value* base(ir::ValueId pointer, ir::ValueId offset);
  DType pointee(ir::ValueId pointer) const { return f_.m_.type(pointer).dtype; }
  const ir::Block& body() const { return f_.m_.blocks[loop_.body()]; }

  FunctionEmitter& f_;
  llvm::IRBuilder<>& b_;
  llvm::IRBuilder<> before_;  // in front of the row's loops
  const ir::ParallelView loop_;
  const BodyAnalysis& analysis_;
  std::vector<Units> values_;   // by value, of the group being emitted
  bool in_side_ = false;        // emitting a function of call_side: all inputs are in values_
  std::vector<Affine> affine_;  // by value
  std::map<std::pair<Value*, unsigned>, Value*> splats_;
  std::map<std::pair<ir::ValueId, ir::ValueId>, Value*> bases_;
};

}  // namespace picokernel::backend::cpu
