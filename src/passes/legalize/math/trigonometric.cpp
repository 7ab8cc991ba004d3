// sin, cos and tan. x = q pi/2 + r with |r| <= pi/4: near 0 by subtracting multiples of a pi/2 that
// is a sum of floats (Cody and Waite), far out by multiplying the fraction of x with those bits of
// 2/pi that matter (Payne and Hanek). Exact over the whole range.
#include <bit>
#include <limits>
#include <utility>

#include "passes/legalize/math/functions.h"
#include "passes/legalize/math/trigonometric_coefficients.h"

namespace picokernel::passes::math {
namespace {

struct Format {
  int mantissa;  // its explicit bits
  double magic;  // added, it rounds to an integer, which the lowest bits then hold
  double two_over_pi;
  double limit;        // up to here the differences of near() are exact
  int first_exponent;  // biased, of the numbers past the limit
  std::span<const double> half_pi, sin, cos, tan;
  std::span<const double> pi, half_sin;  // positive, for signs of zeros
  std::span<const uint64_t> bits_of_two_over_pi;
};

const Format& format_of(Value x) {
  static constexpr Format f32{.mantissa = 23,
                              .magic = 0x1.8p23,
                              .two_over_pi = 0x1.45f306p-1,
                              .limit = 20'000,
                              .first_exponent = 127 + 14,
                              .half_pi = kHalfPi32,
                              .sin = kSin32,
                              .cos = kCos32,
                              .tan = kTan32,
                              .pi = kPi32,
                              .half_sin = kHalfSin32,
                              .bits_of_two_over_pi = kTwoOverPi32};
  static constexpr Format f64{.mantissa = 52,
                              .magic = 0x1.8p52,
                              .two_over_pi = 0x1.45f306dc9c883p-1,
                              .limit = 1e8,
                              .first_exponent = 1023 + 26,
                              .half_pi = kHalfPi64,
                              .sin = kSin64,
                              .cos = kCos64,
                              .tan = kTan64,
                              .pi = kPi64,
                              .half_sin = kHalfSin64,
                              .bits_of_two_over_pi = kTwoOverPi64};
  return x.dtype() == DType::f32 ? f32 : f64;
}

// x = q pi/2 + (r - minus_low). The quadrant q is an integer of which two bits count.
struct Reduced {
  Value r, minus_low, quadrant;
};

// The low part is subtracted, and is +0 for zeros: then sums below keep the sign of a zero.
Reduced near(Value x, const Format& f) {
  const Value shifted = fma(x, f.two_over_pi, f.magic);
  const Value n = shifted - f.magic;
  const Value first = fma(n, -f.half_pi[0], x);
  if (f.mantissa > 32) {
    // Where the first two parts cancel, r has bits beyond those of r - first.
    const auto [second, second_low] = two_product(n, n.like(f.half_pi[1]));
    const auto [r, low] = two_sum(first, -second);
    return {r, fma(n, f.half_pi[2], second_low - low), bits(shifted)};
  }
  const Value r = fma(n, -f.half_pi[1], first);
  const Value minus_low = fma(n, f.half_pi[2], fma(n, f.half_pi[1], r - first));
  return {r, minus_low, bits(shifted)};
}

// The words of the table from the index-th one on.
Values words_from(Value index, std::span<const uint64_t> table, size_t count) {
  Values words;
  for (const uint64_t word : table) words.push_back(index.like(word));
  for (size_t step = std::bit_floor(table.size() - count); step != 0; step /= 2) {
    const Value skip = (index & step) != 0;
    const Values all = std::exchange(words, {});
    for (size_t i = 0; i < count + step - 1; ++i)
      words.push_back(i + step < all.size() ? select(skip, all[i + step], all[i]) : all[i]);
  }
  return words;
}

// The upper half of a product of 64-bit integers, of which the first one has 53 bits.
Value multiply_high(Value x, Value y) {
  const Value x_high = x >> 32, x_low = x & 0xffffffff, y_high = y >> 32, y_low = y & 0xffffffff;
  const Value cross = x_high * y_low + ((x_low * y_low) >> 32);
  const Value other = x_low * y_high + (cross & 0xffffffff);
  return x_high * y_high + (cross >> 32) + (other >> 32);
}

// x = m 2^e with an integer m. Bits of 2/pi that are multiples of 4 in x 2/pi are left out, and so
// are those past what the smallest remainder of all numbers needs (2^-62 for float64).
Reduced far(Value x, const Format& f) {
  const bool wide = f.mantissa > 32;
  const DType word = wide ? DType::u64 : DType::u32;
  const Value b = bitcast(abs(x), word);
  const Value position = cast(b >> f.mantissa, DType::u64) - f.first_exponent;
  const uint64_t hidden = uint64_t{1} << f.mantissa;
  const Value m = cast((b & (hidden - 1)) | hidden, DType::u64);

  const Values words = words_from(position >> 6, f.bits_of_two_over_pi, wide ? 4 : 3);
  const Value left = position & 63, right = left ^ 63;
  const auto window = [&](size_t i) { return (words[i] << left) | ((words[i + 1] >> 1) >> right); };
  // The product in units of 2^-62 quarters of a turn, and 64 bits that follow.
  Value product, rest;
  if (wide) {
    const Value middle = window(1), carried = multiply_high(m, window(2));
    rest = m * middle + carried;
    product = m * window(0) + multiply_high(m, middle) + cast(rest < carried, DType::u64);
  } else {
    product = m * window(0) + ((m * (window(1) >> 32)) >> 32);
  }
  const Value negative = x < 0;
  const auto with_sign = [&](Value v) { return select(negative, ~v, v); };
  product = with_sign(product);
  if (wide) rest = with_sign(rest);
  const Value quadrant = (product + (uint64_t{1} << 61)) >> 62;

  // The fraction, from -1/2 to 1/2, as a sum of floats: bits become the mantissa of a power of two.
  const auto mantissa = [&](Value v, double power, double less) {
    const Value bits = cast(v, word) | bitcast(x.like(power), word);
    return bitcast(bits, x.dtype()) - less;
  };
  const Value sign = product.like(uint64_t{1} << 63);
  Pair sum;
  if (wide) {
    const Value high = (product << 2) | (rest >> 62), low = rest << 2;
    sum = fast_two_sum(mantissa((high ^ sign) >> 12, 1, 1.5),
                       mantissa(((high & 0xfff) << 40) | (low >> 24), 0x1p-52, 0x1p-52));
    sum.low = sum.low + mantissa(low & 0xffffff, 0x1p-76, 0x1p-76);
  } else {
    const Value high = product << 2;
    sum = fast_two_sum(mantissa((high ^ sign) >> 41, 1, 1.5),
                       mantissa((high >> 18) & 0x7fffff, 0x1p-23, 0x1p-23));
    sum.low = sum.low + mantissa(high & 0x3ffff, 0x1p-41, 0x1p-41);
  }

  const Value high = sum.high * f.half_pi[0];
  const Value low = fma(sum.high, f.half_pi[1],
                        fma(sum.low, f.half_pi[0], fma(sum.high, x.like(f.half_pi[0]), -high)));
  const Pair r = fast_two_sum(high, low);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {select(isfinite(x), r.high, nan), -r.low, cast(quadrant, bits(x).dtype())};
}

Reduced reduce(Value x, const Format& f) {
  const Reduced usual = near(x, f);
  const Values all = x.formula().branch(!(abs(x) <= f.limit),
                                        [&] {
                                          const Reduced other = far(x, f);
                                          return Values{other.r, other.minus_low, other.quadrant};
                                        },
                                        {usual.r, usual.minus_low, usual.quadrant});
  return {all[0], all[1], all[2]};
}

Value flip_sign(Value v, Value odd) {
  const int sign = v.dtype() == DType::f32 ? 31 : 63;
  return float_of(bits(v) ^ (odd << sign));
}

// One polynomial for both: of odd quadrants the cosine, 1 - z c(z), of even ones r - r z s(z),
// where z is r^2 with the low part.
Value sine(Value x, Value turns, const Reduced& t, const Format& f) {
  const Value odd = (turns & 1) != 0;
  const Value square = fma(t.r, t.r, -(t.r * (t.minus_low + t.minus_low)));
  const auto coefficient = [&](size_t i) {
    return select(odd, x.like(-f.cos[i]), x.like(-f.sin[i]));
  };
  Value p = coefficient(f.sin.size() - 1);
  for (size_t i = f.sin.size() - 1; i-- > 1;) p = fma(p, square, coefficient(i));
  const Value base = select(odd, 1.0, t.r), first = base * square;
  const Value rest = fma(first * square, p, select(odd, 0.0, t.minus_low));
  return flip_sign(base - fma(first, coefficient(0), rest), turns >> 1);
}

// By multiples of pi, with one polynomial on [-pi/2, pi/2] and without a low part.
Value fast_sine(Value x, bool cosine, const Format& f) {
  const double half = cosine ? 0.5 : 0.0;
  const Value shifted =
      cosine ? fma(x, f.two_over_pi / 2, -half) + f.magic : fma(x, f.two_over_pi / 2, f.magic);
  const Value n = cosine ? (shifted - f.magic) + half : shifted - f.magic;
  Value r = cosine ? -x : x;
  for (const double part : f.pi) r = fma(n, cosine ? part : -part, r);
  const auto past_limit = [&] {
    const Reduced t = far(x, f);
    const Value turns = cosine ? t.quadrant + 1 : t.quadrant;
    return Values{select((turns & 1) != 0, f.half_pi[0] - abs(t.r), t.r), turns >> 1};
  };
  const Values all = x.formula().branch(!(abs(x) <= f.limit), past_limit, {r, bits(shifted)});
  const Value square = all[0] * all[0];
  return flip_sign(all[0] * fma(square, horner(square, f.half_sin), 1.0), all[1]);
}

}  // namespace

Value sin(Value x, Accuracy accuracy) {
  const Format& f = format_of(x);
  if (accuracy == Accuracy::fast) return fast_sine(x, false, f);
  const Reduced t = reduce(x, f);
  return sine(x, t.quadrant, t, f);
}

Value cos(Value x, Accuracy accuracy) {
  const Format& f = format_of(x);
  if (accuracy == Accuracy::fast) return fast_sine(x, true, f);
  const Reduced t = reduce(x, f);
  return sine(x, t.quadrant + 1, t, f);
}

Value tan(Value x, Accuracy accuracy) {
  const Format& f = format_of(x);
  const Reduced t = reduce(x, f);
  const Value odd = (t.quadrant & 1) != 0;
  const Value square = t.r * t.r, cube = t.r * square;
  if (accuracy == Accuracy::fast) {
    const Value tangent = fma(cube, horner(square, f.tan), t.r - t.minus_low);
    return select(odd, -1.0 / tangent, tangent);
  }
  const Value p = horner(square, f.tan.subspan(1)),
              rough = fma(cube, fma(square, p, f.tan[0]), t.r);
  // What the square's rounding lost counts with tan's slope in it, about r / 2.
  const Value lost = fma(t.r, t.r, -square) * t.r;
  const Value low = fma(lost, 0.5, -(t.minus_low * fma(rough, rough, 1.0)));
  const Value rest = fma(cube * square, p, low);
  const Pair tangent = fast_two_sum(t.r, fma(cube, f.tan[0], rest));
  // -1 / (high + low), by one step of Newton's method.
  const Value inverse = -1.0 / tangent.high;
  const Value error = fma(inverse, tangent.low, fma(inverse, tangent.high, 1.0));
  return select(odd, fma(inverse, error, inverse), tangent.high);
}

}  // namespace picokernel::passes::math
