"""The ceiling for memory-bound code: hand-written C with streaming stores, a thread per core."""

import os
import shutil
import subprocess

_SOURCE = r"""
// o = a*b + c on `threads` threads: AVX, unrolled four times, stores past the caches.
#include <immintrin.h>
#include <pthread.h>
#include <stddef.h>
struct part { const float *a, *b, *c; float* o; size_t n; };
static void* run(void* p) {
  struct part* q = p;
  size_t i = 0;
  for (; i < q->n && ((size_t)(q->o + i) & 63); ++i) q->o[i] = q->a[i] * q->b[i] + q->c[i];
  for (; i + 32 <= q->n; i += 32)
    for (size_t k = 0; k < 32; k += 8)
      _mm256_stream_ps(q->o + i + k, _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(q->a + i + k),
                                                                 _mm256_loadu_ps(q->b + i + k)),
                                                   _mm256_loadu_ps(q->c + i + k)));
  for (; i < q->n; ++i) q->o[i] = q->a[i] * q->b[i] + q->c[i];
  _mm_sfence();
  return 0;
}
void fma_ceiling(const float* a, const float* b, const float* c, float* o, size_t n, int threads) {
  pthread_t id[64];
  struct part parts[64];
  if (threads > 64) threads = 64;
  for (int t = 0; t < threads; ++t) {
    size_t from = n / threads * t / 16 * 16, to = t + 1 == threads ? n : n / threads * (t + 1) / 16 * 16;
    parts[t] = (struct part){a + from, b + from, c + from, o + from, to - from};
    if (t) pthread_create(&id[t], 0, run, &parts[t]);
  }
  run(&parts[0]);
  for (int t = 1; t < threads; ++t) pthread_join(id[t], 0);
}
"""


def build_ceiling(folder):
    """The path of a shared library with `fma_ceiling`, or None where it cannot be built."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    source, library = os.path.join(folder, "ceiling.c"), os.path.join(folder, "ceiling.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(_SOURCE)
    flags = ["-O3", "-mavx2", "-ffp-contract=off", "-shared", "-fPIC", "-pthread"]
    done = subprocess.run([compiler, *flags, source, "-o", library], capture_output=True)
    return library if done.returncode == 0 else None
