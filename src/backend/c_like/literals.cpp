// Floats are decimal where that is short and exact, else hexadecimal, which no compiler rounds.
#include "backend/c_like/literals.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace picokernel::backend::c_like {
namespace {

using ir::Scalar;

template <class T>
std::string print_float(T v, const Dialect& dialect) {
  constexpr std::string_view kSuffix = std::is_same_v<T, float> ? "f" : "";
  if (std::isnan(v)) return std::string(dialect.nan);
  const std::string sign = std::signbit(v) ? "-" : "";
  const T magnitude = std::fabs(v);
  if (std::isinf(v)) return sign + std::string(dialect.infinity);
  char buffer[64];
  char* const last = buffer + sizeof buffer;
  if (magnitude < 65536 && std::trunc(magnitude * 8) == magnitude * 8) {
    std::string text(buffer, std::to_chars(buffer, last, magnitude, std::chars_format::fixed).ptr);
    if (text.find('.') == text.npos) text += ".0";
    return sign + text.append(kSuffix);
  }
  char* const end = std::to_chars(buffer, last, magnitude, std::chars_format::hex).ptr;
  return sign + "0x" + std::string(buffer, end).append(kSuffix);
}

std::string print_signed(int64_t v, const Dialect& dialect, bool wide, bool typed) {
  if (v == std::numeric_limits<int64_t>::min()) return std::string(dialect.i64_least);
  if (v == std::numeric_limits<int32_t>::min() && !wide) return std::string(dialect.i32_least);
  const std::string text = std::to_string(v);
  const bool fits = v == static_cast<int32_t>(v) && v != std::numeric_limits<int32_t>::min();
  if (fits && !(wide && typed)) return text;
  const std::string digits = text.substr(v < 0);
  return (v < 0 ? "-" : "") + fill(dialect.i64_literal, {digits});
}

std::string print_unsigned(uint64_t v, DType t, const Dialect& dialect, bool typed) {
  const std::string digits = std::to_string(v);
  if (size_of(t) < 4) return digits;
  if (t == DType::u32 || (!typed && v == static_cast<uint32_t>(v))) return digits + "u";
  return fill(dialect.u64_literal, {digits});
}

}  // namespace

std::string literal(Scalar s, const Dialect& dialect, bool typed) {
  if (is_bool(s.dtype)) return s.bits != 0 ? "true" : "false";
  if (is_half(s.dtype)) return std::to_string(s.bits);
  if (s.dtype == DType::f32) return print_float(s.as<float>(), dialect);
  if (s.dtype == DType::f64) return print_float(s.as<double>(), dialect);
  if (is_signed(s.dtype))
    return print_signed(s.as<int64_t>(), dialect, s.dtype == DType::i64, typed);
  return print_unsigned(s.bits, s.dtype, dialect, typed);
}

bool has_literal(Scalar s) {
  if (s.dtype == DType::f32)
    return !std::isnan(s.as<float>()) || s == Scalar::of(std::numeric_limits<float>::quiet_NaN());
  if (s.dtype == DType::f64)
    return !std::isnan(s.as<double>()) || s == Scalar::of(std::numeric_limits<double>::quiet_NaN());
  return true;
}

}  // namespace picokernel::backend::c_like
