// Promotion of types.
#include "frontend/promotion.h"

#include <algorithm>

#include "support/check.h"

namespace picokernel::frontend {
namespace {

int weak_rank(DType t) { return is_bool(t) ? 0 : is_complex(t) ? 3 : is_float(t) ? 2 : 1; }

LoopType refuse(std::string allowed, std::string hint) {
  return {.dtype = std::nullopt, .allowed = std::move(allowed), .hint = std::move(hint)};
}

LoopType refuse_bool(std::string_view ufunc) {
  if (ufunc == "subtract")
    return refuse("`subtract` takes integers and floats", "write a ^ b (logical_xor) for booleans");
  if (ufunc == "negative")
    return refuse("`negative` takes integers and floats", "write ~a (logical_not) for booleans");
  return refuse("`" + std::string(ufunc) + "` takes integers and floats",
                "cast first: a.astype(np.int8)");
}

// The smallest float that holds each of the integer operands. Their common type may be wider:
// uint16 with int16. Python integers are of the common type.
size_t float_bytes(DType common, std::span<const PromotedType> operands) {
  size_t bytes = 0;
  for (const PromotedType& t : operands)
    bytes = std::max(bytes, 2 * size_of(t.weak ? common : t.dtype));
  return std::min<size_t>(8, bytes);
}

}  // namespace

PromotedType common_type(std::span<const PromotedType> types) {
  std::optional<DType> strong;
  std::optional<DType> weak;
  for (const PromotedType& t : types) {
    if (!t.weak)
      strong = strong ? promote(*strong, t.dtype) : t.dtype;
    else if (!weak || weak_rank(t.dtype) > weak_rank(*weak))
      weak = t.dtype;
  }
  if (!strong) return {weak.value_or(DType::f64), true};
  if (!weak || weak_rank(*weak) == 0) return {*strong, false};
  // A number of a higher kind than the arrays' brings its default type, else the arrays decide.
  if (weak_rank(*weak) > weak_rank(*strong)) {
    if (is_complex(*weak)) return {is_float(*strong) ? complex_of(*strong) : DType::c128, false};
    return {is_float(*weak) ? DType::f64 : DType::i64, false};
  }
  return {*strong, false};
}

LoopType loop_type(std::string_view ufunc, Loops loops, DType common,
                   std::span<const PromotedType> operands) {
  const auto is = [](DType t) { return LoopType{.dtype = t, .allowed = {}, .hint = {}}; };
  const std::string name = "`" + std::string(ufunc) + "`";
  switch (loops) {
    case Loops::any:
    case Loops::comparison:
    case Loops::test:
    case Loops::rounding:
    case Loops::choice:
    case Loops::bounded:
      return is(common);
    case Loops::truth:
      return is(DType::b1);
    case Loops::float64:
      return is(DType::f64);
    case Loops::number:
      return is(is_bool(common) ? DType::i8 : common);
    case Loops::quotient:
      return is(is_float(common) ? common : DType::f64);
    case Loops::not_bool:
      return is_bool(common) ? refuse_bool(ufunc) : is(common);
    case Loops::floating:
    case Loops::format:
    case Loops::scaled: {
      if (is_float(common)) return is(common);
      const size_t bytes = float_bytes(common, operands);
      return is(bytes == 2 ? DType::f16 : bytes == 4 ? DType::f32 : DType::f64);
    }
    case Loops::bits:
    case Loops::integer:
    case Loops::shift:
      if (is_float(common) || (loops == Loops::integer && is_bool(common)))
        return refuse(name +
                          (loops == Loops::bits ? " takes integers and bool" : " takes integers") +
                          "; uint64 with a signed type has float64 as its common type",
                      "cast both operands to one integer type: a.astype(np.int64)");
      return is(loops == Loops::shift && is_bool(common) ? DType::i8 : common);
  }
  PK_UNREACHABLE();
}

std::string describe(PromotedType t) {
  if (!t.weak) return std::string(numpy_name(t.dtype));
  return is_bool(t.dtype)      ? "Python bool"
         : is_complex(t.dtype) ? "Python complex"
         : is_float(t.dtype)   ? "Python float"
                               : "Python int";
}

}  // namespace picokernel::frontend
