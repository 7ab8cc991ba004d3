// The interpreter of graphs: whole arrays, one op after the other, no fusion.
#include <algorithm>
#include <memory>
#include <optional>

#include "backend/ref/interpreter.h"
#include "ir/builder.h"
#include "ir/eval.h"
#include "ir/text.h"
#include "passes/legalize/passes.h"
#include "support/check.h"

namespace picokernel::backend {
namespace {

using namespace ir;

int64_t element_count(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (const int64_t s : shape) n *= s;
  return n;
}

class GraphInterpreter {
 public:
  GraphInterpreter(const Module& m, std::span<RefArray> params)
      : m_(m), arrays_(m.values.size()), refs_(m.values.size()) {
    bind_sizes(params);
    for (size_t i = 0; i < params.size(); ++i) {
      const ValueId p = m.params()[i];
      if (m.type(p).kind == TypeKind::ref)
        refs_[p.value] = whole(&params[i]);
      else
        arrays_[p.value] = params[i];
    }
  }

  std::vector<RefArray> run() {
    for (const OpId id : m_.blocks[Module::body()].ops) execute(m_.ops[id]);
    return std::move(results_);
  }

 private:
  // A storage and, for each point of a view in row-major order, the element that it shows.
  struct Ref {
    RefArray* storage = nullptr;
    std::vector<int64_t> shape;
    std::vector<size_t> index;
  };

  static Ref whole(RefArray* storage) {
    Ref r{.storage = storage, .shape = storage->shape, .index = {}};
    for (size_t i = 0; i < storage->elements.size(); ++i) r.index.push_back(i);
    return r;
  }

  int64_t size(SizeId id) const { return m_.sizes.eval(id, symbols_); }
  std::vector<int64_t> shape_of(ValueId v) const {
    std::vector<int64_t> shape;
    for (const SizeId s : m_.type(v).shape) shape.push_back(size(s));
    return shape;
  }

  void bind_sizes(std::span<const RefArray> params) {
    if (params.size() != m_.params().size())
      throw LaunchError("the graph takes " + std::to_string(m_.params().size()) +
                        " arguments, not " + std::to_string(params.size()));
    symbols_.assign(m_.sizes.symbol_count(), -1);
    const auto each_dim = [&](auto&& f) {
      for (size_t i = 0; i < params.size(); ++i) {
        const Type& t = m_.type(m_.params()[i]);
        if (t.dtype != params[i].dtype || t.shape.size() != params[i].shape.size())
          throw LaunchError("argument " + std::to_string(i) + " is not of type " +
                            to_string(m_, m_.values[m_.params()[i]].type));
        for (size_t d = 0; d < t.shape.size(); ++d) f(t.shape[d], params[i].shape[d]);
      }
    };
    each_dim([&](SizeId s, int64_t v) {
      if (m_.sizes[s].kind == SizeKind::symbol &&
          symbols_[static_cast<size_t>(m_.sizes[s].constant)] < 0)
        symbols_[static_cast<size_t>(m_.sizes[s].constant)] = v;
    });
    each_dim([&](SizeId s, int64_t v) {
      if (size(s) != v)
        throw LaunchError("a size is " + std::to_string(v) + " where " + to_string(m_, s) + " is " +
                          std::to_string(size(s)));
    });
  }

  // The element of an array of `shape` that stands at point `index` of a broadcast to `to`.
  static size_t broadcast_index(std::span<const int64_t> shape, std::span<const int64_t> to,
                                size_t index) {
    size_t result = 0, stride = 1;
    for (size_t i = 0; i < to.size(); ++i) {
      const auto extent = static_cast<size_t>(to[to.size() - 1 - i]);
      const size_t at = index % extent;
      index /= extent;
      if (i >= shape.size()) continue;
      const auto own = static_cast<size_t>(shape[shape.size() - 1 - i]);
      if (own != 1) result += at * stride;
      stride *= own;
    }
    return result;
  }

  void execute(const Op& op) {
    if (op.opcode == Opcode::constant) {
      array(op) = {op.scalar().dtype, {}, {op.scalar().bits}};
    } else if (op.opcode == Opcode::size) {
      array(op) = {DType::i64, {}, {static_cast<uint64_t>(size(op.size()))}};
    } else if (op.opcode == Opcode::scratch) {
      storage_.push_back(std::make_unique<RefArray>());
      RefArray& s = *storage_.back();
      s.dtype = m_.type(op.results[0]).dtype;
      s.shape = shape_of(op.results[0]);
      // Undefined content must not pass tests by luck.
      s.elements.assign(static_cast<size_t>(element_count(s.shape)),
                        is_bool(s.dtype) ? 1 : ir::cast(Scalar::of(int64_t{-51}), s.dtype).bits);
      refs_[op.results[0].value] = whole(&s);
    } else if (op.opcode == Opcode::view) {
      refs_[op.results[0].value] = view(refs_[op.operands[0].value], m_.maps[op.map()]);
    } else if (op.opcode == Opcode::read) {
      const Ref& r = refs_[op.operands[0].value];
      RefArray& a = array(op);
      a = {r.storage->dtype, r.shape, {}};
      for (const size_t i : r.index) a.elements.push_back(r.storage->elements[i]);
    } else if (op.opcode == Opcode::write) {
      const Ref& r = refs_[op.operands[0].value];
      const RefArray& v = arrays_[op.operands[1].value];
      for (size_t i = 0; i < r.index.size(); ++i)
        r.storage->elements[r.index[i]] = v.elements[broadcast_index(v.shape, r.shape, i)];
    } else if (op.opcode == Opcode::return_) {
      for (const ValueId v : op.operands) results_.push_back(arrays_[v.value]);
    } else {
      PK_CHECK(info(op.opcode).elementwise(), info(op.opcode).name);
      elementwise(op);
    }
  }

