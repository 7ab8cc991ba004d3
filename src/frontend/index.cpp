// Indexing: slices, integers and new axes become an index map. Which side of a bound a slice falls
// on is decided by this call's sizes, and becomes a guard of the trace.
#include <algorithm>
#include <map>

#include "frontend/state.h"
#include "ir/pairs.h"
#include "support/check.h"

namespace picokernel::frontend {
namespace {

using ir::Relation;

// Bounds of one slice as expressions, the way Python clips them.
class Slicer {
 public:
  Slicer(ir::Module& m, std::span<const int64_t> sizes, SizeId n) : m_(m), sizes_(sizes), n_(n) {}

  // Bounds that are not there are invalid.
  ir::DimMap run(SizeId from, SizeId to, int64_t step, int32_t source) {
    const SizeId zero = constant(0), one = constant(1), last = m_.sizes.sub(n_, one);
    const SizeId start = from.valid() ? clip(from, step) : step > 0 ? zero : last;
    const SizeId stop = to.valid() ? clip(to, step) : step > 0 ? n_ : constant(-1);
    const SizeId span = step > 0 ? m_.sizes.sub(stop, start) : m_.sizes.sub(start, stop);
    SizeId extent = zero;
    if (at_least(span, one)) {
      const SizeId width = constant(step > 0 ? step : -step);
      extent = m_.sizes.floordiv(m_.sizes.sub(m_.sizes.add(span, width), one), width);
      // Whether an extent is 1 decides how it broadcasts.
      if (is_one(extent)) extent = one;
    }
    return {.source = source, .start = start, .step = step, .extent = extent};
  }

  // The element at `index`, which may count from the end; nothing if it lies outside.
  std::optional<SizeId> pick(SizeId index) {
    const bool from_end = !at_least(index, constant(0));
    const SizeId at = from_end ? m_.sizes.add(n_, index) : index;
    const bool inside =
        from_end ? at_least(at, constant(0)) : at_least(n_, m_.sizes.add(index, constant(1)));
    return inside ? std::optional(at) : std::nullopt;
  }

 private:
  SizeId constant(int64_t v) { return m_.sizes.constant(v); }
  int64_t value(SizeId s) const { return m_.sizes.eval(s, sizes_); }

  void guard(SizeId left, Relation relation, SizeId right) {
    if (m_.sizes.as_constant(left) && m_.sizes.as_constant(right)) return;
    for (const ir::Guard& g : m_.guards)
      if (g.left == left && g.relation == relation && g.right == right) return;
    m_.guards.push_back({left, relation, right});
  }
  bool at_least(SizeId a, SizeId b) {
    const bool holds = value(a) >= value(b);
    if (holds)
      guard(a, Relation::ge, b);
    else
      guard(m_.sizes.sub(b, constant(1)), Relation::ge, a);
    return holds;
  }
  bool is_one(SizeId s) {
    const bool one = value(s) == 1;
    guard(s, one ? Relation::eq : Relation::ne, constant(1));
    return one;
  }

  // A bound of a slice: negative ones count from the end; those outside stop at the nearest end.
  SizeId clip(SizeId bound, int64_t step) {
    const SizeId low = constant(step > 0 ? 0 : -1),
                 high = step > 0 ? n_ : m_.sizes.sub(n_, constant(1));
    if (!at_least(bound, constant(0))) {
      const SizeId at = m_.sizes.add(n_, bound);
      return at_least(at, low) ? at : low;
    }
    return at_least(high, bound) ? bound : high;
  }

