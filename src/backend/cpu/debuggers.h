// Loaded code by name in gdb and perf.
#pragma once

#include <memory>

#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ObjectFile.h>

namespace picokernel::backend::cpu {

// From construction to destruction gdb knows the functions of a loaded object, by its interface for
// just-in-time compilers. With PICOKERNEL_PERF=map in the environment they are also appended to
// /tmp/perf-<pid>.map, where `perf report` looks for names. Throws LaunchError for other values.
class KnownToDebuggers {
 public:
  KnownToDebuggers(const llvm::object::ObjectFile& object,
                   const llvm::RuntimeDyld::LoadedObjectInfo& loaded);
  ~KnownToDebuggers();
  KnownToDebuggers(const KnownToDebuggers&) = delete;
  KnownToDebuggers& operator=(const KnownToDebuggers&) = delete;

 private:
  struct Registered;
  std::unique_ptr<Registered> registered_;  // null where objects have no debuggable form
};

/// Registers their lock for forks: before anybody compiles, for who registers one while holding
/// another waits for a fork that waits for him.
void let_debuggers_fork();

}  // namespace picokernel::backend::cpu
