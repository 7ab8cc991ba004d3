// A constant: a dtype and its bits in 64.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include <picokernel/dtype.h>

namespace picokernel::ir {

template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <class T>
inline constexpr bool is_floating_type = std::is_floating_point_v<T> || is_half_type<T>;
// What arithmetic on T is done in.
template <class T>
using Arithmetic = std::conditional_t<is_half_type<T>, float, T>;

// Integers are sign- or zero-extended to 64 bits, bool is 0 or 1, shorter floats have their bits
// zero-extended: equal values of a type have equal bits (except that floats compare by bits: -0
// differs from 0).
struct Scalar {
  DType dtype = DType::i64;
  uint64_t bits = 0;

  template <class T>
  static Scalar of(T value) {
    Scalar s{dtype_of<T>, 0};
    if constexpr (is_floating_type<T>)
      std::memcpy(&s.bits, &value, sizeof value);
    else
      s.bits = static_cast<uint64_t>(static_cast<int64_t>(value));
    return s;
  }
  template <class T>
  T as() const {
    if constexpr (is_floating_type<T>) {
      T value;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    } else {
      return static_cast<T>(bits);
    }
  }
  friend bool operator==(const Scalar&, const Scalar&) = default;
};

/// Calls f with a null pointer of the dtype's C++ type: visit(t, [&]<class T>(T*) { ... }). No
/// value of the IR is complex.
template <class F>
decltype(auto) visit(DType t, F&& f) {
  switch (t) {
#define PK_VISIT(e, text, numpy, cpp, kind) \
  case DType::e:                            \
    return f(static_cast<cpp*>(nullptr));
    PK_REAL_DTYPES(PK_VISIT)
#undef PK_VISIT
    case DType::c64:
    case DType::c128:
      break;
  }
  __builtin_unreachable();
}

}  // namespace picokernel::ir
