// NumPy's formulas for complex numbers (numpy/_core/src/umath/loops.c.src, funcs.inc.src), and
// those of C99's Annex G for what NumPy takes from the C library. No product is fused.
#include "frontend/complex.h"

#include <cmath>
#include <limits>

#include "frontend/ufuncs.h"
#include "support/check.h"

namespace picokernel::frontend {
namespace {

using ir::Opcode;
using ir::ValueId;
using Operands = std::span<const Complex>;

// Operands in braces: these are evaluated in order, a function's arguments need not be.
struct Two {
  ValueId x, y;
};
struct Three {
  ValueId condition, x, y;
};

// Formulas on real values of one dtype.
class Math {
 public:
  Math(ir::Builder& b, ValueId like) : b_(b), type_(b.module().type(like).dtype) {}

  DType type() const { return type_; }
  ValueId number(double v) { return composites::number(b_, type_, v); }
  ValueId op(Opcode opcode, ValueId x) { return b_.value(opcode, {x}); }
  ValueId op(Opcode opcode, Two v) { return b_.value(opcode, {v.x, v.y}); }
  ValueId add(Two v) { return op(Opcode::add, v); }
  ValueId sub(Two v) { return op(Opcode::sub, v); }
  ValueId mul(Two v) { return op(Opcode::mul, v); }
  ValueId div(Two v) { return op(Opcode::div, v); }
  ValueId neg(ValueId x) { return op(Opcode::neg, x); }
  ValueId abs(ValueId x) { return op(Opcode::abs, x); }
  ValueId both(Two v) { return op(Opcode::and_, v); }
  ValueId either(Two v) { return op(Opcode::or_, v); }
  ValueId select(Three v) { return b_.value(Opcode::select, {v.condition, v.x, v.y}); }
  ValueId is_zero(ValueId x) { return op(Opcode::eq, {x, number(0)}); }

