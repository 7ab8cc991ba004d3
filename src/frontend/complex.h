// Complex functions on pairs of real values.
#pragma once

#include <span>
#include <string_view>

#include "ir/builder.h"

namespace picokernel::frontend {

// Parts of one dtype.
struct Complex {
  ir::ValueId real = {}, imag = {};
};

// A result with an invalid imaginary part is real, or bool.
using ComplexFunction = Complex (*)(ir::Builder&, std::span<const Complex>);

/// By the ufunc's name; null: NumPy has none, or it is not supported.
ComplexFunction find_complex(std::string_view ufunc);
/// The names that there are, for messages.
std::string_view complex_functions();

/// x to a power that is known at trace time, by products where NumPy takes products. Invalid parts:
/// by exp and log.
Complex complex_power(ir::Builder& b, const Complex& x, double exponent);

}  // namespace picokernel::frontend
