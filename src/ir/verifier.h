// Checks the invariants of a module; collects every violation.
#pragma once

#include <vector>

#include "ir/module.h"

namespace picokernel::ir {

std::vector<Diagnostic> verify(const Module& m);
/// Throws InternalError with the module's text if it is not well formed. `after` names the seam.
void verify_or_throw(const Module& m, std::string_view after);

}  // namespace picokernel::ir
