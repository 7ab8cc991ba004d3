// Passes on graphs.
#pragma once

#include "passes/pass.h"

namespace picokernel::passes {

/// Views of views become views of their storage.
ir::Module compose_views(const ir::Module& m, const Target& target);
/// Turns results into parameters that the body writes: ref parameters of a graph, pointers of a
/// kernel.
ir::Module bind_outputs(const ir::Module& m, const Target& target);
/// Copies a value to scratch where a loop nest could not read it from its storage any more, or
/// would read and write one storage through different maps.
ir::Module materialize(const ir::Module& m, const Target& target);
/// Destination-passing form for source printers: every computed array goes to an output or a
/// scratch, by liveness.
ir::Module assign_scratch(const ir::Module& m, const Target& target);

}  // namespace picokernel::passes
