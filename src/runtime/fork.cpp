// The one pthread_atfork registration of the library.
#include "runtime/fork.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include <pthread.h>

#include "trace/fork.h"

namespace picokernel::runtime {

namespace {

struct Entry {
  ForkStage stage;
  ForkHooks hooks;
};

struct Registry {
  std::mutex mutex;
  std::vector<Entry> entries;  // by stage, then age
};

// Never destroyed: caches with static lifetime unregister during exit.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

void prepare() {
  registry().mutex.lock();
  for (const Entry& e : registry().entries) e.hooks.prepare(e.hooks.context);
  trace::before_fork();
}

void in_parent() {
  trace::after_fork_in_parent();
  auto& entries = registry().entries;
  for (auto e = entries.rbegin(); e != entries.rend(); ++e) e->hooks.parent(e->hooks.context);
  registry().mutex.unlock();
}

void in_child() {
  trace::after_fork_in_child();
  auto& entries = registry().entries;
  for (auto e = entries.rbegin(); e != entries.rend(); ++e) e->hooks.child(e->hooks.context);
  registry().mutex.unlock();
}

[[maybe_unused]] const int kRegistered = pthread_atfork(prepare, in_parent, in_child);

}  // namespace

ForkRegistration::ForkRegistration(ForkStage stage, const ForkHooks& hooks)
    : stage_(stage), hooks_(hooks) {
  const std::lock_guard lock(registry().mutex);
  auto& entries = registry().entries;
  const auto behind =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.stage > stage; });
  entries.insert(behind, {stage, hooks});
}

ForkRegistration::~ForkRegistration() {
  const std::lock_guard lock(registry().mutex);
  std::erase_if(registry().entries, [&](const Entry& e) {
    return e.stage == stage_ && e.hooks.context == hooks_.context &&
           e.hooks.prepare == hooks_.prepare;
  });
}

}  // namespace picokernel::runtime
