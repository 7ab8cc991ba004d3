// Calls of IR functions written as text.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "ir/module.h"

namespace picoc {

/// Why the backend cannot take the module: a kernel where it takes graphs, or what its check finds.
/// Empty if it can.
std::vector<picokernel::Diagnostic> refusals(const picokernel::backend::Backend& backend,
                                             const picokernel::ir::Module& m);

/// `@f(1, [2.5, 3])` on a backend that the core can open: the results as text, "3" or "[1.5, 2],
/// 7".
std::string run_call(const std::vector<picokernel::ir::Module>& modules, const std::string& call,
                     const picokernel::backend::Backend& backend);

/// A test line: `@f(1, 2) == 3` compares results, `@f([1], [0]) leaves [1], [5]` all arguments
/// after the call. Runs on the reference interpreter and on every live backend. Empty if all agree,
/// else what differs.
std::string check_run(const std::vector<picokernel::ir::Module>& modules, const std::string& line);

}  // namespace picoc
