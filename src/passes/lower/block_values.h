// What of a kernel of threads is the same for all threads of a block, and known outside of them.
#pragma once

#include <vector>

#include "ir/module.h"

namespace picokernel::passes {

class BlockValues {
 public:
  explicit BlockValues(const ir::Module& m);

  /// Computed once for the block: it follows from parameters, the block's ids and what threads
  /// agreed on at barriers; loads, only of what control flow with barriers asks for.
  bool of_block(ir::ValueId v) const { return of_block_[v.value]; }
  bool op_of_block(const ir::Op& op) const;
  /// A value of a thread that its ids and the block's values give.
  bool follows_from_ids(ir::ValueId v) const { return from_ids_[v.value]; }
  /// It is or holds a barrier.
  bool meets(const ir::Op& op) const;
  /// The first control flow with a barrier in it whose condition may differ between threads;
  /// invalid: there is none.
  ir::OpId divergent() const;

 private:
  bool looks_same(const ir::Op& op) const;
  void settle();
  void ask(ir::ValueId v);

  const ir::Module& m_;
  std::vector<bool> of_block_, from_ids_, asked_;
  bool all_loads_ = true;
};

}  // namespace picokernel::passes
