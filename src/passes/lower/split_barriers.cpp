// Kernels whose threads meet -> loops over the threads of a block, one for each stretch between
// barriers.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "ir/rewriter.h"
#include "passes/lower/block_values.h"
#include "passes/lower/lower_loops.h"
#include "support/check.h"

namespace picokernel::passes {

using namespace ir;

namespace {

// Values of the block stand between the loops. A value of a thread lives in its loop; where another
// one needs it, it is computed again if it follows from ids, else kept in an array with an element
// for each thread. The same walk plans which are kept, then builds.
class Splitter {
 public:
  explicit Splitter(const Module& m)
      : m_(m), values_(m), r_(m), b_(r_.builder()), group_of_(m.values.size(), 0) {}

  Module run() {
    region(Module::body());  // plans
    flush();
    building_ = true;
    group_ = 1;
    for (const ValueId p : m_.params()) r_.map(p, b_.param(m_.type(p), m_.values[p].name));
    const Type index{.dtype = DType::i64};
    for (size_t a = 0; a < 3; ++a) blocks_[a] = b_.param(index, "blocks_" + axis(a));
    for (size_t a = 0; a < 3; ++a) threads_[a] = b_.param(index, "threads_" + axis(a));
    const BlockId body = b_.new_block();
    for (size_t a = 3; a-- > 0;) block_[a] = b_.block_param(body, index);
    b_.set_insertion_block(body);
    for (const ValueId v : kept_)
      if (!place_.contains(v)) homes_[v] = array(m_.type(v).dtype, kMaxThreadsOfBlock);
    region(Module::body());
    flush();
    b_.set_insertion_block(Module::body());
    b_.op_with_regions(Opcode::parallel, {blocks_[2], blocks_[1], blocks_[0]}, {body});
    b_.return_values({});
    return std::move(r_.to());
  }

 private:
  static std::string axis(size_t a) { return std::string(1, "xyz"[a]); }
  bool of_block(ValueId v) const { return values_.of_block(v); }

  ValueId array(DType dtype, int64_t count) {
    const ValueId size = b_.constant(Scalar::of(count));
    return b_.value(Opcode::alloc, {size}, 0,
                    {{.kind = TypeKind::ptr, .dtype = dtype, .space = Space::local}});
  }

  // ---- The walk

  void region(BlockId block) {
    for (const OpId id : m_.blocks[block].ops) {
      const Op& op = m_.ops[id];
      if (op.opcode == Opcode::yield || op.opcode == Opcode::return_ ||
          op.opcode == Opcode::check_index || op.opcode == Opcode::thread_id)
        continue;
      if (info(op.opcode).barrier()) {
        meet(op);
      } else if (values_.meets(op)) {
        structured(op);
      } else if (values_.op_of_block(op)) {
        if (!is_pure(m_, op)) flush();  // a load sees what threads have stored
        if (building_) of_block_op(id);
      } else {
        for (const ValueId v : outer_operands(m_, op)) use(v);
        for (const ValueId v : op.results) group_of_[v.value] = group_;
        steps_.push_back(id);
      }
    }
  }

  void of_block_op(OpId id) {
    const Op& op = m_.ops[id];
    if (const auto id_value = own(id)) return r_.map(op.results[0], id_value->at(0));
    if (op.opcode == Opcode::shared)
      return r_.map(op.results[0],
                    array(m_.type(op.results[0]).dtype, static_cast<int64_t>(op.attribute)));
    copy(id);
  }
  void copy(OpId id) {
    const std::vector<ValueId>& old = m_.ops[id].results;
    const std::vector<ValueId> made =
        r_.copy(id, [&](Rewriter&, OpId inner) { return own(inner); });
    for (size_t i = 0; i < made.size(); ++i) {
      r_.map(old[i], made[i]);
      if (std::string& name = r_.to().values[made[i]].name; name.empty())
        name = m_.values[old[i]].name;
    }
  }
  // Ids in regions.
  std::optional<std::vector<ValueId>> own(OpId id) const {
    const Op& op = m_.ops[id];
    if (op.opcode == Opcode::check_index) return std::vector<ValueId>{};
    if (op.opcode == Opcode::thread_id) return {{thread_[op.attribute]}};
    if (op.opcode == Opcode::block_id) return {{block_[op.attribute]}};
    if (op.opcode == Opcode::block_dim) return {{threads_[op.attribute]}};
    if (op.opcode == Opcode::grid_dim) return {{blocks_[op.attribute]}};
    return std::nullopt;
  }

