// LLVM's part: passes, code generation, and what happens when LLVM fails.
#pragma once

#include <span>
#include <string>

#include "backend/cpu/kernel_info.h"
#include "backend/cpu/target.h"
#include "ir/module.h"

namespace picokernel::backend::cpu {

// c_object: functions with C's calling convention, for programs without picokernel.
enum class Output : uint8_t { object, assembly, llvm_text, c_object };

struct CompiledKernel {
  std::string code;
  KernelInfo info;  // of the last kernel
};

/// Thread safe: kernels are compiled one at a time. Several at once for c_object only. Throws
/// InternalError, and Error if LLVM is built without the target.
CompiledKernel compile(std::span<const ir::Module> kernels, const Target& target, Output output);

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
