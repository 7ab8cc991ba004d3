// The meaning of every elementwise op on scalars: what `fold` computes and `ref` executes.
// Functions of rule `math` on floats have a meaning only up to their last digits: eval has the C
// library's.
#pragma once

#include <span>

#include "ir/module.h"

namespace picokernel::ir {

/// Operands have the dtypes that the type rules ask for; `result` is the result's dtype.
Scalar eval(Opcode opcode, std::span<const Scalar> operands, DType result);
Scalar cast(Scalar value, DType to);
/// Every target gives eval's bits. Not so exp, pow, ... of floats: what computes with them at
/// compile time would give other bits than an element has that meets the same operands.
bool is_exact(Opcode opcode, DType result);

}  // namespace picokernel::ir