  void use(ValueId v) {
    if (!of_block(v) && !values_.follows_from_ids(v) && group_of_[v.value] != group_)
      kept_.insert(v);
  }
  // A value goes to another one's place at the end of this loop over threads.
  void move(ValueId from, ValueId to) {
    if (!of_block(from)) use(from);
    kept_.insert(to);
    group_of_[to.value] = 0;
    moves_.emplace_back(from, to);
  }

  void meet(const Op& op) {
    if (op.operands.empty()) return flush();
    kept_.insert(op.results[0]);
    moves_.emplace_back(op.operands[0], op.results[0]);
    if (!of_block(op.operands[0])) use(op.operands[0]);
    flush();
    if (building_) r_.map(op.results[0], reduced(op));
  }

  // What all threads' operands come to: how many are true.
  ValueId reduced(const Op& op) {
    const ValueId zero = b_.constant(Scalar::of(int64_t{0})),
                  one = b_.constant(Scalar::of(int64_t{1}));
    const ValueId plane = b_.value(Opcode::mul, {threads_[0], threads_[1]});
    const ValueId count = b_.value(Opcode::mul, {plane, threads_[2]});
    const BlockId body = b_.new_block(), outer = b_.insertion_block();
    const ValueId thread = b_.block_param(body, {.dtype = DType::i64});
    const ValueId so_far = b_.block_param(body, {.dtype = DType::i64});
    b_.set_insertion_block(body);
    const ValueId vote = b_.load(homes_.at(op.results[0]), thread);
    const ValueId truth = op.opcode == Opcode::barrier_count ? b_.cast(vote, DType::b1) : vote;
    const ValueId sum = b_.value(Opcode::add, {so_far, b_.cast(truth, DType::i64)});
    b_.op(Opcode::yield, {sum});
    b_.set_insertion_block(outer);
    const OpId loop = b_.op_with_regions(Opcode::for_, {zero, count, one, zero}, {body});
    const ValueId yes = r_.to().ops[loop].results[0];
    if (op.opcode == Opcode::barrier_count) return yes;
    return b_.value(op.opcode == Opcode::barrier_and ? Opcode::eq : Opcode::gt,
                    {yes, op.opcode == Opcode::barrier_and ? count : zero});
  }

  // Control flow that all threads take together. What it carries for the block stays among its
  // operands, what it carries for threads is in arrays.
  void structured(const Op& op) {
    const bool branches = op.opcode == Opcode::if_;
    const size_t fixed = branches ? 1 : op.opcode == Opcode::for_ ? 3 : 0;
    if (!branches)
      for (size_t i = 0; i < op.results.size(); ++i)
        if (!of_block(op.results[i])) move(op.operands[fixed + i], op.results[i]);
    flush();
    std::vector<ValueId> operands;
    if (building_) {
      for (size_t i = 0; i < fixed; ++i) operands.push_back(r_[op.operands[i]]);
      for (size_t i = 0; !branches && i < op.results.size(); ++i)
        if (of_block(op.results[i])) operands.push_back(r_[op.operands[fixed + i]]);
    }
    std::vector<BlockId> regions;
    for (const BlockId from : op.regions) regions.push_back(side(op, from));
    if (!building_) return;
    std::vector<Type> types;
    for (const ValueId v : op.results)
      if (of_block(v)) types.push_back(m_.type(v));
    b_.set_location(op.location);
    const OpId made = b_.op_with_regions(op.opcode, operands, regions, types);
    size_t next = 0;
    for (const ValueId v : op.results)
      if (of_block(v)) r_.map(v, r_.to().ops[made].results[next++]);
  }

