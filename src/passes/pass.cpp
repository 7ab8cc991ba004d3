// The table of all passes: what `picoc opt --pass` names and the fuzzer runs.
#include "passes/pass.h"

#include <algorithm>

#include "passes/common/passes.h"
#include "passes/graph/passes.h"
#include "passes/legalize/passes.h"
#include "passes/lower/lower_loops.h"

namespace picokernel::passes {
namespace {

constexpr Pass kPasses[] = {
    {"fold", fold, "evaluates ops whose operands are constants"},
    {"simplify", simplify, "applies exact algebraic rules"},
    {"cse", cse, "merges equal pure ops and reads"},
    {"contract", contract, "fuses products and sums where fastmath allows it"},
    {"dce", dce, "removes what nobody uses"},
    {"compose_views", compose_views, "turns views of views into views of their storage"},
    {"bind_outputs", bind_outputs, "turns results into written parameters"},
    {"materialize", materialize, "copies to scratch what no nest could compute in place"},
    {"assign_scratch", assign_scratch, "gives every computed array a destination, by liveness"},
    {"lower_loops", lower_loops, "turns a graph into loop nests"},
    {"lower_arrays", lower_arrays, "turns a graph into a function of arrays and sizes"},
    {"lower_threads", lower_threads, "turns a kernel of threads into loops over its grid"},
    {"expand_float_to_int", expand_float_to_int, "clamps what a cast to integers could not hold"},
    {"expand_int_pow", expand_int_pow, "keeps exponents of integers from being negative"},
    {"expand_int_division", expand_int_division, "keeps integer divisors from being 0 or -1"},
    {"expand_float_division", expand_float_division,
     "spells out floor division and remainders of floats"},
    {"expand_shifts", expand_shifts, "keeps shift counts below the width"},
    {"expand_fmin_fmax", expand_fmin_fmax, "spells out fmin and fmax"},
    {"expand_functions", expand_functions, "computes exp2, cbrt and hypot by other functions"},
    {"expand_inexact", expand_inexact, "mends exp, sin and erf where MLX computes them wrong"},
    {"expand_math", expand_math, "computes exp, sin and their like by arithmetic"},
    {"expand_copysign", expand_copysign, "spells out copysign"},
    {"expand_popcount", expand_popcount, "counts bits by shifts and additions"},
    {"expand_neg", expand_neg, "spells out neg"},
    {"expand_halves", expand_halves, "computes on half types in float32"},
    {"expand_bfloat16", expand_bfloat16, "spells out conversions of bfloat16 in integers"},
    {"expand_double_to_half", expand_double_to_half,
     "rounds float64 to float16 once, by way of float32"},
    {"expand_float16", expand_float16, "spells out conversions of float16 in integers"},
    {"expand_minimum_maximum", expand_minimum_maximum, "spells out minimum and maximum"},
    {"expand_float_tests", expand_float_tests, "spells out isnan, isinf, isfinite and signbit"},
    {"expand_int_loops", expand_int_loops, "computes integer powers and gcd by loops"},
    {"expand_signed_division", expand_signed_division, "divides magnitudes of signed integers"},
    {"expand_overflow", expand_overflow, "computes unsigned what could overflow"},
    {"expand_for", expand_for, "makes loops count from 0 by 1"},
    {"flatten_meetings", flatten_meetings, "takes barriers out of branches"},
    {"isolate_params", isolate_params, "reads every parameter before any is written"},
};

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

const Pass* find_pass(std::string_view name) {
  const auto found = std::ranges::find(kPasses, name, &Pass::name);
  return found == std::end(kPasses) ? nullptr : found;
}

}  // namespace picokernel::passes
