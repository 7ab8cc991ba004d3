// Constants and types as Python text.
#pragma once

#include <string>
#include <string_view>

#include "ir/scalar.h"

namespace picokernel::backend::py_like {

/// NumPy's or MLX's dtype ("np" or "mx") as an expression: "np.float32", "mx.bool_". NumPy's
/// bfloat16 is the one of ml_dtypes.
std::string dtype_name(DType dtype, std::string_view module);

/// A Python literal that becomes exactly this constant when an operand of the constant's dtype
/// stands beside it (a Python float or int is weak there). `module` spells what has no literal:
/// np.inf, -np.inf, np.nan.
std::string literal(ir::Scalar s, std::string_view module);

}  // namespace picokernel::backend::py_like
