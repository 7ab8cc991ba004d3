// The meaning of every elementwise op on scalars: what `fold` computes and `ref` executes.
#pragma once

#include <span>

#include "ir/module.h"

namespace picokernel::ir {

/// Operands have the dtypes that the type rules ask for; `result` is the result's dtype.
Scalar eval(Opcode opcode, std::span<const Scalar> operands, DType result);
Scalar cast(Scalar value, DType to);

}  // namespace picokernel::ir
