// Memory pools, one for each thread.
#include "runtime/buffer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <vector>

#include <sys/mman.h>

#include <picokernel/memory.h>

#include "runtime/fork.h"
#include "trace/trace.h"

namespace picokernel::runtime {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = size_t{4} << 20;

// Sizes are rounded up to one of four steps between powers of two, so that a pool serves sizes that
// vary a little. Untouched pages of the rest cost address space only.
constexpr int kStepBits = 2;

struct SizeClass {
  size_t index;
  size_t bytes;
};

SizeClass size_class(size_t bytes) {
  const size_t pages = (bytes + kPage - 1) / kPage;
  const int shift = std::max(0, static_cast<int>(std::bit_width(pages)) - 1 - kStepBits);
  size_t steps = (pages + (size_t{1} << shift) - 1) >> shift;
  int level = shift;
  if (steps == size_t{2} << kStepBits) {  // rounding reached the next power of two
    steps >>= 1;
    ++level;
  }
  return {(static_cast<size_t>(level) << (kStepBits + 1)) + steps, (steps << level) * kPage};
}
constexpr size_t kClasses = 64 << (kStepBits + 1);

// Of buffers, in use or kept for reuse.
std::atomic<int64_t> held{0};
const trace::NameId kHeld = trace::intern("memory held");
void count_held(int64_t change) {
  trace::counter(kHeld, held.fetch_add(change, std::memory_order_relaxed) + change);
}
void unmap(void* data, size_t bytes) {
  munmap(data, bytes);
  count_held(-static_cast<int64_t>(bytes));
}

void* map_pages(size_t bytes) {
  const size_t align = bytes >= kHugeFrom ? kHugePage : kPage;
  const size_t mapped = bytes + align - kPage;
  void* start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  const auto address = reinterpret_cast<uintptr_t>(start);
  const uintptr_t aligned = (address + align - 1) / align * align;
  if (aligned != address) munmap(start, aligned - address);
  if (const size_t behind = address + mapped - (aligned + bytes); behind != 0)
    munmap(reinterpret_cast<void*>(aligned + bytes), behind);
#if defined(MADV_HUGEPAGE)
  if (bytes >= kHugeFrom) madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
#endif
  return reinterpret_cast<void*>(aligned);
}

// Lives in the first bytes of a free block. Each block is in the list of its class and in the list
// by time of use.
struct FreeBlock {
  size_t bytes;
  size_t size_class;
  FreeBlock* older;  // by time
  FreeBlock* newer;
  FreeBlock* below;  // in its class: freed before this one
  FreeBlock* above;
};

// Used by its thread, and by whoever trims all of them: the lock is free but for that.
class Pool {
 public:
  ~Pool() { trim(); }

  void* take(const SizeClass& wanted) {
    const std::lock_guard lock(mutex);
    FreeBlock* block = top_[wanted.index];
    if (block == nullptr) return nullptr;
    unlink(block);
    return block;
  }

  void give(void* data, const SizeClass& size) {
    const std::lock_guard lock(mutex);
    if (size.bytes > cap_) {
      unmap(data, size.bytes);
      return;
    }
    shrink(cap_ - size.bytes);
    auto* block =
        new (data) FreeBlock{size.bytes, size.index, newest_, nullptr, top_[size.index], nullptr};
    (newest_ != nullptr ? newest_->newer : oldest_) = block;
    newest_ = block;
    if (block->below != nullptr) block->below->above = block;
    top_[size.index] = block;
    kept_ += size.bytes;
  }

  size_t trim() {
    const std::lock_guard lock(mutex);
    const size_t bytes = kept_;
    shrink(0);
    return bytes;
  }
  void set_cap(size_t bytes) {
    const std::lock_guard lock(mutex);
    cap_ = bytes;
    shrink(bytes);
  }
  PoolStats stats() const {
    const std::lock_guard lock(mutex);
    return {kept_, cap_};
  }

  mutable std::mutex mutex;

 private:
  void shrink(size_t keep) {
    while (kept_ > keep) {
      FreeBlock* block = oldest_;
      const size_t bytes = block->bytes;
      unlink(block);
      unmap(block, bytes);
    }
  }
  void unlink(FreeBlock* block) {
    (block->older != nullptr ? block->older->newer : oldest_) = block->newer;
    (block->newer != nullptr ? block->newer->older : newest_) = block->older;
    (block->above != nullptr ? block->above->below : top_[block->size_class]) = block->below;
    if (block->below != nullptr) block->below->above = block->above;
    kept_ -= block->bytes;
  }

