// The fork-join pool.
//
// A job is one cache line: function, context, chunk count and the number of chunks that nobody has
// taken. Taking a chunk is a compare-and-swap on that number. Only a thread that holds a chunk
// reads the rest of the line, and a job ends only when every chunk is done, so the line never
// changes under a reader; a worker that wakes late and takes a chunk of a later job than it
// expected works for that one. The caller counts the chunks of others on a second line.
#include "runtime/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <thread>

#include <picokernel/diagnostic.h>

#include "runtime/cpu_limits.h"
#include "runtime/fork.h"
#include "runtime/fp_control.h"
#include "trace/trace.h"

namespace picokernel::runtime {

namespace {

constexpr double kWorkerSpinNs = 30e3;
constexpr double kCallerSpinNs = 100e3;  // then the join sleeps: a worker may have lost its CPU
constexpr size_t kLine = 64;
const trace::NameId kChunks = trace::intern("chunks");

inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

class ThreadPool {
 public:
  void run(int64_t chunks, ChunkFunction function, void* context, Wake policy) {
    const FpControlScope fp_control;
    if (chunks > 1 && chunks <= std::numeric_limits<uint32_t>::max() && may_gain(policy) &&
        waiting_.load(std::memory_order_relaxed) == 0 && try_lock()) {
      if (policy == Wake::wake && workers_.load(std::memory_order_relaxed) == 0) start_workers();
      if (workers_.load(std::memory_order_relaxed) != 0) {
        run_with_workers(static_cast<uint32_t>(chunks), function, context, policy);
        unlock();
        return;
      }
      unlock();
    }
    // No workers, or the pool belongs to somebody else's call.
    for (int64_t i = 0; i < chunks; ++i) function(context, i);
  }

  int threads() {
    const int wanted = wanted_threads_.load(std::memory_order_relaxed);
    if (wanted != 0) return wanted;
    int none = 0;
    const CpuLimits limits = read_cpu_limits();
    if (!limits.problem.empty())
      throw LaunchError(limits.problem + "\n  unset: as many as this process may use");
    const int standard = std::min(kMaxThreads, default_thread_count(limits));
    return wanted_threads_.compare_exchange_strong(none, standard) ? standard : none;
  }

  void set_threads(int count) {
    lock();
    if (count != wanted_threads_.load(std::memory_order_relaxed)) {
      stop_workers();
      wanted_threads_.store(count, std::memory_order_relaxed);
    }
    unlock();
  }

  ThreadPoolState state() const {
    return {workers_.load(std::memory_order_relaxed), parked_.load(std::memory_order_relaxed)};
  }

