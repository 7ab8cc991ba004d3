"""The ceiling for memory-bound code: hand-written C with streaming stores, a thread per core."""

import hashlib
import os
import shutil
import subprocess

_SOURCE = r"""
// o = POINT on `threads` threads: AVX, unrolled four times, stores past the caches. Memory is rows of
// w points, the last one cut at n; `border` points at a row's ends and as many rows stay as they are.
#include <immintrin.h>
#include <pthread.h>
#include <stddef.h>
typedef float vector __attribute__((vector_size(32), aligned(4), may_alias));
struct part { const float *a, *b, *c; float* o; size_t n, w, border, from, to; };
static void* run(void* p) {
  const struct part q = *(struct part*)p;
  const float *a = q.a, *b = q.b, *c = q.c;
  const size_t w = q.w;
  for (size_t row = q.from; row < q.to; ++row) {
    size_t i = row * w + q.border, end = row * w + w;
    end = (end < q.n ? end : q.n) - q.border;
#define L(x) (x)[i]
    for (; i < end && ((size_t)(q.o + i) & 63); ++i) q.o[i] = POINT;
#undef L
#define L(x) (*(const vector*)((x) + i))
    for (; i + 32 <= end;)
      for (size_t k = 0; k < 4; ++k, i += 8) _mm256_stream_ps(q.o + i, (__m256)(POINT));
#undef L
#define L(x) (x)[i]
    for (; i < end; ++i) q.o[i] = POINT;
  }
  (void)b; (void)c; (void)w;
  _mm_sfence();
  return 0;
}
void ceiling(const float* a, const float* b, const float* c, float* o, size_t n, size_t w,
             size_t border, int threads) {
  pthread_t id[64];
  struct part parts[64];
  if (threads > 64) threads = 64;
  const size_t rows = (n + w - 1) / w - 2 * border;
  for (int t = 0; t < threads; ++t) {
    parts[t] = (struct part){a, b, c, o, n, w, border, border + rows * t / threads,
                             border + rows * (t + 1) / threads};
    if (t) pthread_create(&id[t], 0, run, &parts[t]);
  }
  run(&parts[0]);
  for (int t = 1; t < threads; ++t) pthread_join(id[t], 0);
}
"""

# Python that defines f(), which runs the function on a work's data.
CALL = """
import ctypes
run = ctypes.CDLL({library!r}).ceiling
run.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_size_t] * 3 + [ctypes.c_int]
have = [globals()[k].ctypes.data if k in globals() else None for k in "abco"]
row = o.shape[-1] if o.ndim > 1 else 1 << 14
def f(): run(*have, o.size, row, {border}, {threads})
"""


def build_ceiling(folder, point):
    """The path of a shared library with `ceiling` for this POINT, or None where it cannot be built."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    name = os.path.join(folder, "ceiling" + hashlib.sha256(point.encode()).hexdigest()[:12])
    with open(name + ".c", "w", encoding="utf-8") as file:
        file.write(f"#define POINT ({point})\n{_SOURCE}")
    flags = ["-O3", "-mavx2", "-ffp-contract=off", "-shared", "-fPIC", "-pthread"]
    done = subprocess.run([compiler, *flags, name + ".c", "-o", name + ".so"], capture_output=True)
    return name + ".so" if done.returncode == 0 else None
