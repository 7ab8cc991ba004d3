// Expressions of IR written with C++'s operators: what the expansions of mathematical functions are
// made of.
#pragma once

#include <concepts>
#include <deque>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "ir/builder.h"
#include "ir/eval.h"

namespace picokernel::passes::math {

class Formula;

// A node of a formula: a scalar of one dtype. Cheap to copy; lives as long as its formula.
class Value {
 public:
  Value() = default;
  Value(Formula* formula, uint32_t node) : formula_(formula), node_(node) {}

  Formula& formula() const { return *formula_; }
  uint32_t node() const { return node_; }
  DType dtype() const;
  /// A constant of this value's dtype.
  template <class T>
    requires std::is_arithmetic_v<T>
  Value like(T constant) const;

 private:
  Formula* formula_ = nullptr;
  uint32_t node_ = 0;
};

using Values = std::vector<Value>;

// Builds a graph of nodes first and writes ops last, operands from left to right: the text does not
// depend on the order in which a C++ compiler evaluates arguments, and what nobody uses is never
// written. A node is written once, where it is first needed; nodes made inside of a region belong
// to it and may not be used outside.
class Formula {
 public:
  explicit Formula(ir::Builder& b) : b_(b) {}
  Formula(const Formula&) = delete;
  Formula& operator=(const Formula&) = delete;

  Value of(ir::ValueId v);
  Value constant(ir::Scalar s);
  Value op(ir::Opcode opcode, Values operands);
  Value cast(Value v, DType to);
  Value bitcast(Value v, DType to);

  /// `then()` where the condition holds, else `otherwise`, value by value. For rare cases: vector
  /// code computes `then` only if some lane needs it.
  Values branch(Value condition, const std::function<Values()>& then, Values otherwise);
  /// The carried values after as many turns of `body` as `condition` holds.
  Values loop(Values initial, const std::function<Value(const Values&)>& condition,
              const std::function<Values(const Values&)>& body);

  DType dtype(Value v) const { return nodes_[v.node()].dtype; }
  /// Writes what is not yet written.
  ir::ValueId emit(Value v);

 private:
  struct Region {
    uint32_t first = 0;  // nodes before it belong to the outside
    Values params, results;
  };
  struct Node {
    ir::Opcode opcode = ir::Opcode::constant;
    DType dtype = DType::f32;
    uint64_t attribute = 0;  // of a constant: its bits; of a result of control flow: its number
    std::vector<uint32_t> operands = {};
    std::vector<Region> regions = {};
    uint32_t owner = 0;  // of a result of control flow: the node of the op
    ir::ValueId emitted = {};
    std::vector<ir::ValueId> results = {};
    enum class Kind : uint8_t { given, constant, op, control, result } kind = Kind::op;
  };

  uint32_t add(Node node);
  ir::ValueId emit(uint32_t node);
  /// The nodes of the outside that the region uses, from left to right.
  void emit_outside(const Region& region);
  ir::BlockId emit_region(const Region& region);
  void emit_control(uint32_t node);
  Values results_of(uint32_t control, std::span<const Value> like);

  ir::Builder& b_;
  std::deque<Node> nodes_;
};

inline DType Value::dtype() const { return formula_->dtype(*this); }

template <class T>
  requires std::is_arithmetic_v<T>
Value Value::like(T constant) const {
  // size_t is neither uint32_t nor uint64_t on macOS.
  using Number = std::conditional_t<std::is_same_v<T, size_t>, uint64_t, T>;
  return formula_->constant(ir::cast(ir::Scalar::of(static_cast<Number>(constant)), dtype()));
}

namespace detail {
inline Value binary(ir::Opcode opcode, Value x, Value y) { return x.formula().op(opcode, {x, y}); }
inline Value unary(ir::Opcode opcode, Value x) { return x.formula().op(opcode, {x}); }
}  // namespace detail

// Numbers beside a value take its dtype.
#define PK_BINARY(name, opcode)                                                            \
  inline Value name(Value x, Value y) { return detail::binary(ir::Opcode::opcode, x, y); } \
  template <class T>                                                                       \
    requires std::is_arithmetic_v<T>                                                       \
  Value name(Value x, T y) {                                                               \
    return detail::binary(ir::Opcode::opcode, x, x.like(y));                               \
  }                                                                                        \
  template <class T>                                                                       \
    requires std::is_arithmetic_v<T>                                                       \
  Value name(T x, Value y) {                                                               \
    return detail::binary(ir::Opcode::opcode, y.like(x), y);                               \
  }
PK_BINARY(operator+, add)
PK_BINARY(operator-, sub)
PK_BINARY(operator*, mul)
PK_BINARY(operator/, div)
PK_BINARY(operator&, and_)
PK_BINARY(operator|, or_)
PK_BINARY(operator^, xor_)
PK_BINARY(operator<<, shl)
PK_BINARY(operator>>, shr)
PK_BINARY(operator==, eq)
PK_BINARY(operator!=, ne)
PK_BINARY(operator<, lt)
PK_BINARY(operator<=, le)
PK_BINARY(operator>, gt)
PK_BINARY(operator>=, ge)
PK_BINARY(copysign, copysign)
#undef PK_BINARY

#define PK_UNARY(name, opcode) \
  inline Value name(Value x) { return detail::unary(ir::Opcode::opcode, x); }
PK_UNARY(operator-, neg)
PK_UNARY(operator~, not_)
PK_UNARY(operator!, not_)
PK_UNARY(abs, abs)
PK_UNARY(sqrt, sqrt)
PK_UNARY(rint, rint)
PK_UNARY(trunc, trunc)
PK_UNARY(floor, floor)
PK_UNARY(isnan, isnan)
PK_UNARY(isinf, isinf)
PK_UNARY(isfinite, isfinite)
PK_UNARY(signbit, signbit)
#undef PK_UNARY

inline Value fma(Value x, Value y, Value z) { return x.formula().op(ir::Opcode::fma, {x, y, z}); }
inline Value fma(Value x, Value y, double z) { return fma(x, y, x.like(z)); }
inline Value fma(Value x, double y, Value z) { return fma(x, x.like(y), z); }
inline Value fma(Value x, double y, double z) { return fma(x, x.like(y), x.like(z)); }
inline Value select(Value c, Value x, Value y) {
  return c.formula().op(ir::Opcode::select, {c, x, y});
}
inline Value select(Value c, Value x, double y) { return select(c, x, x.like(y)); }
inline Value select(Value c, double x, Value y) { return select(c, y.like(x), y); }
inline Value cast(Value v, DType to) { return v.formula().cast(v, to); }
inline Value bitcast(Value v, DType to) { return v.formula().bitcast(v, to); }

/// The bits of a float as a signed integer of its size, and back.
Value bits(Value v);
Value float_of(Value bits);

/// `then()` where the condition holds, else `otherwise`; see Formula::branch.
Value rare(Value condition, const std::function<Value()>& then, Value otherwise);

/// c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule with fma.
Value horner(Value x, std::span<const double> c);

// A number as a sum: low is at most half a unit in the last place of high.
struct Pair {
  Value high, low;
};
/// x + y exactly. fast_two_sum: |x| >= |y| or x is 0.
Pair two_sum(Value x, Value y);
Pair fast_two_sum(Value x, Value y);
/// x * y exactly, but for underflow.
Pair two_product(Value x, Value y);

}  // namespace picokernel::passes::math
