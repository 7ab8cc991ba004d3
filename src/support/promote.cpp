// NumPy 2's promotion of two strong types.
#include <algorithm>

#include <picokernel/dtype.h>

namespace picokernel {
namespace {

DType signed_of_size(size_t bytes) {
  return bytes <= 1 ? DType::i8 : bytes <= 2 ? DType::i16 : bytes <= 4 ? DType::i32 : DType::i64;
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b || is_bool(b)) return a;
  if (is_bool(a)) return b;
  if (is_complex(a) || is_complex(b)) return complex_of(promote(real_of(a), real_of(b)));
  if (is_float(a) && is_float(b)) return is_half(a) && is_half(b) ? DType::f32 : std::max(a, b);
  if (is_float(a) != is_float(b)) {
    // The float, unless it cannot hold every such integer: half types hold those of 8 bits, float32
    // those of 16.
    const DType f = is_float(a) ? a : b, i = is_float(a) ? b : a;
    if (size_of(i) == 1) return f;
    return size_of(i) == 2 ? promote(f, DType::f32) : DType::f64;
  }
  if (kind_of(a) == kind_of(b)) return std::max(a, b);
  const DType s = is_signed(a) ? a : b, u = is_signed(a) ? b : a;
  if (size_of(u) < size_of(s)) return s;
  if (u == DType::u64) return DType::f64;
  return signed_of_size(2 * size_of(u));
}

bool same_kind(DType from, DType to) {
  if (is_bool(from) || is_complex(to)) return true;
  if (is_complex(from)) return false;
  if (is_float(to)) return true;
  if (is_float(from) || is_bool(to)) return from == to;
  return is_signed(to) || is_unsigned(from);
}

}  // namespace picokernel
