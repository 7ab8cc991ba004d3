// Complex arrays in the IR: arrays of reals whose last dimension of 2 holds the real and the
// imaginary part.
#pragma once

#include "ir/builder.h"

namespace picokernel::ir {

/// The real (0) or the imaginary (1) parts of a ref to pairs, as a view.
ValueId part_of(Builder& b, ValueId pairs, int part);
/// An array of pairs with these parts, which broadcast to `shape`, as a value.
ValueId make_pairs(Builder& b, ValueId real, ValueId imag, std::vector<SizeId> shape);

}  // namespace picokernel::ir