  BlockId side(const Op& op, BlockId from) {
    const Block& block = m_.blocks[from];
    const bool test = op.opcode == Opcode::while_ && from == op.regions[0];
    const size_t index = op.opcode == Opcode::for_ ? 1 : 0;  // in front of the carried values
    const BlockId outer = b_.insertion_block();
    const BlockId to = building_ ? b_.new_block() : BlockId{};
    for (size_t i = 0; i < block.params.size(); ++i) {
      const ValueId p = block.params[i];
      if (i >= index && !of_block(p)) {
        place_[p] = op.results[i - index];
        kept_.insert(p);
      } else if (building_) {
        r_.map(p, b_.block_param(to, m_.type(p), m_.values[p].name));
      }
    }
    if (building_) b_.set_insertion_block(to);
    region(from);
    std::vector<ValueId> yields;
    if (!block.ops.empty() && m_.ops[block.ops.back()].opcode == Opcode::yield) {
      const std::vector<ValueId>& given = m_.ops[block.ops.back()].operands;
      for (size_t i = 0; i < given.size(); ++i) {
        if (test || of_block(op.results[i]))
          yields.push_back(given[i]);
        else
          move(given[i], op.results[i]);
      }
    }
    flush();
    if (building_) {
      if (!yields.empty()) b_.op(Opcode::yield, r_.mapped(yields));
      b_.set_insertion_block(outer);
    }
    return to;
  }

  // ---- A loop over the threads of the block

  void flush() {
    if (steps_.empty() && moves_.empty()) return;
    if (building_) thread_loop();
    steps_.clear();
    moves_.clear();
    ++group_;
  }

  void thread_loop() {
    const BlockId outer = b_.insertion_block(), body = b_.new_block();
    for (size_t a = 3; a-- > 0;) thread_[a] = b_.block_param(body, {.dtype = DType::i64});
    b_.set_insertion_block(body);
    here_.clear();
    number_ = {};
    for (const OpId id : steps_) {
      const Op& op = m_.ops[id];
      for (const ValueId v : outer_operands(m_, op)) need(v);
      copy(id);
      for (const ValueId v : op.results) {
        here_.insert(v);
        if (kept_.contains(v)) b_.store(r_[v], home(v), number());
      }
    }
    for (const auto& [from, to] : moves_) need(from);  // all, before any is overwritten
    for (const auto& [from, to] : moves_)
      b_.store(b_.cast(r_[from], r_.to().type(home(to)).dtype), home(to), number());
    b_.set_insertion_block(outer);
    b_.op_with_regions(Opcode::parallel, {threads_[2], threads_[1], threads_[0]}, {body});
  }

  ValueId home(ValueId v) const {
    const auto shared = place_.find(v);
    return homes_.at(shared == place_.end() ? v : shared->second);
  }

  void need(ValueId v) {
    if (of_block(v) || !here_.insert(v).second) return;
    const OpId def = m_.values[v].op;
    if (!values_.follows_from_ids(v)) {
      r_.map(v, b_.load(home(v), number()));
    } else if (m_.ops[def].opcode == Opcode::thread_id) {
      r_.map(v, thread_[m_.ops[def].attribute]);
    } else {
      for (const ValueId x : m_.ops[def].operands) need(x);
      copy(def);
    }
  }

  // Of the thread in its block.
  ValueId number() {
    if (number_.valid()) return number_;
    const ValueId plane = b_.value(Opcode::mul, {thread_[2], threads_[1]});
    const ValueId row = b_.value(Opcode::add, {plane, thread_[1]});
    const ValueId first = b_.value(Opcode::mul, {row, threads_[0]});
    return number_ = b_.value(Opcode::add, {first, thread_[0]});
  }

  const Module& m_;
  const BlockValues values_;
  Rewriter r_;
  Builder& b_;
  bool building_ = false;
  int group_ = 1;
  std::vector<int> group_of_;         // by value: the loop that computes it; 0: none
  std::set<ValueId> kept_;            // in arrays
  std::map<ValueId, ValueId> place_;  // of a loop's parameters: the result whose array it is
  std::map<ValueId, ValueId> homes_;  // the arrays
  std::vector<OpId> steps_;           // of the loop that is collected
  std::vector<std::pair<ValueId, ValueId>> moves_;
  std::array<ValueId, 3> blocks_, threads_, block_, thread_;
  std::set<ValueId> here_;
  ValueId number_;
};

}  // namespace

Module split_barriers(const Module& m) { return Splitter(m).run(); }

}  // namespace picokernel::passes
