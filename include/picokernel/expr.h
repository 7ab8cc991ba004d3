// Traced values: what a kernel's parameters are while it is traced. Operators and functions build
// the kernel; nothing is computed. Types and results follow NumPy 2 (NEP 50): C++ numbers are weak,
// as Python's are, so `x * 2.0` keeps the type of a float array x.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <version>

#ifdef __cpp_lib_source_location
#include <source_location>
#endif

#include <picokernel/diagnostic.h>
#include <picokernel/dtype.h>

namespace picokernel {

#ifdef __cpp_lib_source_location
using SourceLocation = std::source_location;
#else
// What compilers without std::source_location know.
class SourceLocation {
 public:
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          uint32_t line = __builtin_LINE()) noexcept {
    SourceLocation here;
    here.file_ = file;
    here.line_ = line;
    return here;
  }
  constexpr const char* file_name() const noexcept { return file_; }
  constexpr uint32_t line() const noexcept { return line_; }
  constexpr uint32_t column() const noexcept { return 1; }

 private:
  const char* file_ = "";
  uint32_t line_ = 0;
};
#endif

template <class T>
concept Number = std::is_arithmetic_v<T>;

namespace detail {
struct ExprAccess;
template <class>
inline constexpr bool kNever = false;
}  // namespace detail

/// NumPy's start:stop:step; negative bounds count from the end, absent ones are the ends.
struct Slice {
  std::optional<int64_t> start = {}, stop = {};
  int64_t step = 1;
};
inline Slice slice(std::optional<int64_t> start = {}, std::optional<int64_t> stop = {},
                   int64_t step = 1) {
  return {start, stop, step};
}
struct NewAxis {};
struct Ellipsis {};
inline constexpr Slice all{};
inline constexpr NewAxis newaxis{};
inline constexpr Ellipsis ellipsis{};
/// One entry of an index: pk::all, pk::slice(1, -1), a number, pk::newaxis or pk::ellipsis.
using IndexEntry = std::variant<Slice, int64_t, NewAxis, Ellipsis>;

/// A value of the kernel being traced, or a C++ number in its code. Cheap to copy; of use only
/// inside the function given to pk::kernel, while that runs.
class PK_API Expr {
 public:
  template <Number T>
  Expr(T number) : weak_(true), kind_(Kind::literal) {
    if constexpr (std::is_same_v<T, bool>)
      literal_ = number;
    else if constexpr (std::is_floating_point_v<T>)
      literal_ = static_cast<double>(number);
    else if constexpr (std::is_signed_v<T>)
      literal_ = static_cast<int64_t>(number);
    else
      literal_ = static_cast<uint64_t>(number);
  }

  Expr(std::complex<double> number) : literal_(number), weak_(true), kind_(Kind::literal) {}

  DType dtype() const;  // numbers: bool, int64, float64 or complex128
  size_t rank() const;  // of the array; 0 for scalars
  /// The size of a dimension, an integer known at run time. Throws CompileError if there is none.
  Expr size(size_t dimension, SourceLocation where = SourceLocation::current()) const;
  /// Converts as NumPy's astype does: floats to integers truncate and saturate, integers wrap.
  Expr astype(DType dtype, SourceLocation where = SourceLocation::current()) const;
  template <class T>
  Expr astype(SourceLocation where = SourceLocation::current()) const {
    return astype(dtype_of<T>, where);
  }

  /// NumPy's basic indexing: a.at({pk::slice(1, -1), 0}) is a[1:-1, 0], a view of the same memory.
  /// Throws CompileError for too many indices and a step of 0, LaunchError for a number out of
  /// bounds.
  Expr at(std::initializer_list<IndexEntry> indices,
          SourceLocation where = SourceLocation::current()) const;
  /// The array with its dimensions in the other order.
  Expr transpose(SourceLocation where = SourceLocation::current()) const;
  /// Parts of complex values; of real ones: themselves, and zeros.
  Expr real(SourceLocation where = SourceLocation::current()) const;
  Expr imag(SourceLocation where = SourceLocation::current()) const;

  template <class T>
    requires std::same_as<T, bool>
  explicit operator T() const {
    static_assert(detail::kNever<T>,
                  "a traced value has no truth yet: instead of if, ?:, !, && and || write "
                  "pk::where(condition, a, b), ~a, a & b and a | b");
    return false;
  }

 private:
  friend struct detail::ExprAccess;
  enum class Kind : uint8_t { value, ref, literal };

  Expr() = default;

  std::variant<bool, int64_t, uint64_t, double, std::complex<double>> literal_ = false;
  uint64_t trace_ = 0;  // the trace that it belongs to
  uint32_t id_ = 0, imag_ = 0;
  bool weak_ = false, complex_ = false;
  Kind kind_ = Kind::value;
};

class Out;

/// An operand and the place in the source where it is used: made by conversion, never by name.
struct Operand {
  Expr value;
  SourceLocation where;

  template <Number T>
  Operand(T number, SourceLocation at = SourceLocation::current()) : value(number), where(at) {}
  Operand(std::complex<double> number, SourceLocation at = SourceLocation::current())
      : value(number), where(at) {}
  Operand(const Expr& expr, SourceLocation at = SourceLocation::current())
      : value(expr), where(at) {}
  Operand(const Out& out, SourceLocation at = SourceLocation::current());
};

