// NEP 50 on types alone: the common type of operands, and the type that a ufunc's loop runs in.
#pragma once

#include <optional>
#include <span>
#include <string>

#include <picokernel/dtype.h>

namespace picokernel::frontend {

// A type as promotion sees it. Weak: a Python number, which has a kind and no size.
struct PromotedType {
  DType dtype = DType::f64;
  bool weak = false;
  friend bool operator==(const PromotedType&, const PromotedType&) = default;
};

/// Weak only if all are. Python's bool counts as NumPy's beside strong types.
PromotedType common_type(std::span<const PromotedType> types);

// How the common type becomes the loop's; ufuncs.def says what each means.
enum class Loops : uint8_t {
  any,
  number,
  not_bool,
  floating,
  format,
  scaled,
  quotient,
  float64,
  bits,
  integer,
  shift,
  comparison,
  test,
  rounding,
  truth,
  choice,
  bounded,
};

// The loop's type, or why there is none: what is allowed, and what to write instead.
struct LoopType {
  std::optional<DType> dtype;
  std::string allowed, hint;
};
LoopType loop_type(std::string_view ufunc, Loops loops, DType common,
                   std::span<const PromotedType> operands);

/// "int32", or "Python int" for a weak type: for messages.
std::string describe(PromotedType type);

}  // namespace picokernel::frontend
