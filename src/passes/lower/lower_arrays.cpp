// Graph -> a kernel that people call: arrays that are contiguous, scalars and sizes.
#include <map>

#include "ir/rewriter.h"
#include "ir/text.h"
#include "passes/lower/lower_loops.h"
#include "passes/lower/nests.h"

namespace picokernel::passes {
namespace {

using namespace ir;

// Around the kernel of lower_loops: computes its parameters, as a launch would.
class Wrapper {
 public:
  explicit Wrapper(const Module& graph)
      : graph_(graph),
        nests_(find_nests(graph)),
        launch_(contiguous_class(graph, nests_.nests)),
        kernel_(lower_loops(graph, {.launch = &launch_})),
        r_(kernel_),
        b_(r_.builder()) {}

  Module run() {
    declare();
    bind();
    r_.splice(Module::body(), [this](Rewriter&, OpId id) { return moved(kernel_.ops[id]); });
    return std::move(r_.to());
  }

 private:
  ValueId number(int64_t v) { return b_.constant(Scalar::of(v)); }

  void declare() {
    std::vector<std::string>& notes = r_.to().notes;
    for (const ValueId v : graph_.params()) {
      const Type& t = graph_.type(v);
      const Type type = {.kind = t.is_scalar() ? TypeKind::value : TypeKind::ptr, .dtype = t.dtype};
      const std::string name = graph_.values[v].name;
      values_[v] = b_.param(type, name);
      if (!t.is_scalar())
        notes.push_back(name + ": " + std::string(text_name(t.dtype)) + shape(t.shape));
    }
    for (const Guard& g : graph_.guards) {
      const char* relation = g.relation == Relation::eq   ? " == "
                             : g.relation == Relation::ne ? " != "
                                                          : " >= ";
      notes.push_back(to_string(graph_, g.left) + relation + to_string(graph_, g.right));
    }
    for (uint32_t s = 0; s < graph_.sizes.symbol_count(); ++s) {
      const std::string known = s < graph_.symbol_names.size() ? graph_.symbol_names[s] : "";
      symbols_.push_back(
          b_.param({.dtype = DType::i64}, known.empty() ? "n" + std::to_string(s) : known));
    }
    walk(graph_, [&](OpId id) {
      const Op& op = graph_.ops[id];
      if (op.opcode != Opcode::scratch) return;
      const Type& t = graph_.type(op.results[0]);
      values_[op.results[0]] = b_.value(Opcode::alloc, {product(t.shape, 0)}, 0,
                                        {{.kind = TypeKind::ptr, .dtype = t.dtype}});
    });
  }

  std::string shape(std::span<const SizeId> sizes) const {
    std::string text;
    for (const SizeId s : sizes) text += (text.empty() ? "" : ", ") + to_string(graph_, s);
    return "[" + text + "]";
  }

  // The new value of each parameter of the kernel.
  void bind() {
    const KernelParams params = kernel_params(graph_, nests_.nests, launch_);
    const auto set = [&](size_t slot, ValueId v) { r_.map(kernel_.params()[slot], v); };
    for (size_t i = 0; i < params.scalars.size(); ++i)
      set(i, values_.at(graph_.params()[params.scalars[i]]));
    for (size_t i = 0; i < params.sizes.size(); ++i)
      set(params.scalars.size() + i, size(params.sizes[i]));
    for (size_t n = 0; n < nests_.nests.size(); ++n) {
      const Nest& nest = nests_.nests[n];
      const NestParams& p = params.nests[n];
      const size_t rank = launch_.nests[n].rank;
      for (size_t d = 0; d < rank; ++d)
        set(p.extents + d, rank < nest.shape.size() ? product(nest.shape, 0) : size(nest.shape[d]));
      size_t stride = p.strides;
      for (size_t a = 0; a < nest.accesses.size(); ++a) {
        const Access& access = nest.accesses[a];
        set(p.pointers + a, values_.at(access.root));
        if (const ValueId start = start_of(access); start.valid())
          starts_[kernel_.params()[p.pointers + a]] = start;
        const std::vector<DimMap>& dims = access.map.dims;
        for (size_t d = 0; d < rank; ++d)
          if (launch_.nests[n].strides[a][d] == Stride::any) {
            const DimMap& dim = dims[d - (nest.shape.size() - dims.size())];
            set(stride++, times(step_of(access, dim.source), dim.step));
          }
      }
    }
  }

