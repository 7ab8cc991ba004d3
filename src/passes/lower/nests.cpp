// Cutting a graph into loop nests.
#include "passes/lower/nests.h"

#include <algorithm>
#include <map>
#include <set>

#include "passes/graph/storage.h"
#include "support/check.h"

namespace picokernel::passes {
namespace {

using namespace ir;

class Cutter {
 public:
  explicit Cutter(const Module& m) : m_(m), sizes_(m.sizes), position_(m.ops.size(), 0) {
    const std::vector<OpId>& ops = m.blocks[Module::body()].ops;
    for (size_t i = 0; i < ops.size(); ++i) position_[ops[i].value] = i;
    for (const OpId id : ops)
      if (m.ops[id].opcode == Opcode::write) add(id);
  }
  Nests take() {
    out_.sizes = std::move(sizes_);
    return std::move(out_);
  }

 private:
  // A storage and the map it is touched through.
  using Touch = std::pair<ValueId, IndexMap>;
  Touch touch(ValueId ref) { return {root_of(m_, ref), composed_map(m_, ref, sizes_)}; }

  void collect_reads(ValueId v, std::set<ValueId>& seen, std::vector<OpId>& reads) const {
    if (!seen.insert(v).second) return;
    const OpId def = m_.values[v].op;
    if (!def.valid()) return;
    const Op& op = m_.ops[def];
    if (op.opcode == Opcode::read) {
      reads.push_back(def);
      return;
    }
    for (const ValueId operand : op.operands) collect_reads(operand, seen, reads);
  }

  // All touches of a storage that is written must be through one map, or apart, for points to be
  // independent.
  bool pointwise(const Nest& nest, OpId write, std::span<const OpId> reads) {
    std::vector<Touch> written{touch(m_.ops[write].operands[0])};
    for (const OpId w : nest.writes) written.push_back(touch(m_.ops[w].operands[0]));
    std::vector<Touch> touched = written;
    for (const OpId r : nest.reads) touched.push_back(touch(m_.ops[r].operands[0]));
    for (const OpId r : reads) touched.push_back(touch(m_.ops[r].operands[0]));
    for (const Touch& w : written)
      for (const Touch& t : touched)
        if (w.first == t.first && w.second != t.second && !disjoint(sizes_, w.second, t.second))
          return false;
    return true;
  }

  void add(OpId write) {
    std::vector<OpId> reads;
    std::set<ValueId> seen;
    collect_reads(m_.ops[write].operands[1], seen, reads);
    std::ranges::sort(reads, {}, [&](OpId id) { return position_[id.value]; });
    const std::vector<SizeId>& shape = m_.type(m_.ops[write].operands[0]).shape;

    const bool joins = !out_.nests.empty() && out_.nests.back().shape == shape &&
                       pointwise(out_.nests.back(), write, reads);
    if (!joins) {
      out_.nests.push_back({.shape = shape});
      if (!pointwise(out_.nests.back(), write, reads))
        out_.conflicts.push_back({m_.ops[write].operands[1], write});
    }
    for (const OpId r : reads) check_stale(r, write);

    Nest& nest = out_.nests.back();
    for (const OpId r : reads)
      if (std::ranges::find(nest.reads, r) == nest.reads.end()) nest.reads.push_back(r);
    std::ranges::sort(nest.reads, {}, [&](OpId id) { return position_[id.value]; });
    nest.writes.push_back(write);
    for (const OpId r : reads) access(nest, m_.ops[r].operands[0]).read = true;
    access(nest, m_.ops[write].operands[0]).written = true;
  }

  // The storage must not have been written between the read and its use, except in the same nest.
  void check_stale(OpId read, OpId user) {
    const ValueId root = root_of(m_, m_.ops[read].operands[0]);
    for (size_t n = 0; n + 1 < out_.nests.size(); ++n)
      for (const OpId w : out_.nests[n].writes)
        if (root_of(m_, m_.ops[w].operands[0]) == root &&
            position_[w.value] > position_[read.value] &&
            position_[w.value] < position_[user.value]) {
          // Right after the read, so that whatever was computed from it in between reads the copy
          // too.
          out_.conflicts.push_back(
              {m_.ops[read].results[0], m_.blocks[Module::body()].ops[position_[read.value] + 1]});
          return;
        }
  }

