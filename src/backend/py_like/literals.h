// Constants and types as Python text.
#pragma once

#include <string>
#include <string_view>

#include "ir/scalar.h"

namespace picokernel::backend::py_like {

/// The attribute of NumPy's or MLX's module that is the dtype: "float32", "bool_".
std::string_view dtype_name(DType dtype);

/// A Python literal that becomes exactly this constant when an operand of the constant's dtype
/// stands beside it (a Python float or int is weak there). `module` spells what has no literal:
/// np.inf, -np.inf, np.nan.
std::string literal(ir::Scalar s, std::string_view module);

}  // namespace picokernel::backend::py_like
