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
  if (is_float(a) && is_float(b)) return std::max(a, b);
  if (is_float(a) != is_float(b)) {
    // float32 holds every integer of up to 16 bits exactly; wider ones need float64.
    const DType f = is_float(a) ? a : b, i = is_float(a) ? b : a;
    return f == DType::f64 || size_of(i) > 2 ? DType::f64 : f;
  }
  if (kind_of(a) == kind_of(b)) return std::max(a, b);
  const DType s = is_signed(a) ? a : b, u = is_signed(a) ? b : a;
  if (size_of(u) < size_of(s)) return s;
  if (u == DType::u64) return DType::f64;
  return signed_of_size(2 * size_of(u));
}

bool same_kind(DType from, DType to) {
  if (is_bool(from) || is_float(to)) return true;
  if (is_float(from) || is_bool(to)) return from == to;
  return is_signed(to) || is_unsigned(from);
}

}  // namespace picokernel