  // Loads and stores behind a pointer that a launch would have moved.
  std::optional<std::vector<ValueId>> moved(const Op& op) {
    const bool store = op.opcode == Opcode::store;
    if (!store && op.opcode != Opcode::load) return std::nullopt;
    const auto start = starts_.find(op.operands[store]);
    if (start == starts_.end()) return std::nullopt;
    std::vector<ValueId> operands = r_.mapped(op.operands);
    operands.back() = b_.value(Opcode::add, {start->second, operands.back()});
    return b_.module().ops[b_.op(op.opcode, std::move(operands), op.attribute)].results;
  }

  ValueId times(ValueId v, int64_t factor) {
    return factor == 1 ? v : b_.value(Opcode::mul, {v, number(factor)});
  }
  // Of the sizes from number `first` on.
  ValueId product(std::span<const SizeId> sizes, size_t first) {
    ValueId all;
    for (size_t d = first; d < sizes.size(); ++d) {
      const ValueId factor = size(sizes[d]);
      all = all.valid() ? b_.value(Opcode::mul, {all, factor}) : factor;
    }
    return all.valid() ? all : number(1);
  }
  // From one element to the next along a dimension of the storage.
  ValueId step_of(const Access& access, int32_t dim) {
    return product(graph_.type(access.root).shape, static_cast<size_t>(dim) + 1);
  }
  // The offset of the first element; invalid: 0.
  ValueId start_of(const Access& access) {
    ValueId sum;
    const auto add = [&](int32_t dim, SizeId at) {
      if (nests_.sizes.as_constant(at) == 0) return;
      const ValueId index = size(at), step = step_of(access, dim);
      const ValueId term = b_.value(Opcode::mul, {index, step});
      sum = sum.valid() ? b_.value(Opcode::add, {sum, term}) : term;
    };
    for (const DimPick& p : access.map.picks) add(p.source, p.index);
    for (const DimMap& d : access.map.dims)
      if (d.source != DimMap::kNewAxis) add(d.source, d.start);
    return sum;
  }

  ValueId size(SizeId id) {
    if (const auto known = sizes_.find(id); known != sizes_.end()) return known->second;
    const SizeNode node = nests_.sizes[id];
    ValueId v;
    if (node.kind == SizeKind::symbol) {
      v = symbols_[static_cast<size_t>(node.constant)];
    } else if (node.kind == SizeKind::sum) {
      for (const auto& [term, factor] : node.terms) {
        const ValueId part = times(size(term), factor);
        v = v.valid() ? b_.value(Opcode::add, {v, part}) : part;
      }
      if (!v.valid())
        v = number(node.constant);
      else if (node.constant != 0)
        v = b_.value(Opcode::add, {v, number(node.constant)});
    } else {
      const Opcode opcode = node.kind == SizeKind::product   ? Opcode::mul
                            : node.kind == SizeKind::minimum ? Opcode::minimum
                            : node.kind == SizeKind::maximum ? Opcode::maximum
                                                             : Opcode::floordiv;
      for (const auto& [term, unused] : node.terms) {
        const ValueId part = size(term);
        v = v.valid() ? b_.value(opcode, {v, part}) : part;
      }
    }
    return sizes_[id] = v;
  }

  const Module& graph_;
  const Nests nests_;
  const LaunchClass launch_;
  const Module kernel_;
  Rewriter r_;
  Builder& b_;
  std::map<ValueId, ValueId> values_;  // of the graph -> parameters and scratch
  std::map<ValueId, ValueId> starts_;  // the kernel's pointer -> the offset of its first element
  std::map<SizeId, ValueId> sizes_;
  std::vector<ValueId> symbols_;
};

}  // namespace

Module lower_arrays(const Module& graph, const Target&) { return Wrapper(graph).run(); }

}  // namespace picokernel::passes
