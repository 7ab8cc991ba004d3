// log x = e log 2 + log m with x = 2^e m, m in [sqrt(1/2), sqrt(2)).
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "passes/legalize/math/log_coefficients.h"
#include "passes/legalize/math/log_parts.h"

namespace picokernel::passes::math {
namespace {

// The logarithms of e and 2 as sums. two_low is not negative, so that infinite exponents stay.
struct Base {
  double e = 1, e_low = 0;
  double two = 1, two_low = 0;
  // For float32: log(1 + f) = f + f^2 p(f) to base e, e f + f p(f) to the others.
  std::span<const double> p, p_fast;
};
constexpr Base kBaseE32{.two = 0x1.62e43p-1, .p = kLog32, .p_fast = kLog32Fast};
constexpr Base kBaseE64{.two = 0x1.62e42fefa39efp-1, .two_low = 0x1.abc9e3b39803fp-56};
constexpr Base kBase2_32{.e = 0x1.715476p+0, .p = kLog2_32, .p_fast = kLog2_32Fast};
constexpr Base kBase2_64{.e = 0x1.71547652b82fep+0, .e_low = 0x1.777d0ffda0d24p-56};
constexpr Base kBase10_32{.e = 0x1.bcb7b2p-2,
                          .two = 0x1.344134p-2,
                          .two_low = 0x1.09f7ap-26,
                          .p = kLog10_32,
                          .p_fast = kLog10_32Fast};
constexpr Base kBase10_64{.e = 0x1.bcb7b1526e50ep-2,
                          .e_low = 0x1.95355baaafad3p-57,
                          .two = 0x1.34413509f79fep-2,
                          .two_low = 0x1.e623e2566b02ep-55};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t bits_of(DType dtype, double x) {
  if (dtype == DType::f32) return std::bit_cast<int32_t>(static_cast<float>(x));
  return std::bit_cast<int64_t>(x);
}

double unit_of(DType dtype) { return dtype == DType::f32 ? 0x1p-23 : 1; }

// x y + z, z being absent where it is 0.
Value plus(Value x, Value y, std::optional<Value> z) { return z ? fma(x, y, *z) : x * y; }

// The logarithm of 2^e m, plus `low`.
Value logarithm(const Split& x, std::optional<Value> low, const Base& base, Accuracy accuracy) {
  const bool is_fast = accuracy == Accuracy::fast;
  const Value f = x.m - 1;
  if (base.two_low != 0 && !is_fast) low = plus(x.e, f.like(base.two_low * x.unit), low);
  Value p, q;  // log m = base.e f + p q
  if (f.dtype() == DType::f32) {
    p = f;
    q = horner(f, is_fast ? base.p_fast : base.p);
    if (base.e == 1) q = q * f;
  } else {
    // log((1 + s) / (1 - s)) = 2 s + s^3 t = f - s (f - s^2 t) = f - h + s (h + s^2 t), with
    // h = f^2 / 2. The latter suffers less from rounding.
    const Value s = f / (f + 2), z = s * s, t = horner(z, kAtanh64);
    if (base.e == 1) {
      p = -s;
      q = fma(-z, t, f);
    } else {
      const Value half = f * 0.5;
      p = fma(-half, f, s * fma(z, t, f * half));
      q = f.like(base.e);
    }
    if (base.e_low != 0 && !is_fast) low = plus(f, f.like(base.e_low), low);
  }
  Value log_m;
  if (base.e != 1) {
    log_m = fma(f, base.e, plus(p, q, low));
  } else {
    log_m = low ? f + fma(p, q, *low) : fma(p, q, f);
  }
  return fma(x.e, base.two * x.unit, log_m);
}

Value log(Value x, const Base& f32, const Base& f64, Accuracy accuracy) {
  const Base& base = x.dtype() == DType::f32 ? f32 : f64;
  return logarithm(split(x, kHalfSqrt2), std::nullopt, base, accuracy);
}

}  // namespace

Value is_unusual(Value x) {
  const int64_t least = bits_of(x.dtype(), x.dtype() == DType::f32 ? 0x1p-126 : 0x1p-1022);
  // Wraps: the numbers that are usual come first.
  return bits(x) + bits_of(x.dtype(), kInfinity) >= -2 * least;
}

Split split_normal(Value x, double low) {
  const int64_t least = bits_of(x.dtype(), low);
  const Value b = bits(x);
  if (x.dtype() == DType::f32) {
    const Value exponent = (b - least) & -(1 << 23);
    return {float_of(b - exponent), cast(exponent, DType::f32), unit_of(DType::f32)};
  }
  // Without conversions of 64-bit integers, which AVX2 has not: the biased exponent becomes the
  // last bits of 2^52.
  const Value moved = b + (bits_of(DType::f64, 1.0) - least);
  const Value biased = (cast(moved, DType::u64) >> 52) | bits_of(DType::f64, 0x1p52);
  return {float_of((moved & ((int64_t{1} << 52) - 1)) + least), float_of(biased) - (0x1p52 + 1023),
          unit_of(DType::f64)};
}

Split split_limit(Value x) {
  const Value below = select(x == 0, -kInfinity, x.like(std::nan("")));
  return {x.like(1), select(x > 0, x, below), unit_of(x.dtype())};
}

Split split(Value x, double low) {
  const Split usual = split_normal(x, low);
  const Values parts =
      x.formula().branch(is_unusual(x),
                         [&] {
                           const int up = 64;
                           const Split subnormal = split_normal(x * std::ldexp(1.0, up), low);
                           const Value e = subnormal.e - up / subnormal.unit;
                           const Value has_one = (x > 0) & (x < kInfinity);
                           return Values{subnormal.m, select(has_one, e, split_limit(x).e)};
                         },
                         {usual.m, usual.e});
  return {parts[0], parts[1], usual.unit};
}

Value log_of_sum(Pair u, const std::function<Split()>& otherwise, Accuracy accuracy) {
  const Split usual = split_normal(u.high, kHalfSqrt2);
  const Value low = u.low / u.high;
  const Values parts = low.formula().branch(is_unusual(u.high),
                                            [&] {
                                              const Split s = otherwise();
                                              return Values{s.m, s.e, low.like(0)};
                                            },
                                            {usual.m, usual.e, low});
  const Base& base = low.dtype() == DType::f32 ? kBaseE32 : kBaseE64;
  return logarithm({parts[0], parts[1], usual.unit}, parts[2], base, accuracy);
}

Value log(Value x, Accuracy accuracy) { return log(x, kBaseE32, kBaseE64, accuracy); }
Value log2(Value x, Accuracy accuracy) { return log(x, kBase2_32, kBase2_64, accuracy); }
Value log10(Value x, Accuracy accuracy) { return log(x, kBase10_32, kBase10_64, accuracy); }

Value log1p(Value x, Accuracy accuracy) {
  const Pair u = two_sum(x.like(1), x);
  const Value result = log_of_sum(u, [&] { return split_limit(u.high); }, accuracy);
  return copysign(result, x);  // of -0 too
}

}  // namespace picokernel::passes::math