  RefArray& array(const Op& op) { return arrays_[op.results[0].value]; }

  // A function whose last digits are the target's is what its expansion computes, here too.
  Module expanded(const Op& op) const {
    Module kernel;
    kernel.level = Level::kernel;
    kernel.floats = m_.floats;
    Builder b(kernel);
    std::vector<ValueId> operands;
    for (const ValueId v : op.operands) operands.push_back(b.param({.dtype = m_.type(v).dtype}));
    const ValueId result = b.value(op.opcode, operands);
    kernel.results = {kernel.values[result].type};
    b.return_values({result});
    return passes::expand_math(kernel, {});
  }

  void elementwise(const Op& op) {
    RefArray& out = array(op);
    out = {m_.type(op.results[0]).dtype, shape_of(op.results[0]), {}};
    const auto n = static_cast<size_t>(element_count(out.shape));
    std::optional<Module> expansion;
    if (!is_exact(op.opcode, out.dtype)) expansion = expanded(op);
    for (size_t i = 0; i < n; ++i) {
      Scalar operands[3];
      for (size_t k = 0; k < op.operands.size(); ++k) {
        const RefArray& a = arrays_[op.operands[k].value];
        operands[k] = {a.dtype, a.elements[broadcast_index(a.shape, out.shape, i)]};
      }
      if (expansion) {
        const uint64_t slots[] = {operands[0].bits, operands[1].bits, operands[2].bits};
        out.elements.push_back(run_kernel(*expansion, slots)[0].bits);
      } else {
        out.elements.push_back(eval(op.opcode, {operands, op.operands.size()}, out.dtype).bits);
      }
    }
  }

  Ref view(const Ref& from, const IndexMap& map) const {
    std::vector<int64_t> strides(from.shape.size(), 1);
    for (size_t d = from.shape.size(); d-- > 1;) strides[d - 1] = strides[d] * from.shape[d];
    Ref r{.storage = from.storage, .shape = {}, .index = {}};
    int64_t base = 0;
    for (const DimPick& p : map.picks)
      base += size(p.index) * strides[static_cast<size_t>(p.source)];
    std::vector<int64_t> steps;
    for (const DimMap& d : map.dims) {
      r.shape.push_back(size(d.extent));
      const bool fresh = d.source == DimMap::kNewAxis;
      steps.push_back(fresh ? 0 : d.step * strides[static_cast<size_t>(d.source)]);
      if (!fresh) base += size(d.start) * strides[static_cast<size_t>(d.source)];
    }
    const auto n = static_cast<size_t>(element_count(r.shape));
    for (size_t i = 0; i < n; ++i) {
      int64_t at = base;
      size_t rest = i;
      for (size_t d = r.shape.size(); d-- > 0;) {
        at += static_cast<int64_t>(rest % static_cast<size_t>(r.shape[d])) * steps[d];
        rest /= static_cast<size_t>(r.shape[d]);
      }
      PK_CHECK(at >= 0 && static_cast<size_t>(at) < from.index.size(), "a view leaves its storage");
      r.index.push_back(from.index[static_cast<size_t>(at)]);
    }
    return r;
  }

  const Module& m_;
  std::vector<int64_t> symbols_;
  std::vector<RefArray> arrays_;  // by value
  std::vector<Ref> refs_;         // by value
  std::vector<std::unique_ptr<RefArray>> storage_;
  std::vector<RefArray> results_;
};

}  // namespace

std::vector<RefArray> run_graph(const Module& graph, std::span<RefArray> params) {
  return GraphInterpreter(graph, params).run();
}

bool equal(const RefArray& a, const RefArray& b) {
  if (a.dtype != b.dtype || a.shape != b.shape || a.elements.size() != b.elements.size())
    return false;
  return ir::visit(a.dtype, [&]<class T>(T*) {
    const auto nan = [&](uint64_t bits) {
      const auto value = static_cast<Arithmetic<T>>(Scalar{a.dtype, bits}.as<T>());
      return value != value;
    };
    return std::ranges::equal(a.elements, b.elements,
                              [&](uint64_t x, uint64_t y) { return x == y || (nan(x) && nan(y)); });
  });
}

}  // namespace picokernel::backend
