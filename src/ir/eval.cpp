// Scalar semantics: NumPy 2's where NumPy defines one, docs/semantics.md's rule where it does not.
#include "ir/eval.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
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
  if constexpr (is_half_type<From>) {
    return cast_to<float, To>(static_cast<float>(v));
  } else if constexpr (is_half_type<To>) {
    // float16 rounds once; what becomes a bfloat16 is rounded to float first, as in ml_dtypes.
    return To(static_cast<std::conditional_t<std::is_same_v<To, float16>, double, float>>(v));
  } else if constexpr (std::is_same_v<To, bool>) {
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

// Of MIN too.
template <class T>
Unsigned<T> magnitude(T x) {
  const auto bits = static_cast<Unsigned<T>>(x);
  return x < 0 ? static_cast<Unsigned<T>>(0u - bits) : bits;
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

// Ops whose operands and result have one type T. No default: a new op does not compile until it has
// a meaning.
template <class T>
T same(Opcode opcode, T x, T y, T z) {
  constexpr bool floating = std::is_floating_point_v<T>, boolean = std::is_same_v<T, bool>;
  constexpr bool integer = !floating && !boolean;
  const auto add = [](auto a, auto b) { return a + b; };
  const auto subtract = [](auto a, auto b) { return a - b; };
  const auto multiply = [](auto a, auto b) { return a * b; };
  // clang-format off
#define PK_CASE(op, allowed, ...) \
  case Opcode::op: { if constexpr (allowed) return static_cast<T>(__VA_ARGS__); } break;
#define PK_CASE2(op, first, of_first, second, of_second) \
  case Opcode::op: { if constexpr (first) return static_cast<T>(of_first); \
                     else if constexpr (second) return static_cast<T>(of_second); } break;
#define PK_CASE3(op, of_bool, of_integer, of_float) \
  case Opcode::op: { if constexpr (boolean) return static_cast<T>(of_bool); \
                     else if constexpr (integer) return static_cast<T>(of_integer); \
                     else return static_cast<T>(of_float); }
  switch (opcode) {
    PK_CASE(minimum, true, minimum_of(x, y))
    PK_CASE(maximum, true, maximum_of(x, y))
    PK_CASE2(fmin, floating, x != x ? y : y != y ? x : minimum_of(x, y), true, minimum_of(x, y))
    PK_CASE2(fmax, floating, x != x ? y : y != y ? x : maximum_of(x, y), true, maximum_of(x, y))
    PK_CASE3(add, x || y, wrap(x, y, add), x + y)
    PK_CASE3(mul, x && y, wrap(x, y, multiply), x * y)
    PK_CASE2(sub, integer, wrap(x, y, subtract), floating, x - y)
    PK_CASE2(floordiv, integer, floordiv_int(x, y), floating, floordiv_float(x, y))
    PK_CASE2(mod, integer, mod_int(x, y), floating, mod_float(x, y))
    PK_CASE2(pow, integer, pow_int(x, y), floating, std::pow(x, y))
    PK_CASE2(neg, integer, wrap(T(0), x, subtract), floating, -x)
    PK_CASE2(abs, integer, x < 0 ? wrap(T(0), x, subtract) : x, floating, std::fabs(x))
    PK_CASE2(and_, boolean, x && y, integer, x & y)
    PK_CASE2(or_, boolean, x || y, integer, x | y)
    PK_CASE2(xor_, boolean, x != y, integer, x ^ y)
    PK_CASE2(not_, boolean, !x, integer, ~x)
    PK_CASE(gcd, integer, std::gcd(magnitude(x), magnitude(y)))
    PK_CASE(shl, integer, shift_left(x, y))
    PK_CASE(shr, integer, shift_right(x, y))
    PK_CASE(div, floating, x / y)
    PK_CASE(fma, floating, std::fma(x, y, z))
    PK_CASE(copysign, floating, std::copysign(x, y))
    PK_CASE(floor, floating, std::floor(x))
    PK_CASE(ceil, floating, std::ceil(x))
    PK_CASE(trunc, floating, std::trunc(x))
    PK_CASE(rint, floating, std::nearbyint(x))
    PK_CASE(sqrt, floating, std::sqrt(x))
    PK_CASE(exp, floating, std::exp(x))
    PK_CASE(log, floating, std::log(x))
    PK_CASE(sin, floating, std::sin(x))
    PK_CASE(cos, floating, std::cos(x))
    PK_CASE(tanh, floating, std::tanh(x))
    PK_CASE(exp2, floating, std::exp2(x))
    PK_CASE(expm1, floating, std::expm1(x))
    PK_CASE(log2, floating, std::log2(x))
    PK_CASE(log10, floating, std::log10(x))
    PK_CASE(log1p, floating, std::log1p(x))
    PK_CASE(tan, floating, std::tan(x))
    PK_CASE(asin, floating, std::asin(x))
    PK_CASE(acos, floating, std::acos(x))
    PK_CASE(atan, floating, std::atan(x))
    PK_CASE(sinh, floating, std::sinh(x))
    PK_CASE(cosh, floating, std::cosh(x))
    PK_CASE(asinh, floating, std::asinh(x))
    PK_CASE(acosh, floating, std::acosh(x))
    PK_CASE(atanh, floating, std::atanh(x))
    PK_CASE(erf, floating, std::erf(x))
    PK_CASE(erfc, floating, std::erfc(x))
    PK_CASE(cbrt, floating, std::cbrt(x))
    PK_CASE(atan2, floating, std::atan2(x, y))
    PK_CASE(hypot, floating, std::hypot(x, y))
    PK_CASE(fmod, floating, std::fmod(x, y))
    // Ops of other rules.
    case Opcode::constant: case Opcode::size: case Opcode::cast: case Opcode::bitcast: case Opcode::select:
    case Opcode::eq: case Opcode::ne: case Opcode::lt: case Opcode::le: case Opcode::gt: case Opcode::ge:
    case Opcode::isnan: case Opcode::isinf: case Opcode::isfinite: case Opcode::signbit:
    case Opcode::popcount:
    case Opcode::view: case Opcode::scratch: case Opcode::read: case Opcode::write:
    case Opcode::load: case Opcode::store: case Opcode::alloc: case Opcode::parallel:
    case Opcode::for_: case Opcode::while_: case Opcode::if_: case Opcode::yield: case Opcode::return_:
    case Opcode::thread_id: case Opcode::block_id: case Opcode::block_dim: case Opcode::grid_dim:
    case Opcode::shared: case Opcode::barrier: case Opcode::barrier_count: case Opcode::barrier_and:
    case Opcode::barrier_or: case Opcode::check_index: case Opcode::atomic_add: case Opcode::atomic_minimum: case Opcode::atomic_maximum:
    case Opcode::atomic_fmin: case Opcode::atomic_fmax: case Opcode::atomic_and: case Opcode::atomic_or:
    case Opcode::atomic_xor: case Opcode::atomic_inc: case Opcode::atomic_dec: case Opcode::atomic_exchange:
    case Opcode::atomic_cas:
      break;
  }
#undef PK_CASE
#undef PK_CASE2
#undef PK_CASE3
  // clang-format on
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
uint8_t count(T x) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return static_cast<uint8_t>(std::popcount(magnitude(x)));
  PK_UNREACHABLE();
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

Scalar bitcast(Scalar value, DType to) {
  if (is_float(to)) {
    const uint64_t mask = ~uint64_t{0} >> (64 - 8 * size_of(to));
    return {to, value.bits & mask};
  }
  // Integers are kept extended to 64 bits.
  return visit(to, [&]<class T>(T*) {
    if constexpr (std::is_integral_v<T>) return Scalar::of(static_cast<T>(value.bits));
    return Scalar{to, value.bits};
  });
}

}  // namespace

Scalar cast(Scalar value, DType to) {
  return visit(value.dtype, [&]<class From>(From*) {
    return visit(to,
                 [&]<class To>(To*) { return Scalar::of(cast_to<From, To>(value.as<From>())); });
  });
}

bool is_exact(Opcode opcode, DType result) {
  return info(opcode).rule != Rule::math || !is_float(result);
}

Scalar eval(Opcode opcode, std::span<const Scalar> operands, DType result) {
  if (opcode == Opcode::cast) return cast(operands[0], result);
  if (opcode == Opcode::bitcast) return bitcast(operands[0], result);
  if (opcode == Opcode::select) return operands[0].bits != 0 ? operands[1] : operands[2];
  return visit(operands[0].dtype, [&]<class T>(T*) {
    using A = Arithmetic<T>;
    const A x = static_cast<A>(operands[0].as<T>());
    const A y = operands.size() > 1 ? static_cast<A>(operands[1].as<T>()) : A{};
    const A z = operands.size() > 2 ? static_cast<A>(operands[2].as<T>()) : A{};
    switch (info(opcode).rule) {
      case Rule::compare:
        return Scalar::of(compare(opcode, x, y));
      case Rule::test:
        return Scalar::of(test(opcode, x));
      case Rule::count:
        return Scalar::of(count(x));
      case Rule::same:
      case Rule::math:
        return Scalar::of(T(same(opcode, x, y, z)));
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
