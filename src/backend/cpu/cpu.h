// Native code for this machine's CPU, through LLVM and a vectoriser of our own.
#pragma once

#include <string>

#include "backend/backend.h"

namespace picokernel::backend {

extern const Backend cpu_backend;
extern const Backend llvm_backend;  // prints the LLVM IR that cpu compiles
extern const Backend asm_backend;   // prints the assembly
extern const Backend obj_backend;   // makes object files for other programs

namespace cpu {

/// What compiled code depends on beside the kernel: a part of its key in caches. PICOKERNEL_CPU
/// changes it.
std::string target_key();

std::string emit_llvm_text(const ir::Module& kernel);
std::string emit_assembly(const ir::Module& kernel);

}  // namespace cpu
}  // namespace picokernel::backend
