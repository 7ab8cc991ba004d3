// 16-bit floating-point types: storage, with conversions. Arithmetic on them is float's, rounded
// after each operation.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace picokernel {

namespace detail {

// Rounds to `Precision` significant bits and exponents from `MinExponent` up, ties to even: what a
// narrowing conversion keeps. `value` is finite and not 0.
template <int Precision, int MinExponent>
double round_to(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);  // value = m * 2^exponent, 0.5 <= |m| < 1
  const int last = (exponent - 1 < MinExponent ? MinExponent : exponent - 1) - (Precision - 1);
  return std::ldexp(std::nearbyint(std::ldexp(value, -last)), last);
}

}  // namespace detail

/// IEEE 754 binary16. Conversions round to nearest, ties to even.
struct float16 {
  uint16_t bits;

  float16() = default;
  explicit float16(double value) : bits(round(value)) {}
  static float16 from_bits(uint16_t bits) {
    float16 h;
    h.bits = bits;
    return h;
  }

  explicit operator float() const {
    const uint32_t sign = uint32_t{bits} >> 15 << 31, exponent = bits >> 10 & 0x1f,
                   fraction = bits & 0x3ff;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
    if (exponent != 0)
      return std::bit_cast<float>(sign | (exponent + 127 - 15) << 23 | fraction << 13);
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // zero or subnormal
    return sign != 0 ? -magnitude : magnitude;
  }

 private:
  static uint16_t round(double value) {
    const uint64_t wide = std::bit_cast<uint64_t>(value);
    const auto sign = static_cast<uint16_t>(wide >> 63 << 15);
    if (std::isnan(value))  // quiet; as much of the payload as there is room for
      return static_cast<uint16_t>(sign | 0x7e00u | (wide >> 42 & 0x1ff));
    if (value == 0) return sign;
    const double r = std::isinf(value) ? value : std::fabs(detail::round_to<11, -14>(value));
    if (std::fabs(r) > 65504) return static_cast<uint16_t>(sign | 0x7c00u);
    if (r < 0x1p-14) return static_cast<uint16_t>(sign | static_cast<uint16_t>(r * 0x1p24));
    const uint64_t exact = std::bit_cast<uint64_t>(r);
    const uint64_t exponent = (exact >> 52) - 1023 + 15;
    return static_cast<uint16_t>(sign | exponent << 10 | (exact >> 42 & 0x3ff));
  }
};

/// The upper half of a float. Conversions round to nearest, ties to even; those from other types go
/// through float.
struct bfloat16 {
  uint16_t bits;

  bfloat16() = default;
  explicit bfloat16(float value) : bits(round(value)) {}
  static bfloat16 from_bits(uint16_t bits) {
    bfloat16 h;
    h.bits = bits;
    return h;
  }

  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }

 private:
  static uint16_t round(float value) {
    const uint32_t wide = std::bit_cast<uint32_t>(value);
    if (std::isnan(value)) return static_cast<uint16_t>(wide >> 16 | 0x40);
    return static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
  }
};

}  // namespace picokernel
