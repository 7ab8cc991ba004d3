// The fork-join pool that all CPU kernels share.
#pragma once

#include <cstdint>

#include <picokernel/api.h>

namespace picokernel::runtime {

/// Which workers a call may use. A worker is hot for 30 us after its last work; then it parks, and
/// waking it takes some 25 to 55 us: only work of over about 100 us gains from that.
enum class Wake : uint8_t {
  only_hot,  // hot workers; none hot: the caller does everything
  wake,      // starts or wakes workers as needed
};

using ChunkFunction = void (*)(void* context, int64_t chunk);

/// Runs function(context, i) once for each i in [0, chunks), on the caller and on workers, and
/// returns when all are done; what they wrote is then visible. Never allocates or locks once the
/// workers exist.
///
/// `function` must not throw. Chunks start in ascending order, each as soon as a thread is free for
/// it, and a worker that comes late finds nothing left: nobody waits for a thread that has no
/// chunk. When another thread uses the pool, and in a nested call, the caller does everything
/// itself. All chunks run under the default floating-point control register; the caller's is
/// restored.
PK_API void parallel_for(int64_t chunks, ChunkFunction function, void* context, Wake policy);

/// Threads of a parallel_for, the caller included. First: default_thread_count. Throws LaunchError
/// while PICOKERNEL_NUM_THREADS is no such number and set_num_threads gave none.
PK_API int num_threads();
/// Waits for a running parallel_for; not to be called from inside one. Throws LaunchError unless 1
/// <= count <= 1024.
PK_API void set_num_threads(int count);

/// Every launch is shared by all threads, however small: what measurements compare the choice with.
PK_API void share_always(bool always);
PK_API bool shares_always();

struct ThreadPoolState {
  int workers = 0;  // that exist now
  int parked = 0;   // of them
};
PK_API ThreadPoolState thread_pool_state();

}  // namespace picokernel::runtime
