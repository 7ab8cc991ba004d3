// Spelling constants.
#include "backend/py_like/literals.h"

#include <charconv>
#include <cmath>
#include <type_traits>

namespace picokernel::backend::py_like {
namespace {

template <class T>
std::string shortest(T value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Python reads a float64 and rounds that to float32: nearly always the shortest text survives both.
std::string spell(float value) {
  std::string text = shortest(value);
  double wide = 0;
  std::from_chars(text.data(), text.data() + text.size(), wide);
  return static_cast<float>(wide) == value ? text : shortest(static_cast<double>(value));
}
std::string spell(double value) { return shortest(value); }

}  // namespace

std::string dtype_name(DType dtype, std::string_view module) {
  if (dtype == DType::bf16 && module == "np") return "ml_dtypes.bfloat16";
  return std::string(module) + "." + std::string(is_bool(dtype) ? "bool_" : numpy_name(dtype));
}

std::string literal(ir::Scalar s, std::string_view module) {
  return ir::visit(s.dtype, [&]<class T>(T*) -> std::string {
    const auto value = static_cast<ir::Arithmetic<T>>(s.as<T>());
    if constexpr (std::is_same_v<T, bool>) {
      return value ? "True" : "False";
    } else if constexpr (ir::is_floating_type<T>) {
      if (std::isnan(value)) return std::string(module) + ".nan";
      if (std::isinf(value)) return (value < 0 ? "-" : "") + std::string(module) + ".inf";
      return spell(value);
    } else {
      return std::to_string(value);
    }
  });
}

}  // namespace picokernel::backend::py_like
