// A compiled kernel, ready to run.
#pragma once

#include <cstdint>

namespace picokernel::runtime {

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
};

}  // namespace picokernel::runtime
