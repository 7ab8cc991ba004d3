// Interval arithmetic over the definitions of values, and facts of conditions.
#include "frontend/threads/ranges.h"

#include <algorithm>

namespace picokernel::frontend::threads {

using ir::Opcode;
using ir::ValueId;

namespace {

constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max(), kMaxThreads = 1024;

// All bounds of the results; without bounds if one overflows.
template <class F>
Range corners(Range x, Range y, F overflows) {
  Range r{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  for (const int64_t a : {x.low, x.high})
    for (const int64_t b : {y.low, y.high}) {
      int64_t v = 0;
      if (overflows(a, b, &v)) return {};
      r = {std::min(r.low, v), std::max(r.high, v)};
    }
  return r;
}

Range meet(Range x, Range y) { return {std::max(x.low, y.low), std::min(x.high, y.high)}; }
Range hull(Range x, Range y) { return {std::min(x.low, y.low), std::max(x.high, y.high)}; }

Range of_type(DType t) {
  const int bits = static_cast<int>(8 * size_of(t));
  if (is_bool(t)) return {0, 1};
  if (is_unsigned(t)) return bits == 64 ? Range{} : Range{0, (int64_t{1} << bits) - 1};
  if (!is_signed(t) || bits == 64) return {};
  return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

}  // namespace

Range Ranges::of(ValueId v, int depth) const {
  Range r = computed(v, depth);
  if (const auto it = known_.find(v); it != known_.end()) r = meet(r, it->second);
  for (const Facts& f : facts_)
    if (const auto it = f.find(v); it != f.end()) r = meet(r, it->second);
  return r;
}

Range Ranges::computed(ValueId v, int depth) const {
  const Range any = of_type(m_.type(v).dtype);
  const ir::Op* op = m_.def(v);
  if (op == nullptr || depth == 0 || !is_integer(m_.type(v).dtype)) return any;
  const auto x = [&](size_t i) { return of(op->operands[i], depth - 1); };
  const auto within = [&](Range r) { return r.low < any.low || r.high > any.high ? any : r; };
  switch (op->opcode) {
    case Opcode::constant: {
      if (m_.type(v).dtype == DType::u64) return {};
      const auto value = static_cast<int64_t>(op->attribute);
      return {value, value};
    }
    case Opcode::thread_id:
      return {0, kMaxThreads - 1};
    case Opcode::block_dim:
      return {1, kMaxThreads};
    case Opcode::block_id:
      return {0, kMaxBlocks - 1};
    case Opcode::grid_dim:
      return {1, kMaxBlocks};
    case Opcode::add:
      return within(corners(x(0), x(1), [](auto... a) { return __builtin_add_overflow(a...); }));
    case Opcode::sub:
      return within(corners(x(0), x(1), [](auto... a) { return __builtin_sub_overflow(a...); }));
    case Opcode::mul:
      return within(corners(x(0), x(1), [](auto... a) { return __builtin_mul_overflow(a...); }));
    case Opcode::floordiv: {
      const Range n = x(0), d = x(1);
      return n.low >= 0 && d.low >= 1 ? Range{0, n.high} : any;
    }
    case Opcode::mod: {
      const Range d = x(1);
      return d.low >= 1 ? Range{0, d.high - 1} : any;
    }
    case Opcode::shr: {
      const Range n = x(0);
      return n.low >= 0 ? Range{0, n.high} : any;
    }
    case Opcode::and_: {
      const Range a = x(0), b = x(1);
      if (a.low < 0 && b.low < 0) return any;
      return {0, a.low < 0 ? b.high : b.low < 0 ? a.high : std::min(a.high, b.high)};
    }
    case Opcode::minimum:
    case Opcode::maximum: {
      const Range a = x(0), b = x(1);
      return op->opcode == Opcode::minimum
                 ? Range{std::min(a.low, b.low), std::min(a.high, b.high)}
                 : Range{std::max(a.low, b.low), std::max(a.high, b.high)};
    }
    case Opcode::select:
      return hull(x(1), x(2));
    case Opcode::cast:
      return is_float(m_.type(op->operands[0]).dtype) ? any : within(x(0));
    default:
      return any;
  }
}

void Ranges::enter(ValueId condition, bool holds) {
  Facts facts;
  assume(condition, holds, facts);
  facts_.push_back(std::move(facts));
}

void Ranges::assume(ValueId condition, bool holds, Facts& facts) const {
  const ir::Op* op = m_.def(condition);
  if (op == nullptr) return;
  if (op->opcode == Opcode::not_) return assume(op->operands[0], !holds, facts);
  if (op->opcode == (holds ? Opcode::and_ : Opcode::or_)) {
    assume(op->operands[0], holds, facts);
    assume(op->operands[1], holds, facts);
    return;
  }
  if (op->operands.size() != 2 || m_.type(op->operands[0]).dtype != DType::i64) return;
  const ValueId x = op->operands[0], y = op->operands[1];
  const auto add = [&](ValueId v, Range r) {
    const auto [it, fresh] = facts.try_emplace(v, r);
    if (!fresh) it->second = meet(it->second, r);
  };
  const auto at_most = [&](ValueId low, ValueId high, int64_t gap) {
    const Range l = of(low), h = of(high);
    int64_t bound = 0;
    if (!__builtin_sub_overflow(h.high, gap, &bound)) add(low, {.high = bound});
    if (!__builtin_add_overflow(l.low, gap, &bound)) add(high, {.low = bound});
  };
  const Opcode c = op->opcode;
  if (c == Opcode::eq && holds) {
    add(x, of(y));
    add(y, of(x));
  }
  if (c == Opcode::lt) holds ? at_most(x, y, 1) : at_most(y, x, 0);
  if (c == Opcode::le) holds ? at_most(x, y, 0) : at_most(y, x, 1);
  if (c == Opcode::gt) holds ? at_most(y, x, 1) : at_most(x, y, 0);
  if (c == Opcode::ge) holds ? at_most(y, x, 0) : at_most(x, y, 1);
}

}  // namespace picokernel::frontend::threads
