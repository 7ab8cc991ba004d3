// Graph -> kernel: each nest becomes one parallel loop in which values are scalars.
#include "passes/lower/lower_loops.h"

#include <map>
#include <set>

#include "ir/builder.h"
#include "passes/lower/nests.h"
#include "support/check.h"

namespace picokernel::passes {
namespace {

using namespace ir;

class Lowering {
 public:
  Lowering(const Module& graph, const LaunchClass* launch)
      : graph_(graph),
        nests_(find_nests(graph)),
        launch_(launch != nullptr ? *launch : contiguous_class(graph, nests_.nests)),
        b_(kernel_) {
    PK_CHECK(nests_.conflicts.empty(), "lower_loops before materialize");
    kernel_.name = graph.name;
    kernel_.level = Level::kernel;
    kernel_.floats = graph.floats;
  }

  Module run() {
    const KernelParams params = kernel_params(graph_, nests_.nests, launch_);
    declare(params);
    const std::vector<OpId>& ops = graph_.blocks[Module::body()].ops;
    for (const OpId id : ops) uniform(id);
    for (size_t n = 0; n < nests_.nests.size(); ++n) nest(n);
    return std::move(kernel_);
  }

 private:
  struct NestValues {
    std::vector<ValueId> pointers, extents;
    std::vector<std::vector<ValueId>> strides;  // [access][loop]; only those of Stride::any
  };

  ValueId i64_param(std::string name) { return b_.param({.dtype = DType::i64}, std::move(name)); }

  void declare(const KernelParams& params) {
    for (const size_t i : params.scalars) {
      const ValueId v = graph_.params()[i];
      values_[v] = b_.param(graph_.type(v), graph_.values[v].name);
    }
    for (const SizeId size : params.sizes)
      sizes_[size] = i64_param("size" + std::to_string(sizes_.size()));
    for (size_t n = 0; n < nests_.nests.size(); ++n) {
      const std::vector<Access>& accesses = nests_.nests[n].accesses;
      NestValues v;
      for (const Access& a : accesses)
        v.pointers.push_back(b_.param(
            {.kind = TypeKind::ptr, .dtype = graph_.type(a.root).dtype, .space = Space::global},
            graph_.values[a.root].name));
      for (size_t d = 0; d < launch_.nests[n].rank; ++d)
        v.extents.push_back(i64_param("n" + std::to_string(d)));
      v.strides.resize(accesses.size(), std::vector<ValueId>(launch_.nests[n].rank));
      for (size_t a = 0; a < accesses.size(); ++a)
        for (size_t d = 0; d < launch_.nests[n].rank; ++d)
          if (launch_.nests[n].strides[a][d] == Stride::any)
            v.strides[a][d] = i64_param("s" + std::to_string(d));
      nest_values_.push_back(std::move(v));
    }
  }

  // Values that depend on scalars only are computed once, before the loops.
  void uniform(OpId id) {
    const Op& op = graph_.ops[id];
    b_.set_location(graph_.location(op));
    if (op.opcode == Opcode::size) {
      values_[op.results[0]] = sizes_.at(op.size());
    } else if (op.opcode == Opcode::constant) {
      values_[op.results[0]] = b_.constant(op.scalar());
    } else if (info(op.opcode).elementwise()) {
      for (const ValueId v : op.operands)
        if (!values_.contains(v)) return;
      values_[op.results[0]] = rebuild(op);
    }
  }

  ValueId rebuild(const Op& op) {
    std::vector<ValueId> operands;
    for (const ValueId v : op.operands) operands.push_back(values_.at(v));
    return b_.value(op.opcode, std::move(operands), op.attribute,
                    {{.dtype = graph_.type(op.results[0]).dtype}});
  }

  void mark(ValueId v, std::set<OpId>& needed) const {
    const OpId def = graph_.values[v].op;
    if (values_.contains(v) || !def.valid() || !needed.insert(def).second) return;
    if (graph_.ops[def].opcode == Opcode::read) return;
    for (const ValueId operand : graph_.ops[def].operands) mark(operand, needed);
  }