  ir::Module& m_;
  std::span<const int64_t> sizes_;
  SizeId n_;
};

}  // namespace

// Guards on one symbol in the form `n >= k`, only the strongest of each; every fact once.
void Tracer::State::simplify_guards() {
  std::map<SizeId, int64_t> at_least;
  std::vector<ir::Guard> kept;
  const SizeId zero = m.sizes.constant(0);
  for (const ir::Guard& g : m.guards) {
    const SizeId difference = m.sizes.sub(g.left, g.right);
    if (m.sizes.as_constant(difference)) continue;  // decided when two sizes became one
    const SizeNode node = m.sizes[difference];
    const bool plain =
        node.kind == SizeKind::symbol ||
        (node.kind == SizeKind::sum && node.terms.size() == 1 && node.terms[0].second == 1);
    const SizeId term = node.kind == SizeKind::sum && plain ? node.terms[0].first : difference;
    const int64_t offset = node.kind == SizeKind::sum && plain ? node.constant : 0;
    if (plain && g.relation == Relation::ge) {
      const auto [known, added] = at_least.try_emplace(term, -offset);
      if (!added) known->second = std::max(known->second, -offset);
      continue;
    }
    const ir::Guard same = plain ? ir::Guard{term, g.relation, m.sizes.constant(-offset)}
                                 : ir::Guard{difference, g.relation, zero};
    const auto equal = [&](const ir::Guard& other) {
      return other.left == same.left && other.relation == same.relation &&
             other.right == same.right;
    };
    if (std::ranges::none_of(kept, equal)) kept.push_back(same);
  }
  m.guards.clear();
  for (const auto& [term, bound] : at_least)
    m.guards.push_back({term, Relation::ge, m.sizes.constant(bound)});
  // What a bound says already.
  for (const ir::Guard& g : kept) {
    const auto bound = at_least.find(g.left);
    const auto value = m.sizes.as_constant(g.right);
    if (g.relation == Relation::ne && bound != at_least.end() && value && *value < bound->second)
      continue;
    m.guards.push_back(g);
  }
}

ir::ValueId Tracer::State::storage_of(const Value& v) {
  if (v.kind == Value::Kind::ref) return v.id;
  // A computed array has no storage until somebody looks at a part of it.
  if (v.complex) return m.def(ir::make_pairs(b, v.id, v.imag, m.type(v.id).shape))->operands[0];
  const ir::ValueId value = read(v), scratch = b.scratch(m.type(value).dtype, m.type(value).shape);
  b.write(scratch, value);
  return scratch;
}

SizeId Tracer::State::bound(const Value& v) {
  using ir::Opcode;
  if (v.kind == Value::Kind::literal) return m.sizes.constant(std::get<int64_t>(v.literal));
  const ir::Op* op = m.def(v.id);
  const auto operand = [&](size_t i) {
    return bound({.kind = Value::Kind::value, .weak = true, .id = m.def(v.id)->operands[i]});
  };
  if (op != nullptr) {
    if (op->opcode == Opcode::size) return op->size();
    if (op->opcode == Opcode::constant) return m.sizes.constant(op->scalar().as<int64_t>());
    if (op->opcode == Opcode::neg) return m.sizes.mul(m.sizes.constant(-1), operand(0));
    if (op->opcode == Opcode::add || op->opcode == Opcode::sub || op->opcode == Opcode::mul ||
        op->opcode == Opcode::floordiv || op->opcode == Opcode::minimum ||
        op->opcode == Opcode::maximum) {
      const Opcode opcode = op->opcode;
      const SizeId x = operand(0), y = operand(1);
      return opcode == Opcode::add        ? m.sizes.add(x, y)
             : opcode == Opcode::sub      ? m.sizes.sub(x, y)
             : opcode == Opcode::mul      ? m.sizes.mul(x, y)
             : opcode == Opcode::floordiv ? m.sizes.floordiv(x, y)
             : opcode == Opcode::minimum  ? m.sizes.minimum(x, y)
                                          : m.sizes.maximum(x, y);
    }
  }
  compile_error("a bound of a slice is computed at run time",
                {"bounds are integers made of sizes and constants by + - * // min and max",
                 "hint: compute it before the call and pass it as an int"});
}

ir::DimMap Tracer::State::whole_dimension(ir::ValueId ref, size_t dimension) {
  return {.source = static_cast<int32_t>(dimension),
          .start = m.sizes.constant(0),
          .step = 1,
          .extent = m.type(ref).shape[dimension]};
}

Value Tracer::storage(Value v, const Location& where) {
  state_->at(where);
  return {.kind = Value::Kind::ref, .complex = v.complex, .id = state_->storage_of(v)};
}

Value Tracer::index(Value v, std::span<const Index> indices, const Location& where) {
  State& s = *state_;
  s.at(where);
  const size_t rank = s.shape(v).size();
  size_t used = 0;
  for (const Index& i : indices)
    used += i.kind == Index::Kind::slice || i.kind == Index::Kind::integer;
  if (used > rank)
    s.compile_error("too many indices: " + std::to_string(used) + " for an array of " +
                        std::to_string(rank) + " dimensions",
                    {"hint: index at most once per dimension"});
  std::vector<Index> full;  // the ellipsis spelled out
  bool ellipsis = false;
  for (const Index& i : indices) {
    if (i.kind != Index::Kind::ellipsis) {
      full.push_back(i);
      continue;
    }
    if (ellipsis)
      s.compile_error("an index has more than one ellipsis",
                      {"hint: one ... stands for all that is not named"});
    ellipsis = true;
    full.insert(full.end(), rank - used, Index{});
  }
  if (!ellipsis) full.insert(full.end(), rank - used, Index{});

  const ir::ValueId storage = s.storage_of(v);
  ir::IndexMap map;
  int32_t source = 0;
  for (const Index& i : full) {
    if (i.kind == Index::Kind::newaxis) {
      map.dims.push_back({.source = ir::DimMap::kNewAxis,
                          .start = {},
                          .step = 1,
                          .extent = s.m.sizes.constant(1)});
      continue;
    }
    const SizeId n = s.m.type(storage).shape[static_cast<size_t>(source)];
    Slicer slicer(s.m, s.symbol_sizes, n);
    if (i.kind == Index::Kind::integer) {
      const SizeId index = s.bound(i.integer);
      const std::optional<SizeId> at = slicer.pick(index);
      if (!at)
        s.launch_error("index " + std::to_string(s.m.sizes.eval(index, s.symbol_sizes)) +
                           " is out of bounds for dimension " + std::to_string(source) +
                           " of size " + std::to_string(s.m.sizes.eval(n, s.symbol_sizes)),
                       "hint: indices go from -n to n - 1");
      map.picks.push_back({.source = source, .index = *at});
    } else if (i.step == 0) {
      s.compile_error("the step of a slice is 0",
                      {"hint: steps are positive, or negative to go backwards"});
    } else {
      const SizeId start = i.start ? s.bound(*i.start) : SizeId{};
      const SizeId stop = i.stop ? s.bound(*i.stop) : SizeId{};
      map.dims.push_back(slicer.run(start, stop, i.step, source));
    }
    ++source;
  }
  if (v.complex) map.dims.push_back(s.whole_dimension(storage, static_cast<size_t>(source)));
  return {.kind = Value::Kind::ref, .complex = v.complex, .id = s.b.view(storage, std::move(map))};
}

Value Tracer::transpose(Value v, std::span<const size_t> axes, const Location& where) {
  State& s = *state_;
  s.at(where);
  const ir::ValueId storage = s.storage_of(v);
  ir::IndexMap map;
  for (const size_t axis : axes) map.dims.push_back(s.whole_dimension(storage, axis));
  if (v.complex) map.dims.push_back(s.whole_dimension(storage, axes.size()));
  PK_CHECK(map.dims.size() == s.m.type(storage).shape.size());
  return {.kind = Value::Kind::ref, .complex = v.complex, .id = s.b.view(storage, std::move(map))};
}

}  // namespace picokernel::frontend
