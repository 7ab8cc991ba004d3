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
  Slicer(Tracer::State& s, SizeId n) : s_(s), m_(s.m), n_(n) {}

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
      if (s_.equal(extent, one)) extent = one;
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
  bool at_least(SizeId a, SizeId b) { return s_.at_least(a, b); }

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

  Tracer::State& s_;
  ir::Module& m_;
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

void Tracer::State::guard(SizeId left, Relation relation, SizeId right) {
  if (m.sizes.as_constant(left) && m.sizes.as_constant(right)) return;
  for (const ir::Guard& g : m.guards)
    if (g.left == left && g.relation == relation && g.right == right) return;
  m.guards.push_back({left, relation, right});
}

bool Tracer::State::at_least(SizeId a, SizeId b) {
  const bool holds = m.sizes.eval(a, symbol_sizes) >= m.sizes.eval(b, symbol_sizes);
  if (holds)
    guard(a, Relation::ge, b);
  else
    guard(m.sizes.sub(b, m.sizes.constant(1)), Relation::ge, a);
  return holds;
}

bool Tracer::State::equal(SizeId a, SizeId b) {
  const bool holds = m.sizes.eval(a, symbol_sizes) == m.sizes.eval(b, symbol_sizes);
  guard(a, holds ? Relation::eq : Relation::ne, b);
  return holds;
}

std::optional<SizeId> Tracer::State::as_size(const Value& v) {
  using ir::Opcode;
  if (v.kind == Value::Kind::literal) {
    const auto* number = std::get_if<int64_t>(&v.literal);
    return number != nullptr ? std::optional(m.sizes.constant(*number)) : std::nullopt;
  }
  const ir::Op* op = v.kind == Value::Kind::value ? m.def(v.id) : nullptr;
  if (op == nullptr || !is_integer(m.type(v.id).dtype)) return std::nullopt;
  if (op->opcode == Opcode::size) return op->size();
  if (op->opcode == Opcode::constant) return m.sizes.constant(op->scalar().as<int64_t>());
  std::vector<SizeId> x;
  for (const ir::ValueId operand : std::vector(op->operands)) {
    const auto size = as_size({.kind = Value::Kind::value, .weak = true, .id = operand});
    if (!size) return std::nullopt;
    x.push_back(*size);
  }
  const Opcode opcode = m.def(v.id)->opcode;
  if (opcode == Opcode::neg) return m.sizes.mul(m.sizes.constant(-1), x[0]);
  if (opcode == Opcode::add) return m.sizes.add(x[0], x[1]);
  if (opcode == Opcode::sub) return m.sizes.sub(x[0], x[1]);
  if (opcode == Opcode::mul) return m.sizes.mul(x[0], x[1]);
  if (opcode == Opcode::floordiv) return m.sizes.floordiv(x[0], x[1]);
  if (opcode == Opcode::minimum) return m.sizes.minimum(x[0], x[1]);
  if (opcode == Opcode::maximum) return m.sizes.maximum(x[0], x[1]);
  return std::nullopt;
}

SizeId Tracer::State::bound(const Value& v) {
  if (const auto size = as_size(v)) return *size;
  compile_error("a bound of a slice is computed at run time",
                {"bounds are integers made of sizes and constants by + - * // min and max",
                 "hint: compute it before the call and pass it as an int"});
}

std::optional<bool> Tracer::decide(Value v, const Location& where) {
  using ir::Opcode;
  State& s = *state_;
  s.at(where);
  const SizeId one = s.m.sizes.constant(1);
  if (const auto number = s.as_size(v)) return !s.equal(*number, s.m.sizes.constant(0));
  const ir::Op* op = v.kind == Value::Kind::value ? s.m.def(v.id) : nullptr;
  if (op == nullptr || ir::info(op->opcode).rule != ir::Rule::compare) return std::nullopt;
  const Opcode opcode = op->opcode;
  const ir::ValueId left = op->operands[0], right = op->operands[1];
  const auto x = s.as_size({.kind = Value::Kind::value, .weak = true, .id = left});
  const auto y = s.as_size({.kind = Value::Kind::value, .weak = true, .id = right});
  if (!x || !y) return std::nullopt;
  if (opcode == Opcode::eq) return s.equal(*x, *y);
  if (opcode == Opcode::ne) return !s.equal(*x, *y);
  if (opcode == Opcode::ge) return s.at_least(*x, *y);
  if (opcode == Opcode::le) return s.at_least(*y, *x);
  if (opcode == Opcode::gt) return s.at_least(*x, s.m.sizes.add(*y, one));
  PK_CHECK(opcode == Opcode::lt, ir::info(opcode).name);
  return s.at_least(*y, s.m.sizes.add(*x, one));
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
    Slicer slicer(s, n);
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