  void lock() noexcept {
    // Nobody else takes it meanwhile: launches that follow each other closely would leave no gap.
    waiting_.fetch_add(1, std::memory_order_relaxed);
    while (!try_lock()) std::this_thread::sleep_for(std::chrono::microseconds(20));
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  void unlock() noexcept { busy_.store(false, std::memory_order_release); }

  // In a forked child: the workers are gone. The lock is held.
  void forget_workers() noexcept {
    workers_.store(0, std::memory_order_relaxed);
    live_.store(0, std::memory_order_relaxed);
    parked_.store(0, std::memory_order_relaxed);
    remaining_.store(0, std::memory_order_relaxed);
    waiting_.store(0, std::memory_order_relaxed);
    unlock();
  }

 private:
  bool try_lock() noexcept {
    return !busy_.load(std::memory_order_relaxed) &&
           !busy_.exchange(true, std::memory_order_acquire);
  }

  bool may_gain(Wake policy) {
    if (policy == Wake::wake) return threads() > 1;
    return workers_.load(std::memory_order_relaxed) > parked_.load(std::memory_order_relaxed);
  }

  void run_with_workers(uint32_t chunks, ChunkFunction function, void* context,
                        Wake policy) noexcept {
    function_ = function;
    context_ = context;
    chunks_ = chunks;
    flow_ = trace::begin_flow(kChunks);
    done_.store(0, std::memory_order_relaxed);
    // The caller owns chunk 0 from the start. Sequentially consistent against a worker that is
    // about to park: either it sees the job or the caller sees it parked.
    remaining_.store(chunks - 1,
                     policy == Wake::wake ? std::memory_order_seq_cst : std::memory_order_release);
    if (policy == Wake::wake) wake_workers(chunks - 1);

    uint32_t own = 1;
    function(context, 0);
    for (uint32_t chunk = 0; take(chunk); ++own) function(context, chunk);

    const uint32_t others = chunks - own;
    if (done_.load(std::memory_order_acquire) == others) return;
    const uint64_t deadline = trace::now() + caller_spin_ticks_;
    while (trace::now() < deadline) {
      for (int i = 0; i < 8; ++i) {
        if (done_.load(std::memory_order_acquire) == others) return;
        pause();
      }
    }
    for (uint32_t seen; (seen = done_.load(std::memory_order_acquire)) != others;)
      done_.wait(seen, std::memory_order_acquire);
  }

  bool take(uint32_t& chunk) noexcept {
    uint32_t left = remaining_.load(std::memory_order_relaxed);
    while (left != 0) {
      if (remaining_.compare_exchange_weak(left, left - 1, std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
        chunk = chunks_ - left;
        return true;
      }
    }
    return false;
  }

  void wake_workers(uint32_t wanted) noexcept {
    const int parked = parked_.load(std::memory_order_seq_cst);
    const int hot = workers_.load(std::memory_order_relaxed) - parked;
    const int64_t wake = std::min<int64_t>(parked, int64_t{wanted} - hot);
    if (wake <= 0) return;
    wakes_.fetch_add(1, std::memory_order_release);
    if (wake == parked) {
      wakes_.notify_all();
    } else {
      for (int64_t i = 0; i < wake; ++i) wakes_.notify_one();
    }
  }

  void start_workers() noexcept {
    const double ticks_per_ns = 1.0 / trace::nanoseconds_per_tick();
    worker_spin_ticks_ = static_cast<uint64_t>(kWorkerSpinNs * ticks_per_ns);
    caller_spin_ticks_ = static_cast<uint64_t>(kCallerSpinNs * ticks_per_ns);
    const int wanted = threads() - 1;
    for (int i = 1; i <= wanted; ++i) {
      live_.fetch_add(1, std::memory_order_relaxed);
      try {
        // Detached: at exit they may be anywhere, and nothing that they touch is ever destroyed.
        std::thread([this, i] { work(i); }).detach();
      } catch (...) {
        live_.fetch_sub(1, std::memory_order_relaxed);
        break;  // the system gives no more threads or memory: go on with those that there are
      }
      workers_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  void stop_workers() noexcept {
    stop_.store(true, std::memory_order_seq_cst);
    wakes_.fetch_add(1, std::memory_order_release);
    wakes_.notify_all();
    while (live_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
    workers_.store(0, std::memory_order_relaxed);
    stop_.store(false, std::memory_order_relaxed);
  }

  void work(int number) noexcept {
    write_fp_control(kFpControlDefault);
    trace::name_this_thread("worker " + std::to_string(number));
    while (!stop_.load(std::memory_order_relaxed)) {
      if (!spin()) {
        park();
        continue;
      }
      const uint64_t begin = trace::enabled() ? trace::now() : 0;
      uint32_t taken = 0;
      for (uint32_t chunk = 0; take(chunk); ++taken) {
        if (taken == 0) trace::end_flow(kChunks, flow_);
        function_(context_, chunk);
      }
      if (taken == 0) continue;
      // Before the join, which may end the recording session.
      if (begin != 0) trace::complete(trace::Category::launch, kChunks, begin, trace::now());
      done_.fetch_add(taken, std::memory_order_release);
      done_.notify_one();
    }
    live_.fetch_sub(1, std::memory_order_release);
  }

  // True when there is something to do, false after the spinning time.
  bool spin() const noexcept {
    const uint64_t deadline = trace::now() + worker_spin_ticks_;
    do {
      for (int i = 0; i < 8; ++i) {
        if (remaining_.load(std::memory_order_relaxed) != 0) return true;
        pause();
      }
    } while (trace::now() < deadline && !stop_.load(std::memory_order_relaxed));
    return false;
  }

  void park() noexcept {
    const uint32_t seen = wakes_.load(std::memory_order_acquire);
    parked_.fetch_add(1, std::memory_order_seq_cst);
    if (remaining_.load(std::memory_order_seq_cst) == 0 && !stop_.load(std::memory_order_seq_cst))
      wakes_.wait(seen, std::memory_order_acquire);
    parked_.fetch_sub(1, std::memory_order_relaxed);
  }

  // The job. All but remaining_ are written by the lock's holder while remaining_ is 0 and no chunk
  // is running.
  alignas(kLine) std::atomic<uint32_t> remaining_{0};
  uint32_t chunks_ = 0;
  ChunkFunction function_ = nullptr;
  void* context_ = nullptr;
  uint64_t flow_ = 0;

  alignas(kLine) std::atomic<uint32_t> done_{0};  // chunks that workers have finished

  alignas(kLine) std::atomic<bool> busy_{
      false};  // the lock: a caller's, or that of whoever changes the workers

  alignas(kLine) std::atomic<uint32_t> wakes_{0};
  std::atomic<int> parked_{0};

  // Read often, written rarely.
  alignas(kLine) std::atomic<int> workers_{0};
  std::atomic<int> wanted_threads_{0};  // 0: not asked for yet
  std::atomic<int> waiting_{0};         // for the lock, to change or to copy the pool
  std::atomic<bool> stop_{false};
  uint64_t worker_spin_ticks_ = 0;
  uint64_t caller_spin_ticks_ = 0;
  std::atomic<int> live_{0};  // workers that have not left work() yet
};

// Trivially destroyed, so that detached workers may outlive main.
constinit ThreadPool pool;

const ForkRegistration kForkRegistration(
    ForkStage::pool, {&pool, [](void* p) { static_cast<ThreadPool*>(p)->lock(); },
                      [](void* p) { static_cast<ThreadPool*>(p)->unlock(); },
                      [](void* p) { static_cast<ThreadPool*>(p)->forget_workers(); }});

}  // namespace

void parallel_for(int64_t chunks, ChunkFunction function, void* context, Wake policy) {
  pool.run(chunks, function, context, policy);
}

int num_threads() { return pool.threads(); }

void set_num_threads(int count) {
  if (count < 1 || count > kMaxThreads)
    throw LaunchError("the number of threads must be from 1 to " + std::to_string(kMaxThreads) +
                      ", not " + std::to_string(count));
  pool.set_threads(count);
}

namespace {
std::atomic<bool> always_shared{false};
}
void share_always(bool always) { always_shared.store(always, std::memory_order_relaxed); }
bool shares_always() { return always_shared.load(std::memory_order_relaxed); }

ThreadPoolState thread_pool_state() { return pool.state(); }

}  // namespace picokernel::runtime
