// What tracing costs: a span off and on, a stamp, a counter, a whole run of an instrumented twin.
#include <optional>

#include <benchmark/benchmark.h>

#include "trace/session.h"
#include "trace/trace.h"

namespace {

using namespace picokernel::trace;

constexpr size_t kLargeRing = size_t{1} << 28;

// Records into a ring that never fills: a full one would make events look cheaper than they are.
class Recording {
 public:
  explicit Recording(benchmark::State& state) : state_(state) { session_.emplace(kLargeRing); }
  void one_round(size_t events) {
    recorded_ += events;
    if (recorded_ < kLargeRing / 64) return;
    state_.PauseTiming();
    session_.reset();
    session_.emplace(kLargeRing);
    recorded_ = 0;
    state_.ResumeTiming();
  }

 private:
  benchmark::State& state_;
  std::optional<Session> session_;
  size_t recorded_ = 0;
};

void span_off(benchmark::State& state) {
  const NameId name = intern("span");
  for (auto _ : state) {
    const Span span(Category::op, name);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(span_off);

void clock_reading(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(now());
}
BENCHMARK(clock_reading);

void span_on(benchmark::State& state) {
  const NameId name = intern("span");
  Recording recording(state);
  for (auto _ : state) {
    for (int i = 0; i < 64; ++i) const Span span(Category::op, name);
    recording.one_round(64);
  }
  state.SetItemsProcessed(state.iterations() * 64);
}
BENCHMARK(span_on);

void counter_on(benchmark::State& state) {
  const NameId name = intern("counter");
  Recording recording(state);
  for (auto _ : state) {
    for (int i = 0; i < 64; ++i) counter(name, i);
    recording.one_round(64);
  }
  state.SetItemsProcessed(state.iterations() * 64);
}
BENCHMARK(counter_on);

// A run of n operations; the items are the operations.
void run_on(benchmark::State& state) {
  const auto operations = static_cast<size_t>(state.range(0));
  const TableId table = register_ops(std::vector<OpInfo>(operations));
  Recording recording(state);
  for (auto _ : state) {
    Stamps stamps(table);
    for (size_t i = 0; i <= operations; ++i) stamps.stamp();
    stamps.end();
    recording.one_round(operations + 2);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(run_on)->Arg(1)->Arg(7)->Arg(64);

void run_off(benchmark::State& state) {
  const TableId table = register_ops(std::vector<OpInfo>(7));
  for (auto _ : state) {
    Stamps stamps(table);
    for (size_t i = 0; i <= 7; ++i) stamps.stamp();
  }
}
BENCHMARK(run_off);

}  // namespace

BENCHMARK_MAIN();
