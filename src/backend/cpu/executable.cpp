// Runs the nests of a kernel in order.
#include "backend/cpu/executable.h"

#include <algorithm>
#include <new>
#include <vector>

#include "backend/cpu/loader.h"
#include "backend/cpu/threads.h"
#include "runtime/buffer.h"
#include "runtime/fp_control.h"

namespace picokernel::backend::cpu {
namespace {

// Memory beyond the second-level cache is slower than what a nest's estimate assumes.
constexpr double kNearBytes = 1 << 20, kCacheBytes = 16 << 20;
constexpr double kCachePicosecondsPerByte = 3, kMemoryPicosecondsPerByte = 15;

// Memory of the launches running on this thread. A null pointer from pk_alloc has ended the launch.
struct Arena {
  std::vector<runtime::Buffer> buffers;
  bool failed = false;
};
thread_local Arena* arena = nullptr;

class ArenaScope {
 public:
  ArenaScope() : outer_(arena) { arena = &own_; }
  ~ArenaScope() { arena = outer_; }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;
  bool failed() const { return own_.failed; }

 private:
  Arena own_;
  Arena* outer_;
};

struct Nest {
  decltype(NestLaunch::function) function = nullptr;
  NestInfo info;
  int64_t first_slot = -1;  // where the extents stand side by side among the parameters, else -1
};

class CpuExecutable : public runtime::Executable {
 public:
  CpuExecutable(const std::string& kernel, const KernelInfo& info, std::string_view object)
      : code_(load_object(object)), allocates_(info.allocates) {
    size_t most = 1;
    for (size_t n = 0; n < info.nests.size(); ++n) {
      Nest nest;
      nest.function =
          reinterpret_cast<decltype(nest.function)>(code_->symbol(nest_symbol(kernel, n)));
      nest.info = info.nests[n];
      const std::vector<Extent>& extents = nest.info.extents;
      if (!extents.empty() && !extents[0].constant) nest.first_slot = extents[0].value;
      for (size_t d = 0; d < extents.size(); ++d)
        if (extents[d].constant || extents[d].value != nest.first_slot + static_cast<int64_t>(d))
          nest.first_slot = -1;
      most = std::max(most, extents.size());
      nests_.push_back(std::move(nest));
    }
    zeros_.assign(most, 0);
  }

  void launch(const uint64_t* params) override {
    const runtime::FpControlScope fp_control;
    if (!allocates_) [[likely]] {
      for (const Nest& n : nests_) run(n, params);
      return;
    }
    const ArenaScope memory;
    for (const Nest& n : nests_) {
      run(n, params);
      if (memory.failed()) throw std::bad_alloc();
    }
  }

 private:
  void run(const Nest& n, const uint64_t* params) const {
    if (n.first_slot >= 0) [[likely]] {
      run(n, params, reinterpret_cast<const int64_t*>(params + n.first_slot));
      return;
    }
    std::vector<int64_t> extents;
    for (const Extent& e : n.info.extents)
      extents.push_back(e.constant ? e.value : static_cast<int64_t>(params[e.value]));
    run(n, params, extents.data());
  }

  void run(const Nest& n, const uint64_t* params, const int64_t* extents) const {
    double points = 1;
    const size_t rank = n.info.extents.size();
    for (size_t d = 0; d < rank; ++d) {
      if (extents[d] <= 0) return;
      points *= static_cast<double>(extents[d]);
    }
    double work = points * n.info.picoseconds;
    const bool long_loops = n.info.loops && points > kLoopPoints;
    if ((work < kParallelPicoseconds && !runtime::shares_always() && !long_loops) || rank == 0)
        [[likely]] {
      n.function(params, zeros_.data(), extents);
      return;
    }
    const double bytes = points * n.info.bytes;
    if (bytes > kNearBytes)
      work += bytes * (bytes > kCacheBytes ? kMemoryPicosecondsPerByte : kCachePicosecondsPerByte);
    run_on_threads(
        {n.function, params, zeros_.data(), extents, static_cast<uint32_t>(rank), long_loops},
        points, work);
  }

  const std::unique_ptr<LoadedCode> code_;
  const bool allocates_;
  std::vector<Nest> nests_;
  std::vector<int64_t> zeros_;
};

}  // namespace

void* allocate_for_launch(uint64_t count, uint64_t size) noexcept {
  try {
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) throw std::bad_alloc();
    arena->buffers.push_back(runtime::allocate(bytes));
    return arena->buffers.back().data;
  } catch (const std::bad_alloc&) {
    arena->failed = true;
    return nullptr;
  }
}

std::unique_ptr<runtime::Executable> make_executable(const std::string& kernel,
                                                     const KernelInfo& info,
                                                     std::string_view object) {
  return std::make_unique<CpuExecutable>(kernel, info, object);
}

}  // namespace picokernel::backend::cpu