/// An array that the kernel writes: a parameter of this type takes pk::out(...) in a call.
/// Assignments store: the value is broadcast to the array and cast to its dtype.
class PK_API Out {
 public:
  void store(Operand value);
  Out& operator=(Operand value) {
    store(value);
    return *this;
  }
  Out& operator=(const Out& value) {
    store(value);
    return *this;
  }
  Out(const Out&) = default;
  /// The part of the array that an index shows: o.at({pk::slice(1, -1)}) = value stores there.
  Out at(std::initializer_list<IndexEntry> indices,
         SourceLocation where = SourceLocation::current()) const {
    return Out(array_.at(indices, where));
  }
  /// What the array holds at this point of the kernel.
  operator const Expr&() const { return array_; }
  const Expr& value() const { return array_; }

 private:
  friend struct detail::ExprAccess;
  explicit Out(const Expr& array) : array_(array) {}
  Expr array_;
};

inline Operand::Operand(const Out& out, SourceLocation at) : value(out.value()), where(at) {}

namespace detail {
/// NumPy's ufunc of that name. Throws CompileError or LaunchError at the place of the operands.
PK_API Expr apply(const char* ufunc, std::initializer_list<Operand> operands);
}  // namespace detail

// X(operator, NumPy's name). / is NumPy's true division, of integers too; % has the divisor's sign.
#define PK_BINARY_OPERATORS(X) \
  X(+, add)                    \
  X(-, subtract)               \
  X(*, multiply)               \
  X(/, true_divide)            \
  X(%, remainder)              \
  X(&, bitwise_and) X(|, bitwise_or) X(^, bitwise_xor) X(<<, left_shift) X(>>, right_shift)
#define PK_COMPARISONS(X) \
  X(==, equal) X(!=, not_equal) X(<, less) X(<=, less_equal) X(>, greater) X(>=, greater_equal)
// clang-format off
#define PK_UNARY_FUNCTIONS(X) \
  X(abs) X(absolute) X(negative) X(positive) X(sign) X(square) X(reciprocal) X(sqrt) X(exp) \
  X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(cbrt) X(sin) X(cos) X(tan) X(arcsin) \
  X(arccos) X(arctan) X(sinh) X(cosh) X(tanh) X(arcsinh) X(arccosh) X(arctanh) X(erf) X(erfc) X(spacing) X(conjugate) X(fabs) X(rint) X(floor) X(ceil) X(trunc) X(degrees) \
  X(radians) X(isnan) X(isinf) X(isfinite) X(signbit) X(logical_not)
#define PK_BINARY_FUNCTIONS(X) \
  X(floor_divide) X(true_divide) X(remainder) X(power) X(pow) X(float_power) X(heaviside) X(arctan2) X(hypot) X(logaddexp) X(logaddexp2) X(nextafter) X(fmod) \
  X(minimum) X(maximum) X(fmin) X(fmax) X(copysign) X(logical_and) X(logical_or) \
  X(logical_xor)
// clang-format on

#define PK_DEFINE(op, name) \
  inline Expr operator op(Operand a, Operand b) { return detail::apply(#name, {a, b}); }
PK_BINARY_OPERATORS(PK_DEFINE)
PK_COMPARISONS(PK_DEFINE)
#undef PK_DEFINE

#define PK_DEFINE(op, name)                                      \
  inline Expr& operator op## = (Expr & a, Operand b) {           \
    return a = detail::apply(#name, {{a, b.where}, b});          \
  }                                                              \
  inline Out& operator op## = (Out & a, Operand b) {             \
    a.store({detail::apply(#name, {{a, b.where}, b}), b.where}); \
    return a;                                                    \
  }
PK_BINARY_OPERATORS(PK_DEFINE)
#undef PK_DEFINE

inline Expr operator-(Operand a) { return detail::apply("negative", {a}); }
inline Expr operator+(Operand a) { return detail::apply("positive", {a}); }
inline Expr operator~(Operand a) { return detail::apply("invert", {a}); }

#define PK_DEFINE(name) \
  inline Expr name(Operand a) { return detail::apply(#name, {a}); }
PK_UNARY_FUNCTIONS(PK_DEFINE)
#undef PK_DEFINE
#define PK_DEFINE(name) \
  inline Expr name(Operand a, Operand b) { return detail::apply(#name, {a, b}); }
PK_BINARY_FUNCTIONS(PK_DEFINE)
#undef PK_DEFINE

/// 1 / sqrt(a).
inline Expr rsqrt(Operand a) {
  return detail::apply("true_divide", {{1, a.where}, {detail::apply("sqrt", {a}), a.where}});
}
// Of integers only.
inline Expr bitwise_count(Operand a) { return detail::apply("bitwise_count", {a}); }
inline Expr gcd(Operand a, Operand b) { return detail::apply("gcd", {a, b}); }
inline Expr lcm(Operand a, Operand b) { return detail::apply("lcm", {a, b}); }
/// a times 2 to the power of an integer.
inline Expr ldexp(Operand a, Operand exponent) { return detail::apply("ldexp", {a, exponent}); }
/// A mantissa in [0.5, 1) and an exponent.
inline std::pair<Expr, Expr> frexp(Operand a) {
  return {detail::apply("frexp_mantissa", {a}), detail::apply("frexp_exponent", {a})};
}
/// What is behind the point, and what is before it.
inline std::pair<Expr, Expr> modf(Operand a) {
  return {detail::apply("modf_fraction", {a}), detail::apply("modf_whole", {a})};
}

inline Expr where(Operand condition, Operand a, Operand b) {
  return detail::apply("where", {condition, a, b});
}
inline Expr clip(Operand a, Operand low, Operand high) {
  return detail::apply("clip", {a, low, high});
}

}  // namespace picokernel
