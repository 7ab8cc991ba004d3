// Where every computed array of a graph lives, by liveness, and in which order its ops run: what
// assign_scratch builds.
#pragma once

#include <map>
#include <vector>

#include "ir/module.h"

namespace picokernel::passes {

// One step: an op of the graph, or a copy that saves a value before its storage is overwritten.
struct PlanItem {
  ir::OpId op = {};        // invalid for a save
  ir::ValueId saved = {};  // a save: the result of a read
  bool dropped = false;    // not needed: nobody uses its value, or the value is computed in place
};

// A ref of the graph, or scratch that is yet to be made.
struct Home {
  ir::ValueId ref = {};
  size_t temp = 0;  // if ref is invalid: index into StoragePlan::temps
  friend bool operator==(const Home&, const Home&) = default;
};

struct StoragePlan {
  std::vector<PlanItem> items;
  std::vector<ir::Type> temps;             // types of refs
  std::map<ir::ValueId, Home> homes;       // of computed and saved arrays
  std::map<ir::ValueId, size_t> saved_at;  // item that saves the value
  /// Does the item read `v` from its home, rather than from the storage that it was read from?
  bool from_home(ir::ValueId v, size_t item) const {
    const auto saved = saved_at.find(v);
    return saved == saved_at.end() ? homes.contains(v) : saved->second < item;
  }
};

/// An array: not a scalar, which needs no storage.
inline bool is_array(const ir::Module& m, ir::ValueId v) {
  return m.type(v).kind == ir::TypeKind::value && !m.type(v).shape.empty();
}
/// An elementwise op that gives an array.
inline bool computes_array(const ir::Module& m, const ir::Op& op) {
  return ir::info(op.opcode).elementwise() && is_array(m, op.results[0]);
}

StoragePlan plan_storage(const ir::Module& graph);

}  // namespace picokernel::passes
