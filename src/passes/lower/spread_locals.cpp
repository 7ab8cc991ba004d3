// Arrays of threads that meet -> parts of the block's memory.
#include <map>

#include "ir/rewriter.h"
#include "passes/lower/block_values.h"
#include "passes/lower/lower_loops.h"

namespace picokernel::passes {

using namespace ir;

namespace {

class Spreader {
 public:
  explicit Spreader(const Module& m) : m_(m), r_(m), b_(r_.builder()) {}

  Module run() {
    return r_.run([this](Rewriter&, OpId id) { return visit(m_.ops[id]); });
  }

 private:
  using Results = std::optional<std::vector<ValueId>>;

  Results visit(const Op& op) {
    if (op.opcode == Opcode::alloc) {
      const int64_t count = m_.def(op.operands[0])->scalar().as<int64_t>();
      Type type = m_.type(op.results[0]);
      type.space = Space::shared;
      local_[op.results[0]] = true;
      return {{b_.value(Opcode::shared, {}, static_cast<uint64_t>(count * kMaxThreadsOfBlock),
                        {type})}};
    }
    const bool store = op.opcode == Opcode::store;
    if ((op.opcode != Opcode::load && !store && !info(op.opcode).atomic()) ||
        !local_.contains(op.operands[store]))
      return std::nullopt;
    std::vector<ValueId> operands = r_.mapped(op.operands);
    operands[store + 1u] = place(operands[store + 1u]);
    const OpId made = b_.op(op.opcode, operands, op.attribute);
    return r_.to().ops[made].results;
  }

  // Elements of one index lie side by side, as the threads that use them do.
  ValueId place(ValueId index) {
    const ValueId first =
        b_.value(Opcode::mul, {index, b_.constant(Scalar::of(int64_t{kMaxThreadsOfBlock}))});
    return b_.value(Opcode::add, {first, number()});
  }

  // Of the thread in its block: where it is first asked for it may not be seen from elsewhere.
  ValueId number() {
    const Type index{.dtype = DType::i64};
    ValueId v;
    for (uint64_t axis = 3; axis-- > 0;) {
      const ValueId id = b_.value(Opcode::thread_id, {}, axis, {index});
      if (!v.valid()) {
        v = id;
        continue;
      }
      const ValueId row =
          b_.value(Opcode::mul, {v, b_.value(Opcode::block_dim, {}, axis, {index})});
      v = b_.value(Opcode::add, {row, id});
    }
    return v;
  }

  const Module& m_;
  Rewriter r_;
  Builder& b_;
  std::map<ValueId, bool> local_;
};

}  // namespace

Module spread_locals(const Module& m) { return Spreader(m).run(); }

}  // namespace picokernel::passes
