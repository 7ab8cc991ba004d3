// Element types of arrays and scalars: one table, from which every list of types is made.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <picokernel/api.h>
#include <picokernel/half.h>

namespace picokernel {

enum class DTypeKind : uint8_t { boolean, signed_integer, unsigned_integer, floating, complex };

// X(enumerator, text name, NumPy name, C++ type, kind). Order is the order of promotion within a
// kind; float16 and bfloat16 stand side by side.
#define PK_REAL_DTYPES(X)                             \
  X(b1, "bool", "bool", bool, boolean)                \
  X(i8, "i8", "int8", int8_t, signed_integer)         \
  X(i16, "i16", "int16", int16_t, signed_integer)     \
  X(i32, "i32", "int32", int32_t, signed_integer)     \
  X(i64, "i64", "int64", int64_t, signed_integer)     \
  X(u8, "u8", "uint8", uint8_t, unsigned_integer)     \
  X(u16, "u16", "uint16", uint16_t, unsigned_integer) \
  X(u32, "u32", "uint32", uint32_t, unsigned_integer) \
  X(u64, "u64", "uint64", uint64_t, unsigned_integer) \
  X(f16, "f16", "float16", float16, floating)         \
  X(bf16, "bf16", "bfloat16", bfloat16, floating)     \
  X(f32, "f32", "float32", float, floating)           \
  X(f64, "f64", "float64", double, floating)
// Arrays may be complex. In the IR a complex array is one of its real type with a last dimension of
// 2, the real and the imaginary part.
#define PK_DTYPES(X)                                       \
  PK_REAL_DTYPES(X)                                        \
  X(c64, "c64", "complex64", std::complex<float>, complex) \
  X(c128, "c128", "complex128", std::complex<double>, complex)

enum class DType : uint8_t {
#define PK_DTYPE_ENUMERATOR(e, text, numpy, cpp, kind) e,
  PK_DTYPES(PK_DTYPE_ENUMERATOR)
#undef PK_DTYPE_ENUMERATOR
};

inline constexpr size_t kDTypeCount = 0
#define PK_DTYPE_COUNT(...) +1
    PK_DTYPES(PK_DTYPE_COUNT)
#undef PK_DTYPE_COUNT
    ;

inline constexpr size_t kRealDTypeCount = 0  // the types of values in the IR: the first ones
#define PK_DTYPE_COUNT(...) +1
    PK_REAL_DTYPES(PK_DTYPE_COUNT)
#undef PK_DTYPE_COUNT
    ;

/// Bytes of one element in memory.
constexpr size_t size_of(DType t) {
  constexpr size_t sizes[] = {
#define PK_DTYPE_SIZE(e, text, numpy, cpp, kind) sizeof(cpp),
      PK_DTYPES(PK_DTYPE_SIZE)
#undef PK_DTYPE_SIZE
  };
  return sizes[static_cast<size_t>(t)];
}

constexpr DTypeKind kind_of(DType t) {
  constexpr DTypeKind kinds[] = {
#define PK_DTYPE_KIND(e, text, numpy, cpp, kind) DTypeKind::kind,
      PK_DTYPES(PK_DTYPE_KIND)
#undef PK_DTYPE_KIND
  };
  return kinds[static_cast<size_t>(t)];
}

/// The short name used in the IR's text, such as "f32".
constexpr std::string_view text_name(DType t) {
  constexpr std::string_view names[] = {
#define PK_DTYPE_TEXT(e, text, numpy, cpp, kind) text,
      PK_DTYPES(PK_DTYPE_TEXT)
#undef PK_DTYPE_TEXT
  };
  return names[static_cast<size_t>(t)];
}

/// NumPy's name, such as "float32": the one used in messages to users.
constexpr std::string_view numpy_name(DType t) {
  constexpr std::string_view names[] = {
#define PK_DTYPE_NUMPY(e, text, numpy, cpp, kind) numpy,
      PK_DTYPES(PK_DTYPE_NUMPY)
#undef PK_DTYPE_NUMPY
  };
  return names[static_cast<size_t>(t)];
}

constexpr bool is_bool(DType t) { return kind_of(t) == DTypeKind::boolean; }
constexpr bool is_float(DType t) { return kind_of(t) == DTypeKind::floating; }
constexpr bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }
constexpr bool is_complex(DType t) { return kind_of(t) == DTypeKind::complex; }
constexpr bool is_signed(DType t) { return kind_of(t) == DTypeKind::signed_integer; }
constexpr bool is_unsigned(DType t) { return kind_of(t) == DTypeKind::unsigned_integer; }
constexpr bool is_integer(DType t) { return is_signed(t) || is_unsigned(t); }

/// The type of the parts of a complex type; other types are their own.
constexpr DType real_of(DType t) {
  return t == DType::c64 ? DType::f32 : t == DType::c128 ? DType::f64 : t;
}
/// The smallest complex type that holds a floating-point or complex one.
constexpr DType complex_of(DType t) {
  return t == DType::f64 || t == DType::c128 ? DType::c128 : DType::c64;
}

constexpr std::optional<DType> dtype_from_text(std::string_view name) {
  for (size_t i = 0; i < kDTypeCount; ++i)
    if (text_name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  return std::nullopt;
}

constexpr std::optional<DType> dtype_from_numpy(std::string_view name) {
  for (size_t i = 0; i < kDTypeCount; ++i)
    if (numpy_name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  return std::nullopt;
}

/// The element type of a C++ type: dtype_of<float> == DType::f32.
template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "no picokernel dtype for this C++ type");
  return DType::b1;
}();
#define PK_DTYPE_OF(e, text, numpy, cpp, kind) \
  template <>                                  \
  inline constexpr DType dtype_of<cpp> = DType::e;
PK_DTYPES(PK_DTYPE_OF)
#undef PK_DTYPE_OF

/// NumPy 2's promotion of two strong types (NEP 50; numpy.promote_types).
PK_API DType promote(DType a, DType b);
/// numpy.can_cast(from, to, "same_kind"): what a ufunc may cast into its out=.
PK_API bool same_kind(DType from, DType to);

}  // namespace picokernel
