// The passes that leave what C defines, which all languages of its family understand alike.
#pragma once

#include "passes/common/passes.h"
#include "passes/legalize/passes.h"

namespace picokernel::backend::c_like {

inline constexpr passes::Pass kLegalize[] = {
    {"expand_halves", passes::expand_halves, "storage here; arithmetic is float32's"},
    {"expand_double_to_half", passes::expand_double_to_half, "to float32 first"},
    {"expand_float16", passes::expand_float16, "what is left are their bits"},
    {"expand_bfloat16", passes::expand_bfloat16, "likewise"},
    {"expand_math", passes::expand_math, "libraries' functions differ from one to the next"},
    {"expand_float_to_int", passes::expand_float_to_int, "undefined out of range"},
    {"expand_popcount", passes::expand_popcount, "C11 has none; before abs and products go"},
    {"expand_int_pow", passes::expand_int_pow, "before the loops, which count exponents down"},
    {"expand_int_loops", passes::expand_int_loops, "C has neither"},
    {"expand_int_division", passes::expand_int_division, "undefined by 0"},
    {"expand_signed_division", passes::expand_signed_division, "C's rounds towards zero"},
    {"expand_shifts", passes::expand_shifts, "undefined past the width"},
    {"expand_fmin_fmax", passes::expand_fmin_fmax, "by minimum and maximum"},
    {"expand_minimum_maximum", passes::expand_minimum_maximum, "fmin leaves zeros' signs open"},
    {"expand_float_tests", passes::expand_float_tests, "what the passes before made, too"},
    {"expand_for", passes::expand_for, "an index must not overflow"},
    {"expand_overflow", passes::expand_overflow, "of all that the passes before made"},
    {"fold", passes::fold, "what the expansions made of constants"},
    {"cse", passes::cse, "what they made twice"},
    {"simplify", passes::simplify, "conversions there and back, comparisons of equal values"},
    {"cse", passes::cse, "what that made equal"},
    {"dce", passes::dce, "what they left over"},
};

}  // namespace picokernel::backend::c_like
