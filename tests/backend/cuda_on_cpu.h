// What CUDA C++ that the backend cuda prints means on a CPU, for running it without a device: one
// thread at a time. Compile with -ffp-contract=off.
#pragma once

#include <cmath>
#include <cstring>

struct Index {
  unsigned x = 0, y = 0, z = 0;
};
inline Index threadIdx, blockIdx, blockDim{1, 1, 1}, gridDim{1, 1, 1};

// Each thread of the grid in turn.
template <class F>
void run_grid(Index grid, Index block, F thread) {
  gridDim = grid, blockDim = block;
  for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
      for (threadIdx.y = 0; threadIdx.y < block.y; ++threadIdx.y)
        for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) thread();
}

#define __global__
#define __device__
using std::memcpy;

inline float __int_as_float(int bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }

// A parameter that is a pointer of any type.
struct Pointer {
  unsigned long long address;
  template <class T>
  operator T*() const {
    return reinterpret_cast<T*>(address);
  }
};
