// Casts from floats to integers saturate and give 0 for NaN; C, NumPy and MLX leave both open.
#include <cmath>
#include <limits>

#include "passes/legalize/expand.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {
namespace {

using namespace ir;

// The bounds of an integer type in a floating-point type.
struct Bounds {
  Scalar min;   // exact: 0 or a power of two
  Scalar max;   // the largest float that is not above the integer maximum
  Scalar past;  // the maximum + 1, exact: a power of two
  Scalar int_max;
  bool max_is_exact;  // max is the integer maximum itself
};

template <class F, class T>
Bounds bounds_of() {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using Limits = std::numeric_limits<T>;
    const F past = std::ldexp(F(1), Limits::digits);
    const bool exact = Limits::digits <= std::numeric_limits<F>::digits;
    const F max = exact ? static_cast<F>(Limits::max()) : std::nextafter(past, F(0));
    return {Scalar::of(static_cast<F>(Limits::min())), Scalar::of(max), Scalar::of(past),
            Scalar::of(Limits::max()), exact};
  } else {
    return {};
  }
}

// From float32 or float64.
Bounds bounds(DType from, DType to) {
  return visit(to, [&]<class T>(T*) {
    return from == DType::f32 ? bounds_of<float, T>() : bounds_of<double, T>();
  });
}

}  // namespace

Module expand_float_to_int(const Module& m, const Target&) {
  return expand_ops(m, [&](Expansion& e, const Op& op) -> ValueId {
    const DType to = m.type(op.results[0]).dtype;
    if (op.opcode != Opcode::cast || !is_float(e.dtype()) || !is_integer(to)) return {};
    if (is_half(e.dtype())) return {};  // expand_halves widens them first
    const ValueId x = e.operand(0);
    const Bounds b = bounds(e.dtype(), to);
    const ValueId low = e.constant(b.min);
    const ValueId high = e.constant(b.max);
    const ValueId raised = e.op(Opcode::maximum, {x, low});
    const ValueId clamped = e.op(Opcode::minimum, {raised, high});
    const ValueId nan = e.op(Opcode::isnan, {x});
    const ValueId zero = e.constant(0.0);
    const ValueId safe = e.op(Opcode::select, {nan, zero, clamped});
    const ValueId result = e.cast(safe, to);
    if (b.max_is_exact) return result;
    // No float equals the maximum: what lies past it is put right afterwards.
    const ValueId past = e.constant(b.past);
    const ValueId above = e.op(Opcode::ge, {x, past});
    const ValueId int_max = e.constant(b.int_max);
    return e.op(Opcode::select, {above, int_max, result});
  });
}

}  // namespace picokernel::passes
