// Constants as text.
#pragma once

#include <string>

#include "backend/c_like/dialect.h"

namespace picokernel::backend::c_like {

/// The value exactly. An integer is spelt as short as can be: as an int where the value fits, which
/// is right beside an operand of its own type; `typed` ones have their type by themselves.
std::string literal(ir::Scalar s, const Dialect& dialect, bool typed);
/// Every NaN but the default one needs its bits.
bool has_literal(ir::Scalar s);

}  // namespace picokernel::backend::c_like
