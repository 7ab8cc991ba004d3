// Stop tokens of threads, and the host's question.
#include "runtime/stop.h"

#include <atomic>
#include <utility>

#include "trace/clock.h"

namespace picokernel {
namespace {

constexpr double kBetweenQuestionsNs = 10e6;

thread_local const StopScope* innermost = nullptr;
thread_local uint64_t next_question = 0;
std::atomic<bool (*)()> host_question{nullptr};

}  // namespace

class StopState {
 public:
  static bool requested() { return innermost != nullptr && innermost->token_.stop_requested(); }
};

StopScope::StopScope(std::stop_token token) : token_(std::move(token)), outer_(innermost) {
  innermost = this;
}
StopScope::~StopScope() { innermost = outer_; }

namespace runtime {

void set_stop_question(bool (*question)()) { host_question.store(question); }

bool stop_requested() {
  if (StopState::requested()) return true;
  bool (*const question)() = host_question.load(std::memory_order_relaxed);
  if (question == nullptr) return false;
  const uint64_t now = trace::now();
  if (now < next_question) return false;
  static const auto pause =
      static_cast<uint64_t>(kBetweenQuestionsNs / trace::nanoseconds_per_tick());
  next_question = now + pause;
  return question();
}

void throw_stopped() { throw Stopped("the launch was asked to stop and ended early"); }

}  // namespace runtime
}  // namespace picokernel
