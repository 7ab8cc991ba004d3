// Random graphs: reads, elementwise ops of all types, views, stores, several results.
#include "random_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/builder.h"
#include "ir/eval.h"
#include "ir/typing.h"

namespace picokernel::fuzz {
namespace {

using namespace ir;

class Generator {
 public:
  Generator(uint64_t seed, int steps) : random_(seed), steps_(steps), b_(program_.graph) {}

  Program run() {
    Module& m = program_.graph;
    m.name = "fuzz";
    const int64_t sizes[] = {0, 1, 2, 3, 5, 17, 33};
    for (uint32_t s = 0; s < 3; ++s) {
      symbols_.push_back(m.sizes.symbol(s));
      values_.push_back(sizes[s == 0 ? 2 + below(5) : below(7)]);
    }
    const size_t params = 1 + below(4);
    for (size_t i = 0; i < params; ++i) param();
    for (int i = 0; i < steps_; ++i) step();
    finish();
    return std::move(program_);
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  bool chance(size_t one_in) { return below(one_in) == 0; }
  DType dtype() { return static_cast<DType>(below(kRealDTypeCount)); }

  uint64_t element(DType t) {
    if (is_bool(t)) return below(2);
    if (is_float(t)) {
      static const double special[] = {0.0,   -0.0,     1.0,       -1.0, 0.5,  2.0,  1e30, -1e30,
                                       1e-40, INFINITY, -INFINITY, NAN,  3.75, -8.0, 100.0};
      const double v =
          chance(3) ? special[below(std::size(special))]
                    : static_cast<double>(static_cast<int64_t>(random_() % 2001) - 1000) / 16;
      return ir::cast(Scalar::of(v), t).bits;
    }
    const int64_t v =
        chance(3) ? static_cast<int64_t>(random_()) : static_cast<int64_t>(random_() % 41) - 20;
    return ir::cast(Scalar::of(v), t).bits;
  }

  void param() {
    Module& m = program_.graph;
    Type type{.kind = chance(5) ? TypeKind::value : TypeKind::ref, .dtype = dtype()};
    backend::RefArray a{.dtype = type.dtype, .shape = {}, .elements = {}};
    size_t count = 1;
    if (type.kind == TypeKind::ref) {
      const size_t rank = below(4);
      for (size_t d = 0; d < rank; ++d) {
        const size_t s = below(4);
        type.shape.push_back(s == 3 ? m.sizes.constant(1) : symbols_[s]);
        a.shape.push_back(s == 3 ? 1 : values_[s]);
        count *= static_cast<size_t>(a.shape.back());
      }
    }
    for (size_t i = 0; i < count; ++i) a.elements.push_back(element(type.dtype));
    const ValueId v = b_.param(type);
    (type.kind == TypeKind::ref ? refs_ : pool_).push_back(v);
    program_.arguments.push_back(std::move(a));
  }

  ValueId any_value() {
    if (pool_.empty() || chance(4)) {
      if (!refs_.empty() && !chance(4)) {
        pool_.push_back(b_.read(refs_[below(refs_.size())]));
      } else {
        const DType t = dtype();
        pool_.push_back(b_.constant({t, element(t)}));
      }
    }
    return pool_[below(pool_.size())];
  }

  // Every size is bound: symbols that no parameter has cannot be used alone, so views take theirs
  // from the ref.
  void view() {
    if (refs_.empty()) return;
    Module& m = program_.graph;
    const ValueId ref = refs_[below(refs_.size())];
    const std::vector<SizeId> shape = m.type(ref).shape;
    IndexMap map;
    std::vector<size_t> order(shape.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = d;
    if (chance(2)) std::shuffle(order.begin(), order.end(), random_);
    for (const size_t d : order) {
      const SizeId n = shape[d];
      const int64_t size = m.sizes.eval(n, values_);
      const auto source = static_cast<int32_t>(d);
      const size_t kind = below(5);
      const SizeId zero = m.sizes.constant(0), one = m.sizes.constant(1);
      if (kind == 0 && size > 0) {
        map.picks.push_back(
            {source, m.sizes.constant(static_cast<int64_t>(below(static_cast<size_t>(size))))});
      } else if (kind == 1 && size > 0) {
        map.dims.push_back(
            {.source = source, .start = m.sizes.sub(n, one), .step = -1, .extent = n});
      } else if (kind == 2 && size > 1) {
        map.dims.push_back({.source = source,
                            .start = chance(2) ? one : zero,
                            .step = 1,
                            .extent = m.sizes.sub(n, one)});
      } else if (kind == 3 && size > 1) {
        map.dims.push_back({.source = source,
                            .start = zero,
                            .step = 2,
                            .extent = m.sizes.floordiv(m.sizes.add(n, one), m.sizes.constant(2))});
      } else {
        map.dims.push_back({.source = source, .start = zero, .step = 1, .extent = n});
      }
    }
    if (chance(5))
      map.dims.insert(
          map.dims.begin(),
          {.source = DimMap::kNewAxis, .start = {}, .step = 1, .extent = m.sizes.constant(1)});
    refs_.push_back(b_.view(ref, std::move(map)));
  }

  // A view that shows an element twice is no target.
  void write() {
    if (refs_.empty()) return;
    const ValueId ref = refs_[below(refs_.size())];
    ValueId v = any_value();
    const Type target = program_.graph.type(ref);
    v = b_.cast(v, target.dtype);
    std::vector<SizeId> shape;
    if (!ir::broadcast(program_.graph, target.shape, program_.graph.type(v).shape, shape) ||
        shape != target.shape)
      return;
    b_.write(ref, v);
  }

  void step() {
    const size_t kind = below(10);
    if (kind == 0) return view();
    if (kind == 1) return write();
    const std::span<const OpInfo> ops = all_ops();
    const OpInfo& op = ops[below(ops.size())];
    if (!op.elementwise()) return;
    // A power of a power of large floats is as good as any, but slow libm paths are not the point.
    std::vector<ValueId> operands;
    const ValueId first = any_value();
    DType t = program_.graph.type(first).dtype;
    if (op.opcode != Opcode::cast && !allows(op.allowed, t))
      t = op.allowed == Allowed::floating ? DType::f32 : DType::i32;
    if (op.opcode == Opcode::cast) {
      pool_.push_back(b_.cast(first, dtype()));
      return;
    }
    if (op.opcode == Opcode::bitcast) {  // which bits a computed NaN has is open
      const DType from = program_.graph.type(first).dtype, to = dtype();
      if (is_integer(from) && !is_bool(to) && size_of(from) == size_of(to))
        pool_.push_back(b_.value(Opcode::bitcast, {first}, 0, {{.dtype = to}}));
      return;
    }
    for (int i = 0; i < op.operands; ++i) {
      const bool condition = op.rule == Rule::select && i == 0;
      operands.push_back(b_.cast(i == 0 ? first : any_value(), condition ? DType::b1 : t));
    }
    // Which sign a computed NaN has is open too.
    if ((op.opcode == Opcode::signbit || op.opcode == Opcode::copysign) && is_float(t)) {
      const double least = -std::numeric_limits<double>::infinity();
      operands.back() = b_.value(
          Opcode::fmax, {operands.back(), b_.constant(ir::cast(ir::Scalar::of(least), t))});
    }
    if (ir::infer(program_.graph, op.opcode, operands, 0, {}).ok())
      pool_.push_back(b_.value(op.opcode, std::move(operands)));
  }

  void finish() {
    std::vector<ValueId> results;
    const size_t count = below(3);
    for (size_t i = 0; i < count; ++i) results.push_back(any_value());
    if (results.empty() && chance(2)) results.push_back(any_value());
    if (!results.empty()) b_.return_values(std::move(results));
  }

  std::mt19937_64 random_;
  int steps_;
  Program program_;
  Builder b_;
  std::vector<SizeId> symbols_;
  std::vector<int64_t> values_;
  std::vector<ValueId> pool_, refs_;
};

}  // namespace

Program random_program(uint64_t seed, int steps) { return Generator(seed, steps).run(); }

}  // namespace picokernel::fuzz