  void nest(size_t n) {
    const Nest& nest = nests_.nests[n];
    const NestValues& v = nest_values_[n];
    const BlockId outer = b_.insertion_block();
    std::vector<BlockId> regions;
    std::vector<ValueId> indices;
    const std::map<ValueId, ValueId> uniform_values = values_;
    if (launch_.nests[n].rank != 0) {  // rank 0: straight code
      regions = {b_.new_block()};
      for (size_t d = 0; d < launch_.nests[n].rank; ++d)
        indices.push_back(
            b_.block_param(regions[0], {.dtype = DType::i64}, "i" + std::to_string(d)));
      b_.set_insertion_block(regions[0]);
    }
    offsets_.assign(nest.accesses.size(), {});
    std::set<OpId> needed(nest.writes.begin(), nest.writes.end());
    for (const OpId w : nest.writes) mark(graph_.ops[w].operands[1], needed);
    std::map<size_t, ValueId> stored;  // access -> the value it holds at this point
    for (const OpId id : graph_.blocks[Module::body()].ops) {
      if (!needed.contains(id)) continue;
      const Op& op = graph_.ops[id];
      b_.set_location(graph_.location(op));
      if (op.opcode == Opcode::read) {
        const size_t a = nest.access_of.at(op.operands[0]);
        const ValueId offset = this->offset(n, a, indices);
        values_[op.results[0]] =
            stored.contains(a) ? stored[a] : b_.load(v.pointers[leader(n, a)], offset);
      } else if (op.opcode == Opcode::write) {
        const size_t a = nest.access_of.at(op.operands[0]);
        const ValueId offset = this->offset(n, a, indices), value = values_.at(op.operands[1]);
        b_.store(value, v.pointers[leader(n, a)], offset, launch_.nontemporal);
        stored[a] = value;
      } else {
        values_[op.results[0]] = rebuild(op);
      }
    }
    values_ = uniform_values;
    b_.set_insertion_block(outer);
    b_.set_location(Location{});
    if (!regions.empty()) b_.op_with_regions(Opcode::parallel, v.extents, std::move(regions));
  }

  size_t leader(size_t n, size_t a) const {
    const std::vector<Neighbour>& neighbours = launch_.nests[n].neighbours;
    return neighbours.empty() ? a : neighbours[a].leader;
  }

  ValueId offset(size_t n, size_t a, std::span<const ValueId> indices) {
    if (offsets_[a].valid()) return offsets_[a];
    if (const size_t first = leader(n, a); first != a) {
      const ValueId there = offset(n, first, indices);
      const ValueId delta = b_.constant(Scalar::of(launch_.nests[n].neighbours[a].delta));
      return offsets_[a] = b_.value(Opcode::add, {there, delta});
    }
    const auto times = [&](size_t d, int64_t step) {
      return b_.value(Opcode::mul, {indices[d], b_.constant(Scalar::of(step))});
    };
    ValueId sum;
    for (size_t d = 0; d < indices.size(); ++d) {
      ValueId term;
      switch (launch_.nests[n].strides[a][d]) {
        case Stride::zero:
          continue;
        case Stride::unit:
          term = indices[d];
          break;
        case Stride::any:
          term = b_.value(Opcode::mul, {indices[d], nest_values_[n].strides[a][d]});
          break;
        case Stride::two:
          term = times(d, 2);
          break;
        case Stride::three:
          term = times(d, 3);
          break;
        case Stride::four:
          term = times(d, 4);
          break;
        case Stride::periodic:
          term =
              b_.value(Opcode::mod, {indices[d], b_.constant(Scalar::of(launch_.nests[n].period))});
          break;
      }
      sum = sum.valid() ? b_.value(Opcode::add, {sum, term}) : term;
    }
    if (!sum.valid()) sum = b_.constant(Scalar::of(int64_t{0}));
    return offsets_[a] = sum;
  }

  const Module& graph_;
  const Nests nests_;
  const LaunchClass launch_;
  Module kernel_;
  Builder b_;
  std::map<ValueId, ValueId> values_;  // graph -> kernel
  std::map<SizeId, ValueId> sizes_;
  std::vector<NestValues> nest_values_;
  std::vector<ValueId> offsets_;  // of the nest at hand, by access
};

}  // namespace

Module lower_loops(const Module& graph, const Target& target) {
  return Lowering(graph, target.launch).run();
}

}  // namespace picokernel::passes
