// Rebuilds a module op by op: what passes are made of.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/builder.h"
#include "ir/module.h"

namespace picokernel::ir {

// Walks the old module in order. For each op `visit` may build something else with builder() and
// give the new values of the op's results; without an answer the op is copied with its operands
// mapped and its regions walked.
class Rewriter {
 public:
  // Result values of the op in the new module (invalid ones for an op that is gone), or nothing to
  // copy it.
  using Visit = std::function<std::optional<std::vector<ValueId>>(Rewriter&, OpId)>;

  explicit Rewriter(const Module& from);

  const Module& from() const { return from_; }
  Builder& builder() { return builder_; }
  Module& to() { return to_; }

  /// The new value that stands for an old one.
  ValueId operator[](ValueId old) const { return values_[old.value]; }
  std::vector<ValueId> mapped(std::span<const ValueId> old) const;
  void map(ValueId old, ValueId replacement) { values_[old.value] = replacement; }

  /// Copies one op: operands mapped, regions walked with the same visitor.
  std::vector<ValueId> copy(OpId id, const Visit& visit);
  /// Walks the ops of a region into the block at hand; gives what its yield hands on. The region
  /// has no parameters.
  std::vector<ValueId> splice(BlockId region, const Visit& visit);
  /// Copies parameters, then walks the body; results and guards are carried over.
  Module run(const Visit& visit);

 private:
  void walk(BlockId block, const Visit& visit);
  void walk_op(OpId id, const Visit& visit);

  const Module& from_;
  Module to_;
  Builder builder_;
  std::vector<ValueId> values_;
  std::vector<BlockId> blocks_;
};

/// A copy of the module in which size symbol s is replacement[s], an expression over the new
/// symbols. Names of symbols are given anew; `names` belongs to the new symbols.
Module substitute_sizes(const Module& m,
                        const std::function<SizeId(SizeTable&, uint32_t)>& replacement,
                        std::vector<std::string> names);

}  // namespace picokernel::ir
