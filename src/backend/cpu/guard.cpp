// Fatal errors of LLVM, and the lock round it.
//
// LLVM reports some failures of code generation by report_fatal_error, which ends the process. Its
// frames may be built without unwind tables, so no exception can cross them; the handler jumps past
// them instead, as LLVM's own CrashRecoveryContext does, and what they owned is leaked. Malformed
// modules never get that far: they are verified first, so only bugs of LLVM itself arrive here.
#include <csetjmp>
#include <mutex>

#include <llvm/Support/ErrorHandling.h>

#include "backend/cpu/compile.h"
#include "backend/cpu/debuggers.h"
#include "runtime/fork.h"

namespace picokernel::backend::cpu {
namespace {

thread_local std::jmp_buf* landing = nullptr;
thread_local char fatal_message[512];

void on_fatal_error(void*, const char* reason, bool) {
  if (landing == nullptr) return;  // not ours: LLVM ends the process
  size_t n = 0;
  for (; reason[n] != '\0' && n + 1 < sizeof fatal_message; ++n) fatal_message[n] = reason[n];
  fatal_message[n] = '\0';
  std::longjmp(*landing, 1);
}

struct Lock {
  std::mutex mutex;
  runtime::ForkRegistration registration{
      runtime::ForkStage::compile,
      {&mutex, [](void* m) { static_cast<std::mutex*>(m)->lock(); },
       [](void* m) { static_cast<std::mutex*>(m)->unlock(); },
       [](void* m) { static_cast<std::mutex*>(m)->unlock(); }}};
};
// Never destroyed: a thread may be compiling at exit.
Lock& llvm_lock() {
  static Lock& lock = []() -> Lock& {
    Lock& first = *new Lock;
    let_debuggers_fork();
    return first;
  }();
  return lock;
}

// No object with a destructor lives here: the jump skips none of ours.
bool returns_normally(void (*f)(void*), void* context) {
  std::jmp_buf here;
  landing = &here;
  if (setjmp(here) != 0) {
    landing = nullptr;
    return false;
  }
  f(context);
  landing = nullptr;
  return true;
}

}  // namespace

std::string run_guarded(void (*f)(void*), void* context) {
  static const bool installed = [] {
    llvm::install_fatal_error_handler(on_fatal_error);
    return true;
  }();
  (void)installed;
  if (returns_normally(f, context)) return {};
  return fatal_message[0] != '\0' ? fatal_message : "unknown fatal error";
}

void fail_in_llvm(const char* reason) {
  llvm::report_fatal_error(reason, /*gen_crash_diag=*/false);
}

LlvmLock::LlvmLock() { llvm_lock().mutex.lock(); }
LlvmLock::~LlvmLock() { llvm_lock().mutex.unlock(); }

}  // namespace picokernel::backend::cpu