 private:
  ir::Builder& b_;
  DType type_;
};

Complex add(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  return {m.add({x[0].real, x[1].real}), m.add({x[0].imag, x[1].imag})};
}
Complex subtract(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  return {m.sub({x[0].real, x[1].real}), m.sub({x[0].imag, x[1].imag})};
}
Complex product(Math& m, const Complex& x, const Complex& y) {
  const ValueId rr = m.mul({x.real, y.real}), ii = m.mul({x.imag, y.imag});
  const ValueId ri = m.mul({x.real, y.imag}), ir = m.mul({x.imag, y.real});
  return {m.sub({rr, ii}), m.add({ri, ir})};
}
Complex multiply(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  return product(m, x[0], x[1]);
}

// R. L. Smith's algorithm: divides by the larger part first. Division by zero keeps the signs.
Complex quotient(Math& m, const Complex& x, const Complex& y) {
  const ValueId real_size = m.abs(y.real), imag_size = m.abs(y.imag);
  const ValueId real_larger = m.op(Opcode::ge, {real_size, imag_size});
  const ValueId larger = m.select({real_larger, y.real, y.imag});
  const ValueId smaller = m.select({real_larger, y.imag, y.real});
  const ValueId ratio = m.div({smaller, larger});
  const ValueId scale = m.div({m.number(1), m.add({larger, m.mul({smaller, ratio})})});
  const ValueId first = m.select({real_larger, x.real, x.imag});
  const ValueId second = m.select({real_larger, x.imag, x.real});
  const ValueId scaled_real = m.mul({m.add({first, m.mul({second, ratio})}), scale});
  const ValueId by_real = m.sub({x.imag, m.mul({x.real, ratio})});
  const ValueId by_imag = m.sub({m.mul({x.imag, ratio}), x.real});
  const ValueId scaled_imag = m.mul({m.select({real_larger, by_real, by_imag}), scale});
  const ValueId zero = m.both({m.is_zero(y.real), m.is_zero(y.imag)});
  return {m.select({zero, m.div({x.real, real_size}), scaled_real}),
          m.select({zero, m.div({x.imag, real_size}), scaled_imag})};
}
Complex true_divide(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  return quotient(m, x[0], x[1]);
}

Complex positive(ir::Builder&, Operands x) { return x[0]; }
Complex negative(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  return {m.neg(x[0].real), m.neg(x[0].imag)};
}
Complex conjugate(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  return {x[0].real, m.neg(x[0].imag)};
}
Complex absolute(ir::Builder& b, Operands x) {
  return {b.value(Opcode::hypot, {x[0].real, x[0].imag}), {}};
}
Complex square(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  return product(m, x[0], x[0]);
}

Complex reciprocal(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  const ValueId real = x[0].real, imag = x[0].imag, one = m.number(1);
  const ValueId real_larger = m.op(Opcode::le, {m.abs(imag), m.abs(real)});
  const ValueId larger = m.select({real_larger, real, imag});
  const ValueId smaller = m.select({real_larger, imag, real});
  const ValueId ratio = m.div({smaller, larger});
  const ValueId denominator = m.add({larger, m.mul({smaller, ratio})});
  const ValueId large_part = m.div({one, denominator}), small_part = m.div({ratio, denominator});
  return {m.select({real_larger, large_part, small_part}),
          m.neg(m.select({real_larger, small_part, large_part}))};
}

// exp(a) overflows before its product with cos(b) or sin(b) need do so.
Complex exp(Math& m, const Complex& x) {
  const ValueId half = m.op(Opcode::exp, m.mul({x.real, m.number(0.5)}));
  const ValueId whole = m.op(Opcode::exp, x.real);
  const double limit = m.type() == DType::f32 ? 88 : 709;
  const ValueId large = m.op(Opcode::gt, {x.real, m.number(limit)});
  const ValueId finite = m.op(Opcode::isfinite, x.imag);
  // With an infinite or NaN angle: 0 stays 0, and the real part of infinity is infinite.
  const ValueId angle = m.select({finite, x.imag, m.number(0)});
  const auto scaled = [&](ValueId unit) {
    const ValueId in_two = m.mul({m.mul({unit, half}), half});
    return m.select({large, in_two, m.mul({unit, whole})});
  };
  const ValueId nan = m.sub({x.imag, x.imag});
  const ValueId infinity = m.number(std::numeric_limits<double>::infinity());
  const ValueId vanishes = m.op(Opcode::eq, {x.real, m.neg(infinity)});
  const ValueId grows = m.op(Opcode::eq, {x.real, infinity});
  const ValueId zero = m.number(0);
  const ValueId real_there = m.select({vanishes, zero, m.select({grows, infinity, nan})});
  const ValueId imag_there = m.select({vanishes, m.op(Opcode::copysign, {zero, x.imag}), nan});
  const ValueId real = m.select({finite, scaled(m.op(Opcode::cos, angle)), real_there});
  const ValueId imag = m.select({finite, scaled(m.op(Opcode::sin, angle)), imag_there});
  // A real number stays real, be its exponential infinite or NaN.
  const ValueId on_axis = m.is_zero(x.imag);
  return {m.select({on_axis, whole, real}), m.select({on_axis, x.imag, imag})};
}
Complex exp(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  return exp(m, x[0]);
}

// Near the unit circle log(hypot) loses what log1p keeps.
Complex log(Math& m, const Complex& x) {
  const ValueId real_size = m.abs(x.real), imag_size = m.abs(x.imag);
  const ValueId larger = m.op(Opcode::maximum, {real_size, imag_size});
  const ValueId smaller = m.op(Opcode::minimum, {real_size, imag_size});
  const ValueId one = m.number(1);
  const ValueId excess =
      m.add({m.mul({m.sub({larger, one}), m.add({larger, one})}), m.mul({smaller, smaller})});
  const ValueId near = m.mul({m.op(Opcode::log1p, excess), m.number(0.5)});
  const ValueId far = m.op(Opcode::log, m.op(Opcode::hypot, {x.real, x.imag}));
  const ValueId is_near = m.both(
      {m.op(Opcode::gt, {larger, m.number(0.7)}), m.op(Opcode::lt, {larger, m.number(1.5)})});
  return {m.select({is_near, near, far}), m.op(Opcode::atan2, {x.imag, x.real})};
}
Complex log(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  return log(m, x[0]);
}

// The root with a real part that is not negative (W. Kahan: Branch cuts for complex elementary
// functions, 1987); large operands are scaled by 1/4.
Complex sqrt(ir::Builder& b, Operands operands) {
  Math m(b, operands[0].real);
  const auto [x, y] = operands[0];
  const ValueId x_size = m.abs(x), y_size = m.abs(y);
  const ValueId limit = m.number(m.type() == DType::f32 ? 1e37 : 1e307);
  const ValueId large = m.op(Opcode::gt, {m.op(Opcode::maximum, {x_size, y_size}), limit});
  const ValueId down = m.select({large, m.number(0.25), m.number(1)});
  const ValueId up = m.select({large, m.number(2), m.number(1)});
  const ValueId sx = m.mul({x_size, down}), sy = m.mul({y_size, down});
  const ValueId sum = m.mul({m.add({sx, m.op(Opcode::hypot, {sx, sy})}), m.number(0.5)});
  const ValueId t = m.op(Opcode::sqrt, sum);
  const ValueId other = m.div({sy, m.mul({t, m.number(2)})});
  const ValueId right = m.op(Opcode::signbit, x);  // of the imaginary axis: not
  const ValueId zero = m.both({m.is_zero(x), m.is_zero(y)});
  const ValueId real = m.mul({m.select({right, other, t}), up});
  const ValueId size = m.mul({m.select({right, t, other}), up});
  const ValueId imag = m.op(Opcode::copysign, {size, y});
  // Infinite parts: an infinite y wins over everything, NaN included; -inf gives a zero real part.
  const ValueId infinity = m.number(std::numeric_limits<double>::infinity());
  const ValueId y_infinite = m.op(Opcode::isinf, y), x_infinite = m.op(Opcode::isinf, x);
  const ValueId y_nan = m.op(Opcode::isnan, y);
  const ValueId none = m.number(0);
  const ValueId real_inf = m.select({right, m.select({y_nan, y, none}), infinity});
  const ValueId imag_inf = m.select({right, m.op(Opcode::copysign, {infinity, y}),
                                     m.select({y_nan, y, m.op(Opcode::copysign, {none, y})})});
  const ValueId finite_real = m.select({zero, none, m.select({x_infinite, real_inf, real})});
  const ValueId finite_imag = m.select({zero, y, m.select({x_infinite, imag_inf, imag})});
  return {m.select({y_infinite, infinity, finite_real}), m.select({y_infinite, y, finite_imag})};
}

Complex power(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  const Complex general = exp(m, product(m, x[1], log(m, x[0])));
  const ValueId one = m.number(1), zero = m.number(0);
  const ValueId nan = m.number(std::numeric_limits<double>::quiet_NaN());
  const ValueId of_zero = m.both({m.is_zero(x[0].real), m.is_zero(x[0].imag)});
  const ValueId to_zero = m.both({m.is_zero(x[1].real), m.is_zero(x[1].imag)});
  const ValueId vanishes = m.op(Opcode::gt, {x[1].real, zero});
  const ValueId at_zero = m.select({vanishes, zero, nan});
  const ValueId real = m.select({of_zero, at_zero, general.real});
  const ValueId imag = m.select({of_zero, at_zero, general.imag});
  return {m.select({to_zero, one, real}), m.select({to_zero, zero, imag})};
}

Complex equal(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  return {
      m.both({m.op(Opcode::eq, {x[0].real, x[1].real}), m.op(Opcode::eq, {x[0].imag, x[1].imag})}),
      {}};
}
Complex not_equal(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  return {m.either(
              {m.op(Opcode::ne, {x[0].real, x[1].real}), m.op(Opcode::ne, {x[0].imag, x[1].imag})}),
          {}};
}
Complex isnan(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  return {m.either({m.op(Opcode::isnan, x[0].real), m.op(Opcode::isnan, x[0].imag)}), {}};
}
Complex isinf(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  return {m.either({m.op(Opcode::isinf, x[0].real), m.op(Opcode::isinf, x[0].imag)}), {}};
}
Complex isfinite(ir::Builder& b, Operands x) {
  Math m(b, x[0].real);
  return {m.both({m.op(Opcode::isfinite, x[0].real), m.op(Opcode::isfinite, x[0].imag)}), {}};
}

struct Row {
  std::string_view name;
  ComplexFunction function;
};
constexpr Row kRows[] = {
    {"add", add},
    {"subtract", subtract},
    {"multiply", multiply},
    {"power", power},
    {"true_divide", true_divide},
    {"positive", positive},
    {"negative", negative},
    {"conjugate", conjugate},
    {"absolute", absolute},
    {"square", square},
    {"reciprocal", reciprocal},
    {"exp", exp},
    {"log", log},
    {"sqrt", sqrt},
    {"equal", equal},
    {"not_equal", not_equal},
    {"isnan", isnan},
    {"isinf", isinf},
    {"isfinite", isfinite},
};

}  // namespace

ComplexFunction find_complex(std::string_view ufunc) {
  for (const Row& row : kRows)
    if (row.name == ufunc) return row.function;
  return nullptr;
}

std::string_view complex_functions() {
  return "complex numbers take + - * / **, ==, !=, abs, conj, real, imag, angle, exp, log, sqrt, "
         "square, reciprocal, isnan, isinf, isfinite, where and logical_and, or, xor, not";
}

Complex complex_power(ir::Builder& b, const Complex& x, double exponent) {
  Math m(b, x.real);
  const std::span<const Complex> operand(&x, 1);
  if (exponent == 0.5) return sqrt(b, operand);
  if (exponent == -1) return reciprocal(b, operand);
  constexpr double kMostProducts = 100;
  if (exponent != std::trunc(exponent) || std::fabs(exponent) >= kMostProducts) return {};
  const Complex one{m.number(1), m.number(0)};
  if (exponent == 0) return one;
  // NumPy's order of products.
  if (exponent == 1) return x;
  if (exponent == 2) return product(m, x, x);
  if (exponent == 3) return product(m, x, product(m, x, x));
  Complex result = one, base = x;
  for (auto n = static_cast<int>(std::fabs(exponent)); n != 0; n >>= 1) {
    if (n & 1) result = product(m, result, base);
    if (n > 1) base = product(m, base, base);
  }
  return exponent < 0 ? quotient(m, one, result) : result;
}

}  // namespace picokernel::frontend
