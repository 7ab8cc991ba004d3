// Destination-passing form: every computed array is written to a ref by the op after it, and read
// again right before each use. A select becomes two steps, so that each is one masked or plain copy
// of memory:
//   write d, z;  d' = select(x, y, read d);  write d, d'
#include <algorithm>

#include "ir/rewriter.h"
#include "passes/graph/passes.h"
#include "passes/graph/storage_plan.h"
#include "support/check.h"

namespace picokernel::passes {
namespace {

using namespace ir;

class Assignment {
 public:
  explicit Assignment(const Module& m) : m_(m), plan_(plan_storage(m)), r_(m), b_(r_.builder()) {}

  Module run() {
    for (const ValueId p : m_.params()) r_.map(p, b_.param(m_.type(p), m_.values[p].name));
    walk(m_, [&](OpId id) {
      const Op& op = m_.ops[id];
      if (op.opcode == Opcode::scratch) r_.map(op.results[0], r_.copy(id, nullptr)[0]);
    });
    for (const Type& t : plan_.temps) {
      temps_.push_back(b_.scratch(t.dtype, t.shape));
      r_.to().values[temps_.back()].name = "t" + std::to_string(temps_.size() - 1);
    }
    for (item_ = 0; item_ < plan_.items.size(); ++item_)
      if (!plan_.items[item_].dropped) emit(plan_.items[item_]);
    return std::move(r_.to());
  }

 private:
  // Views are made where they are first wanted: ops have moved.
  ValueId ref(ValueId old) {
    if (r_[old].valid()) return r_[old];
    const Op* def = m_.def(old);
    PK_CHECK(def != nullptr && def->opcode == Opcode::view);
    const ValueId source = ref(def->operands[0]);
    r_.map(old, b_.view(source, m_.maps[def->map()]));
    r_.to().values[r_[old]].name = m_.values[old].name;
    return r_[old];
  }
  ValueId ref(const Home& home) { return home.ref.valid() ? ref(home.ref) : temps_[home.temp]; }
  ValueId ref_read_by(ValueId read) { return ref(m_.def(read)->operands[0]); }
  /// Where an array operand of this item is.
  ValueId place(ValueId v) {
    return plan_.from_home(v, item_) ? ref(plan_.homes.at(v)) : ref_read_by(v);
  }

  // The operand's value now: scalars as they are, arrays read again.
  ValueId operand(ValueId v) { return is_array(m_, v) ? b_.read(place(v)) : r_[v]; }

  void emit(const PlanItem& item) {
    if (item.saved.valid()) {
      const ValueId content = b_.read(ref_read_by(item.saved));
      b_.write(ref(plan_.homes.at(item.saved)), content);
      return;
    }
    const Op& op = m_.ops[item.op];
    b_.set_location(op.location);
    if (op.opcode == Opcode::write) {
      const ValueId target = ref(op.operands[0]);
      if (is_array(m_, op.operands[1]) && place(op.operands[1]) == target) return;
      const ValueId v = operand(op.operands[1]);
      b_.write(target, v);
    } else if (op.opcode == Opcode::read) {
      r_.map(op.results[0], b_.read(ref(op.operands[0])));
    } else if (computes_array(m_, op)) {
      compute(op);
    } else if (op.opcode == Opcode::return_) {
      std::vector<ValueId> values;
      for (const ValueId v : op.operands) values.push_back(operand(v));
      b_.return_values(std::move(values));
    } else {
      const std::vector<ValueId> results = r_.copy(item.op, nullptr);
      for (size_t i = 0; i < results.size(); ++i) {
        r_.map(op.results[i], results[i]);
        r_.to().values[results[i]].name = m_.values[op.results[i]].name;
      }
    }
  }

  void compute(const Op& op) {
    const ValueId destination = ref(plan_.homes.at(op.results[0]));
    std::vector<ValueId> operands;
    const bool select = op.opcode == Opcode::select;
    if (select && !(is_array(m_, op.operands[2]) && place(op.operands[2]) == destination)) {
      const ValueId otherwise = operand(op.operands[2]);
      b_.write(destination, otherwise);
    }
    std::vector<std::pair<ValueId, ValueId>> read;  // an operand that occurs twice is read once
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const ValueId v = op.operands[i];
      if (select && i == 2) {
        operands.push_back(b_.read(destination));
        continue;
      }
      const auto seen = std::ranges::find(read, v, &std::pair<ValueId, ValueId>::first);
      operands.push_back(seen != read.end() ? seen->second : operand(v));
      read.emplace_back(v, operands.back());
    }
    const ValueId v = b_.value(op.opcode, std::move(operands), 0, {m_.type(op.results[0])});
    r_.to().values[v].name = m_.values[op.results[0]].name;
    b_.write(destination, v);
  }

  const Module& m_;
  const StoragePlan plan_;
  Rewriter r_;
  Builder& b_;
  std::vector<ValueId> temps_;
  size_t item_ = 0;
};

}  // namespace

Module assign_scratch(const Module& m, const Target&) { return Assignment(m).run(); }

}  // namespace picokernel::passes
