// Passes that serve both levels, and graph passes that every backend runs.
#pragma once

#include "passes/pass.h"

namespace picokernel::passes {

/// Evaluates ops whose operands are all constants.
ir::Module fold(const ir::Module& m, const Target& target);
/// Applies the table of algebraic rules; every one is exact for its types.
ir::Module simplify(const ir::Module& m, const Target& target);
/// Merges equal pure ops of a region, and reads of one version of a storage.
ir::Module cse(const ir::Module& m, const Target& target);
/// Removes ops whose results nobody uses and writes to scratch that nobody reads.
/// Of modules with fastmath: products that a sum takes become fma, quotients by constants products.
ir::Module contract(const ir::Module& m, const Target& target);
ir::Module dce(const ir::Module& m, const Target& target);

}  // namespace picokernel::passes
