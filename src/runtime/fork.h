// fork(): who holds which lock while the process is copied, and what the child forgets.
#pragma once

#include <picokernel/api.h>

namespace picokernel::runtime {

/// Locks are taken in this order before a fork and released in the reverse order after it, in
/// parent and child. Code that holds one of them may take a later one, never an earlier one. Trace
/// locks come after all of these.
enum class ForkStage { compile, cache, pool };

struct ForkHooks {
  void* context = nullptr;
  void (*prepare)(void* context) = nullptr;  // takes the lock
  void (*parent)(void* context) = nullptr;   // releases it
  void (*child)(void* context) = nullptr;    // drops what other threads owned, then releases it
};

/// From construction to destruction the hooks run at every fork.
class PK_API ForkRegistration {
 public:
  ForkRegistration(ForkStage stage, const ForkHooks& hooks);
  ~ForkRegistration();
  ForkRegistration(const ForkRegistration&) = delete;
  ForkRegistration& operator=(const ForkRegistration&) = delete;

 private:
  ForkStage stage_;
  ForkHooks hooks_;
};

}  // namespace picokernel::runtime
