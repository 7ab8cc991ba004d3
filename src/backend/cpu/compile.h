// LLVM's part: passes, code generation, and what happens when LLVM fails.
#pragma once

#include <string>

#include "backend/cpu/kernel_info.h"
#include "backend/cpu/target.h"
#include "ir/module.h"

namespace picokernel::backend::cpu {

enum class Output : uint8_t { object, assembly, llvm_text };

struct CompiledKernel {
  std::string code;
  KernelInfo info;
};

/// Thread safe: kernels are compiled one at a time. Throws InternalError.
CompiledKernel compile(const ir::Module& kernel, const Target& target, Output output);

/// Runs f() and gives the message of the LLVM fatal error that ended it, or an empty string. After
/// an error the objects that f worked on are in an unknown state: leak them.
std::string run_guarded(void (*f)(void* context), void* context);

/// Fails as LLVM does: inside run_guarded only.
[[noreturn]] void fail_in_llvm(const char* reason);

/// Holds the lock of everything in LLVM; for whoever calls it outside of compile().
class LlvmLock {
 public:
  LlvmLock();
  ~LlvmLock();
  LlvmLock(const LlvmLock&) = delete;
  LlvmLock& operator=(const LlvmLock&) = delete;
};

}  // namespace picokernel::backend::cpu
