// Fork and join of the thread pool: hot, and with a parked worker to wake.
#include <atomic>
#include <chrono>
#include <thread>

#include <benchmark/benchmark.h>

#include "runtime/buffer.h"
#include "runtime/thread_pool.h"

namespace {

using namespace picokernel::runtime;

void nothing(void*, int64_t) {}

// Spins for a given time: long enough for a woken worker to get a chunk.
void spin(void* context, int64_t) {
  const auto end =
      std::chrono::steady_clock::now() + *static_cast<std::chrono::nanoseconds*>(context);
  while (std::chrono::steady_clock::now() < end) {
  }
}

void fork_join_hot(benchmark::State& state) {
  const int64_t chunks = state.range(0);
  for (auto _ : state) parallel_for(chunks, nothing, nullptr, Wake::wake);
}
BENCHMARK(fork_join_hot)->Arg(2)->Arg(8);

// Two chunks of 2 us each: 2 us and the fork-join if the worker takes one, 4 us if it does not.
void fork_join_hot_two_chunks_of_2us(benchmark::State& state) {
  std::chrono::nanoseconds work{2000};
  for (auto _ : state) parallel_for(2, spin, &work, Wake::wake);
}
BENCHMARK(fork_join_hot_two_chunks_of_2us);

void serial_when_parked(benchmark::State& state) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (auto _ : state) parallel_for(2, nothing, nullptr, Wake::only_hot);
}
BENCHMARK(serial_when_parked);

// From the call until a worker that was parked runs its chunk.
void wake_parked(benchmark::State& state) {
  for (auto _ : state) {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    const auto begin = std::chrono::steady_clock::now();
    struct Context {
      std::thread::id caller;
      std::atomic<int64_t> first{0};
    } context{std::this_thread::get_id(), {}};
    parallel_for(
        2,
        [](void* c, int64_t) {
          auto* context = static_cast<Context*>(c);
          if (std::this_thread::get_id() == context->caller) {
            while (context->first.load() == 0) {
            }
          } else {
            context->first.store(std::chrono::steady_clock::now().time_since_epoch().count());
          }
        },
        &context, Wake::wake);
    const auto woken =
        std::chrono::steady_clock::time_point(std::chrono::steady_clock::duration(context.first));
    state.SetIterationTime(std::chrono::duration<double>(woken - begin).count());
  }
}
BENCHMARK(wake_parked)->UseManualTime()->Iterations(2000);

void allocate_reused(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(allocate(bytes).data);
}
BENCHMARK(allocate_reused)->Arg(4096)->Arg(4 << 20);

}  // namespace

BENCHMARK_MAIN();