  std::array<FreeBlock*, kClasses> top_{};
  FreeBlock* oldest_ = nullptr;
  FreeBlock* newest_ = nullptr;
  size_t kept_ = 0;
  size_t cap_ = kDefaultPoolCap;
};

// All pools. Its lock comes before theirs. A forked child keeps the pools of threads that it does
// not have: trimming frees what they hold.
class Pools {
 public:
  void add(Pool* pool) {
    const std::lock_guard lock(mutex_);
    pools_.push_back(pool);
  }
  void remove(Pool* pool) {
    const std::lock_guard lock(mutex_);
    std::erase(pools_, pool);
  }
  size_t trim() {
    const std::lock_guard lock(mutex_);
    size_t bytes = 0;
    for (Pool* pool : pools_) bytes += pool->trim();
    return bytes;
  }

 private:
  void lock_all() {
    mutex_.lock();
    for (Pool* pool : pools_) pool->mutex.lock();
  }
  void unlock_all() {
    for (Pool* pool : pools_) pool->mutex.unlock();
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::vector<Pool*> pools_;
  ForkRegistration fork_registration_{
      ForkStage::pool,
      {this, [](void* self) { static_cast<Pools*>(self)->lock_all(); },
       [](void* self) { static_cast<Pools*>(self)->unlock_all(); },
       [](void* self) { static_cast<Pools*>(self)->unlock_all(); }}};
};

// Never destroyed: threads may end after main.
Pools& pools() {
  static Pools& instance = *new Pools;
  return instance;
}
// Made when the library is loaded: a child forked while another thread makes a local static would
// wait for that thread for ever.
[[maybe_unused]] const Pools& kMadeEarly = pools();
const trace::NameId kReused = trace::intern("buffer, reused"),
                    kFresh = trace::intern("buffer, fresh pages");

// Null once the thread's pool is gone: buffers may outlive it, in other thread-locals or after
// main.
constinit thread_local Pool* this_pool = nullptr;
constinit thread_local bool this_pool_ended = false;

// On the heap: a library with thread-locals of the fast kind that is loaded at run time (as Python
// does) may have few bytes of thread-local memory in all.
struct PoolOwner {
  std::unique_ptr<Pool> pool = std::make_unique<Pool>();
  PoolOwner() {
    this_pool = pool.get();
    pools().add(this_pool);
  }
  ~PoolOwner() {
    pools().remove(this_pool);
    this_pool = nullptr;
    this_pool_ended = true;
  }
};

Pool* pool() {
  if (this_pool == nullptr && !this_pool_ended) {
    thread_local PoolOwner owner;
    this_pool = owner.pool.get();
  }
  return this_pool;
}

struct Free {
  SizeClass size;
  void operator()(void* data) const noexcept {
    if (Pool* p = pool())
      p->give(data, size);
    else
      unmap(data, size.bytes);
  }
};

}  // namespace

Buffer allocate(size_t bytes) {
  if (bytes == 0) return {};
  if (bytes > std::numeric_limits<size_t>::max() / 4) throw std::bad_alloc();
  trace::Span span(trace::Category::alloc, kFresh, bytes);
  const SizeClass size = size_class(bytes);
  Pool* p = pool();
  void* data = p != nullptr ? p->take(size) : nullptr;
  const bool reused = data != nullptr;
  if (reused)
    span.set_name(kReused);
  else
    data = map_pages(size.bytes);
  count_held(reused ? 0 : static_cast<int64_t>(size.bytes));
  return {data, bytes, Device{}, std::shared_ptr<void>(data, Free{size})};
}

PoolStats pool_stats() {
  const Pool* p = pool();
  return p != nullptr ? p->stats() : PoolStats{0, 0};
}

size_t trim() { return pools().trim(); }

void set_pool_cap(size_t bytes) {
  if (Pool* p = pool()) p->set_cap(bytes);
}

}  // namespace picokernel::runtime

namespace picokernel {

size_t trim() { return runtime::trim(); }

}  // namespace picokernel
