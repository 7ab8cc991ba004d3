// A kernel as a function with C's calling convention, for programs without picokernel.
#pragma once

#include <llvm/IR/Module.h>

#include "backend/cpu/kernel_info.h"
#include "backend/cpu/target.h"
#include "ir/module.h"

namespace picokernel::backend::cpu {

/// Adds the function that c_like::function_name names to a module that has just got the kernel's
/// nests; they become internal, and so does what they call but for the C library.
void emit_entry(const ir::Module& kernel, const KernelInfo& info, llvm::Module& module,
                const Target& target);

}  // namespace picokernel::backend::cpu