  Access& access(Nest& nest, ValueId ref) {
    const Touch t = touch(ref);
    const auto same = std::ranges::find_if(
        nest.accesses, [&](const Access& a) { return a.root == t.first && a.map == t.second; });
    const auto index = static_cast<size_t>(same - nest.accesses.begin());
    if (same == nest.accesses.end())
      nest.accesses.push_back({.ref = ref, .root = t.first, .map = t.second});
    nest.access_of[ref] = index;
    return nest.accesses[index];
  }

  const Module& m_;
  SizeTable sizes_;  // starts of composed maps may be new expressions
  std::vector<size_t> position_;
  Nests out_;
};

}  // namespace

bool disjoint(const SizeTable& sizes, const IndexMap& a, const IndexMap& b) {
  for (const DimPick& p : a.picks)
    for (const DimPick& q : b.picks) {
      const auto x = sizes.as_constant(p.index), y = sizes.as_constant(q.index);
      if (p.source == q.source && x && y && *x != *y) return true;
    }
  return false;
}

Nests find_nests(const Module& graph) { return Cutter(graph).take(); }

LaunchClass contiguous_class(const Module& graph, const std::vector<Nest>& nests) {
  LaunchClass launch;
  for (const Nest& nest : nests) {
    NestClass c;
    const auto shape_of = [&](const Access& a) {
      std::vector<SizeId> shape;
      for (const DimMap& d : a.map.dims) shape.push_back(d.extent);
      return shape;
    };
    const auto full = [&](const Access& a) {
      for (size_t d = 0; d < a.map.dims.size(); ++d)
        if (a.map.dims[d].step != 1 || a.map.dims[d].source != static_cast<int32_t>(d))
          return false;
      return graph.type(a.root).shape == nest.shape && shape_of(a) == nest.shape;
    };
    const bool one_loop =
        !nest.shape.empty() && std::ranges::all_of(nest.accesses, [&](const Access& a) {
          return full(a) || a.map.dims.empty();
        });
    c.rank = one_loop ? 1 : nest.shape.size();
    for (const Access& a : nest.accesses) {
      std::vector<Stride> strides(c.rank, Stride::any);
      if (one_loop) {
        strides[0] = a.map.dims.empty() ? Stride::zero : Stride::unit;
      } else {
        const size_t missing = nest.shape.size() - a.map.dims.size();
        for (size_t i = 0; i < c.rank; ++i) {
          const bool zero = i < missing || a.map.dims[i - missing].source == DimMap::kNewAxis ||
                            (graph.sizes.is_one(a.map.dims[i - missing].extent) &&
                             !graph.sizes.is_one(nest.shape[i]));
          if (zero)
            strides[i] = Stride::zero;
          else if (i + 1 == c.rank && a.map.dims[i - missing].step == 1 &&
                   a.map.dims[i - missing].source + 1 ==
                       static_cast<int32_t>(graph.type(a.root).shape.size()))
            strides[i] = Stride::unit;
        }
      }
      c.strides.push_back(std::move(strides));
    }
    launch.nests.push_back(std::move(c));
  }
  return launch;
}

KernelParams kernel_params(const Module& graph, const std::vector<Nest>& nests,
                           const LaunchClass& launch) {
  PK_CHECK(nests.size() == launch.nests.size());
  KernelParams params;
  for (size_t i = 0; i < graph.params().size(); ++i)
    if (graph.type(graph.params()[i]).is_scalar()) params.scalars.push_back(i);
  walk(graph, [&](OpId id) {
    const Op& op = graph.ops[id];
    if (op.opcode == Opcode::size &&
        std::ranges::find(params.sizes, op.size()) == params.sizes.end())
      params.sizes.push_back(op.size());
  });
  params.count = params.scalars.size() + params.sizes.size();
  for (size_t n = 0; n < nests.size(); ++n) {
    NestParams p;
    p.pointers = params.count;
    p.extents = p.pointers + nests[n].accesses.size();
    p.strides = p.extents + launch.nests[n].rank;
    params.count = p.strides;
    for (const std::vector<Stride>& strides : launch.nests[n].strides)
      params.count += static_cast<size_t>(std::ranges::count(strides, Stride::any));
    params.nests.push_back(p);
  }
  return params;
}

}  // namespace picokernel::passes
