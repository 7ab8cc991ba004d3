// Scalar semantics: NumPy 2's where NumPy defines one, docs/semantics.md's rule where it does not.
#include "ir/eval.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "support/check.h"
#include "support/size_expr.h"

namespace picokernel::ir {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

template <class T>
constexpr int kBits = static_cast<int>(sizeof(T)) * 8;

template <class From, class To>
To cast_to(From v) {
  if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(v)) return 0;
    // The bounds as floats: min is exact; max + 1 is a power of two, hence exact.
    constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From past = static_cast<From>(
        static_cast<From>(uint64_t{1} << (std::numeric_limits<To>::digits - 1)) * 2);
    if (v < low) return std::numeric_limits<To>::min();
    if (v >= past) return std::numeric_limits<To>::max();
    return static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

// Integers wrap: all arithmetic is on unsigned types, at least as wide as unsigned int.
template <class T, class F>
T wrap(T x, T y, F&& f) {
  using Wide = std::common_type_t<Unsigned<T>, unsigned>;
  return static_cast<T>(f(static_cast<Wide>(x), static_cast<Wide>(y)));
}

template <class T>
T floordiv_int(T x, T y) {
  if (y == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (y == T(-1)) return wrap(T(0), x, [](auto a, auto b) { return a - b; });
    const T q = static_cast<T>(x / y);
    return static_cast<T>(q - ((x % y != 0) && ((x < 0) != (y < 0))));
  }
  return static_cast<T>(x / y);
}

template <class T>
T mod_int(T x, T y) {
  if (y == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (y == T(-1)) return 0;
    const T r = static_cast<T>(x % y);
    return static_cast<T>(r != 0 && ((r < 0) != (y < 0)) ? r + y : r);
  }
  return static_cast<T>(x % y);
}

template <class T>
T pow_int(T base, T exponent) {
  if constexpr (std::is_signed_v<T>)
    if (exponent < 0)
      return base == 1 ? T(1) : base == T(-1) ? (exponent % 2 != 0 ? T(-1) : T(1)) : T(0);
  T result = 1;
  for (Unsigned<T> e = static_cast<Unsigned<T>>(exponent); e != 0;
       e = static_cast<Unsigned<T>>(e >> 1)) {
    if (e & 1) result = wrap(result, base, [](auto a, auto b) { return a * b; });
    base = wrap(base, base, [](auto a, auto b) { return a * b; });
  }
  return result;
}

template <class T>
T mod_float(T x, T y);

// The quotient of the exact remainder, so that floordiv(x, y) * y + mod(x, y) is near x; a zero
// divisor gives x / y, and an exact zero keeps the sign of x / y.
template <class T>
T floordiv_float(T x, T y) {
  if (y == 0) return x / y;
  const T r = std::fmod(x, y);
  T q = (x - r) / y;
  if (r != 0 && ((y < 0) != (r < 0))) q -= 1;
  if (q == 0) return std::copysign(T(0), x / y);
  T f = std::floor(q);
  if (q - f > T(0.5)) f += 1;
  return f;
}

template <class T>
T mod_float(T x, T y) {
  const T r = std::fmod(x, y);
  if (y == 0) return r;  // NaN
  if (r == 0) return std::copysign(T(0), y);
  return (y < 0) != (r < 0) ? r + y : r;
}

template <class T>
T minimum_of(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(x)) return x;
    if (std::isnan(y)) return y;
    if (x == y) return std::signbit(x) ? x : y;
  }
  return x < y ? x : y;
}
template <class T>
T maximum_of(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(x)) return x;
    if (std::isnan(y)) return y;
    if (x == y) return std::signbit(x) ? y : x;
  }
  return x > y ? x : y;
}

template <class T>
T shift_left(T x, T y) {
  if (y < 0 || y >= T(kBits<T>)) return 0;
  return wrap(x, y, [](auto a, auto b) { return a << b; });
}
template <class T>
T shift_right(T x, T y) {
  if (y < 0 || y >= T(kBits<T>)) return x < 0 ? T(-1) : T(0);
  return static_cast<T>(x >> y);
}

