// A compiled kernel, ready to run.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace picokernel::runtime {

// What a kernel of threads is launched for.
struct Grid {
  std::array<int64_t, 3> blocks{1, 1, 1}, threads{1, 1, 1};  // x, y, z; threads of a block
  int64_t shared_bytes = 0;                                  // of dynamic shared memory
};

// What an array parameter may be used at: the elements [low, high) from its pointer. Scalars:
// unused.
struct Reach {
  int64_t low = 0, high = 0;
};

/// A compiled kernel.
///
/// `params` are 8-byte slots in the order of the kernel's signature: pointers, i64 sizes and
/// strides in elements, and the bits of scalars. The caller has checked dtypes, ranks, overlap and
/// limits, and keeps all memory alive until `launch` returns; an executable may be launched by many
/// threads at once.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual void launch(const uint64_t* params) = 0;
  /// A kernel of threads. `reach` is what interpreters check and devices copy; `seed` decides
  /// interpreters' order of threads. Loops over the grid have six more parameters: blocks, then
  /// threads of a block, along x, y and z.
  virtual void launch(std::span<const uint64_t> params, std::span<const Reach> reach,
                      const Grid& grid, uint64_t seed);
};

}  // namespace picokernel::runtime
