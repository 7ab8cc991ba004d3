// Passes that rewrite ops a target lacks, or does differently, into ops that it does as
// docs/semantics.md says.
#pragma once

#include "passes/pass.h"

namespace picokernel::passes {

/// Casts from floats to integers get operands in range: clamped, NaN replaced by 0.
ir::Module expand_float_to_int(const ir::Module& m, const Target& target);
/// Powers of signed integers get exponents that are not negative.
ir::Module expand_int_pow(const ir::Module& m, const Target& target);
/// Integer floordiv and mod get divisors other than 0 and -1.
ir::Module expand_int_division(const ir::Module& m, const Target& target);
/// Floating-point floordiv, mod and fmod become NumPy's algorithm over mod of magnitudes, which is
/// the exact fmod.
ir::Module expand_float_division(const ir::Module& m, const Target& target);
/// Shifts get counts from 0 to width - 1.
ir::Module expand_shifts(const ir::Module& m, const Target& target);
/// fmin and fmax become minimum and maximum with selects for NaN.
ir::Module expand_fmin_fmax(const ir::Module& m, const Target& target);
/// exp2, cbrt and hypot become pow and sqrt: results may differ in the last digits.
ir::Module expand_functions(const ir::Module& m, const Target& target);
/// exp, sin and erf of float32 get right where MLX's own are wrong: far from 0, near 0 and at -0.0.
ir::Module expand_inexact(const ir::Module& m, const Target& target);
/// exp, sin and their like become arithmetic: one text for all targets, hence the same bits.
/// Kernels only.
ir::Module expand_math(const ir::Module& m, const Target& target);
/// copysign becomes signbit and neg.
ir::Module expand_copysign(const ir::Module& m, const Target& target);
/// Arithmetic on float16 and bfloat16 becomes float32's, rounded after each op; what is left of
/// them are loads, stores, selects, casts to and from float32, and float16's from float64.
ir::Module expand_halves(const ir::Module& m, const Target& target);
/// Casts between float32 and bfloat16 become integer operations.
ir::Module expand_bfloat16(const ir::Module& m, const Target& target);
/// Casts from float64 to float16 go through a float32 that is rounded to odd.
ir::Module expand_double_to_half(const ir::Module& m, const Target& target);
/// popcount becomes shifts, masks and additions.
ir::Module expand_popcount(const ir::Module& m, const Target& target);
/// neg becomes mul by -1 for floats and sub from 0 for integers.
ir::Module expand_neg(const ir::Module& m, const Target& target);
/// Casts between float32 and float16 become integer operations.
ir::Module expand_float16(const ir::Module& m, const Target& target);
/// minimum and maximum become comparisons and selects.
ir::Module expand_minimum_maximum(const ir::Module& m, const Target& target);
/// isnan, isinf, isfinite and signbit become comparisons and operations on bits.
ir::Module expand_float_tests(const ir::Module& m, const Target& target);
/// Powers of integers, with exponents that are not negative, and gcd become loops. Kernels only.
ir::Module expand_int_loops(const ir::Module& m, const Target& target);
/// Signed floordiv and mod become unsigned ones. Divisors are not 0.
ir::Module expand_signed_division(const ir::Module& m, const Target& target);
/// Integer arithmetic that could overflow becomes unsigned arithmetic of at least 32 bits.
ir::Module expand_overflow(const ir::Module& m, const Target& target);
/// Loops with other steps than 1 count turns from 0.
ir::Module expand_for(const ir::Module& m, const Target& target);
/// Barriers leave the branches that they are in, and are passed by all: branches stay between them.
/// Kernels only.
ir::Module flatten_meetings(const ir::Module& m, const Target& target);
/// Storages are read before any parameter is written: one read per parameter, one write per written
/// one, at the end.
ir::Module isolate_params(const ir::Module& m, const Target& target);

}  // namespace picokernel::passes