// Ops whose operands and result have one type T.
template <class T>
T same(Opcode opcode, T x, T y, T z) {
  constexpr bool floating = std::is_floating_point_v<T>, boolean = std::is_same_v<T, bool>;
  constexpr bool integer = !floating && !boolean;
  // Any type
  if (opcode == Opcode::minimum) return minimum_of(x, y);
  if (opcode == Opcode::maximum) return maximum_of(x, y);
  if constexpr (boolean) {
    if (opcode == Opcode::fmin) return x && y;
    if (opcode == Opcode::fmax) return x || y;
    if (opcode == Opcode::add || opcode == Opcode::or_) return x || y;
    if (opcode == Opcode::mul || opcode == Opcode::and_) return x && y;
    if (opcode == Opcode::xor_) return x != y;
    if (opcode == Opcode::not_) return !x;
  }
  if constexpr (integer) {
    if (opcode == Opcode::fmin) return minimum_of(x, y);
    if (opcode == Opcode::fmax) return maximum_of(x, y);
    if (opcode == Opcode::add) return wrap(x, y, [](auto a, auto b) { return a + b; });
    if (opcode == Opcode::sub) return wrap(x, y, [](auto a, auto b) { return a - b; });
    if (opcode == Opcode::mul) return wrap(x, y, [](auto a, auto b) { return a * b; });
    if (opcode == Opcode::floordiv) return floordiv_int(x, y);
    if (opcode == Opcode::mod) return mod_int(x, y);
    if (opcode == Opcode::pow) return pow_int(x, y);
    if (opcode == Opcode::neg) return wrap(T(0), x, [](auto a, auto b) { return a - b; });
    if (opcode == Opcode::abs)
      return x < 0 ? wrap(T(0), x, [](auto a, auto b) { return a - b; }) : x;
    if (opcode == Opcode::and_) return static_cast<T>(x & y);
    if (opcode == Opcode::or_) return static_cast<T>(x | y);
    if (opcode == Opcode::xor_) return static_cast<T>(x ^ y);
    if (opcode == Opcode::not_) return static_cast<T>(~x);
    if (opcode == Opcode::shl) return shift_left(x, y);
    if (opcode == Opcode::shr) return shift_right(x, y);
  }
  if constexpr (floating) {
    if (opcode == Opcode::fmin) return std::isnan(x) ? y : std::isnan(y) ? x : minimum_of(x, y);
    if (opcode == Opcode::fmax) return std::isnan(x) ? y : std::isnan(y) ? x : maximum_of(x, y);
    if (opcode == Opcode::add) return x + y;
    if (opcode == Opcode::sub) return x - y;
    if (opcode == Opcode::mul) return x * y;
    if (opcode == Opcode::div) return x / y;
    if (opcode == Opcode::floordiv) return floordiv_float(x, y);
    if (opcode == Opcode::mod) return mod_float(x, y);
    if (opcode == Opcode::pow) return std::pow(x, y);
    if (opcode == Opcode::fma) return std::fma(x, y, z);
    if (opcode == Opcode::neg) return -x;
    if (opcode == Opcode::abs) return std::fabs(x);
    if (opcode == Opcode::copysign) return std::copysign(x, y);
    if (opcode == Opcode::floor) return std::floor(x);
    if (opcode == Opcode::ceil) return std::ceil(x);
    if (opcode == Opcode::trunc) return std::trunc(x);
    if (opcode == Opcode::rint) return std::nearbyint(x);
    if (opcode == Opcode::sqrt) return std::sqrt(x);
    if (opcode == Opcode::exp) return std::exp(x);
    if (opcode == Opcode::log) return std::log(x);
    if (opcode == Opcode::sin) return std::sin(x);
    if (opcode == Opcode::cos) return std::cos(x);
    if (opcode == Opcode::tanh) return std::tanh(x);
  }
  PK_UNREACHABLE(info(opcode).name);
}

template <class T>
bool compare(Opcode opcode, T x, T y) {
  if (opcode == Opcode::eq) return x == y;
  if (opcode == Opcode::ne) return x != y;
  if (opcode == Opcode::lt) return x < y;
  if (opcode == Opcode::le) return x <= y;
  if (opcode == Opcode::gt) return x > y;
  if (opcode == Opcode::ge) return x >= y;
  PK_UNREACHABLE(info(opcode).name);
}

template <class T>
bool test(Opcode opcode, T x) {
  if constexpr (std::is_floating_point_v<T>) {
    if (opcode == Opcode::isnan) return std::isnan(x);
    if (opcode == Opcode::isinf) return std::isinf(x);
    if (opcode == Opcode::isfinite) return std::isfinite(x);
    if (opcode == Opcode::signbit) return std::signbit(x);
  }
  PK_UNREACHABLE(info(opcode).name);
}

}  // namespace

Scalar cast(Scalar value, DType to) {
  return visit(value.dtype, [&]<class From>(From*) {
    return visit(to,
                 [&]<class To>(To*) { return Scalar::of(cast_to<From, To>(value.as<From>())); });
  });
}

Scalar eval(Opcode opcode, std::span<const Scalar> operands, DType result) {
  if (opcode == Opcode::cast) return cast(operands[0], result);
  if (opcode == Opcode::select) return operands[0].bits != 0 ? operands[1] : operands[2];
  return visit(operands[0].dtype, [&]<class T>(T*) {
    const T x = operands[0].as<T>();
    const T y = operands.size() > 1 ? operands[1].as<T>() : T{};
    const T z = operands.size() > 2 ? operands[2].as<T>() : T{};
    switch (info(opcode).rule) {
      case Rule::compare:
        return Scalar::of(compare(opcode, x, y));
      case Rule::test:
        return Scalar::of(test(opcode, x));
      case Rule::same:
        return Scalar::of(same(opcode, x, y, z));
      case Rule::select:
      case Rule::explicit_:
      case Rule::none:
      case Rule::custom:
        break;
    }
    PK_UNREACHABLE(info(opcode).name);
  });
}

}  // namespace picokernel::ir
