// What a kernel allows in floating-point arithmetic.
#pragma once

#include <cstdint>

namespace picokernel {

/// Of exp, sin, pow and their kin in a kernel: docs/accuracy.md has the errors of both. `fast`
/// allows errors of 4 units in the last place where that is cheaper; special values stay what they
/// are.
enum class Accuracy : uint8_t { strict, fast };

/// `fastmath` allows what changes last digits: x * y + z rounded once, a product with 1 / c for a
/// quotient by a constant. Infinities, NaN and signed zeros keep their meaning.
struct FloatMode {
  Accuracy accuracy = Accuracy::strict;
  bool fastmath = false;
  friend bool operator==(const FloatMode&, const FloatMode&) = default;
};

}  // namespace picokernel
