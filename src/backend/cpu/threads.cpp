// The split of a domain into boxes, and when to wake workers.
#include "backend/cpu/threads.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "runtime/stop.h"
#include "trace/clock.h"

namespace picokernel::backend::cpu {
namespace {

// Waking a parked worker takes about half of this.
constexpr double kWakePicoseconds = 100e6;
// From here on several chunks per thread even out what disturbs one of them.
constexpr double kLongPicoseconds = 1e9;
constexpr int64_t kChunksPerThread = 4;
// Long launches go in rounds of some 40 ms. Between them they hold nothing and look whether they
// should stop: signal handlers and forks may do as they like then.
constexpr double kPiecePicoseconds = 2.5e9;
constexpr int64_t kPiecesPerRound = 16;  // and thread
// Points of bodies with loops, which may take microseconds each.
constexpr double kPiecePoints = kLoopPoints / 4;
constexpr int64_t kLoopPiecesPerRound = 4;
// Elements: chunks end at lines, whatever the type.
constexpr int64_t kInnerUnit = 64;
// Pause between launches in which workers stay awake.
constexpr double kAwakePicoseconds = 25e6;

// Launches that follow each other closely and are each too small to wake anybody add up: after a
// few of them a worker is worth its waking, and then stays awake.
class WakeCredit {
 public:
  bool spend(double picoseconds) {
    static const double ticks = 1e-3 / trace::nanoseconds_per_tick();  // per picosecond
    const uint64_t now = trace::now();
    const uint64_t end = now + static_cast<uint64_t>(picoseconds * ticks);
    const uint64_t last_end = last_end_.exchange(end, std::memory_order_relaxed);
    const bool follows = now < last_end + static_cast<uint64_t>(kAwakePicoseconds * ticks);
    const double credit = (follows ? credit_.load(std::memory_order_relaxed) : 0) + picoseconds;
    const bool enough = credit > kWakePicoseconds;
    credit_.store(enough ? 0 : credit, std::memory_order_relaxed);
    return enough;
  }

 private:
  std::atomic<uint64_t> last_end_{0};
  std::atomic<double> credit_{0};
};
WakeCredit wake_credit;

// Chunks cut one dimension, in units of `unit` indices.
struct Split {
  const NestLaunch& launch;
  uint32_t dimension = 0;
  int64_t unit = 1, units = 1, chunks = 1;

  void run(int64_t chunk) const {
    constexpr size_t kUsualRank = 16;
    int64_t usual[2 * kUsualRank];
    std::vector<int64_t> large;
    int64_t* bounds = usual;
    if (launch.rank > kUsualRank) {
      large.resize(2 * launch.rank);
      bounds = large.data();
    }
    int64_t *lo = bounds, *hi = bounds + launch.rank;
    std::memcpy(lo, launch.lo, launch.rank * sizeof(int64_t));
    std::memcpy(hi, launch.hi, launch.rank * sizeof(int64_t));
    lo[dimension] = begin(chunk) * unit;
    if (chunk + 1 < chunks) hi[dimension] = begin(chunk + 1) * unit;
    launch.function(launch.params, lo, hi);
  }
  int64_t begin(int64_t chunk) const {
    // Whole shares, then the remainder over the first chunks: no product that could overflow.
    return units / chunks * chunk + std::min(chunk, units % chunks);
  }
};

// Chunks from `first` on.
struct Round {
  const Split& split;
  int64_t first = 0;

  void run(int64_t chunk) const { split.run(first + chunk); }
};

// The outermost dimension that is long enough, else the one with most units.
void choose_dimension(Split& split, int64_t chunks) {
  split.units = 0;
  for (uint32_t d = 0; d < split.launch.rank; ++d) {
    const int64_t unit = d + 1 == split.launch.rank ? kInnerUnit : 1;
    const int64_t units = (split.launch.hi[d] + unit - 1) / unit;
    if (units <= split.units) continue;
    split.dimension = d;
    split.unit = unit;
    split.units = units;
    if (units >= chunks) break;
  }
  split.chunks = std::min(chunks, split.units);
}

}  // namespace

void run_on_threads(const NestLaunch& launch, double points, double picoseconds) {
  const int threads = runtime::num_threads();
  // As much work as it takes.
  if (runtime::shares_always()) picoseconds = std::max(picoseconds, 2 * kWakePicoseconds);
  const runtime::ThreadPoolState pool = runtime::thread_pool_state();
  const bool hot = pool.workers > pool.parked;
  const bool shared =
      threads > 1 && (picoseconds > kWakePicoseconds || hot || wake_credit.spend(picoseconds));
  const double pieces = launch.long_loops ? points / kPiecePoints : picoseconds / kPiecePicoseconds;
  const int64_t round = threads * (launch.long_loops ? kLoopPiecesPerRound : kPiecesPerRound);
  const bool in_rounds = pieces > static_cast<double>(round);
  Split split{.launch = launch};
  if (launch.rank > 0 && (shared || in_rounds)) {
    int64_t wanted = picoseconds > kLongPicoseconds ? threads * kChunksPerThread : threads;
    wanted = std::min(wanted, static_cast<int64_t>(2 * picoseconds / kParallelPicoseconds));
    choose_dimension(split, in_rounds ? static_cast<int64_t>(pieces) : wanted);
    if (split.chunks > 1) {
      const bool wake = picoseconds > kWakePicoseconds || !hot;
      for (Round r{split}; r.first < split.chunks; r.first += round) {
        if (r.first != 0 && runtime::stop_requested()) runtime::throw_stopped();
        runtime::parallel_for(
            in_rounds ? std::min(round, split.chunks - r.first) : split.chunks,
            [](void* c, int64_t chunk) { static_cast<const Round*>(c)->run(chunk); }, &r,
            wake ? runtime::Wake::wake : runtime::Wake::only_hot);
        if (!in_rounds) break;
      }
      return;
    }
  }
  launch.function(launch.params, launch.lo, launch.hi);
}

}  // namespace picokernel::backend::cpu
