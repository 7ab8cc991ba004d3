// A kernel as an LLVM module: a function per nest.
#pragma once

#include <llvm/IR/Module.h>

#include "backend/cpu/kernel_info.h"
#include "backend/cpu/target.h"
#include "ir/module.h"

namespace picokernel::backend::cpu {

/// Adds a verified kernel's functions to an empty module that has its data layout.
KernelInfo emit_module(const ir::Module& kernel, llvm::Module& module, const Target& target);

}  // namespace picokernel::backend::cpu
