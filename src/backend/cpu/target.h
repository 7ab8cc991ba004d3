// The machine that kernels are compiled for: this host, or less of it where PICOKERNEL_CPU says so.
#pragma once

#include <string>
#include <string_view>

namespace picokernel::backend::cpu {

struct Target {
  std::string triple, cpu, features;  // as LLVM names them
  unsigned vector_bits = 128;         // 512, 256 or 128
  unsigned vector_registers = 32;
  bool x86 = true;
  bool masks_any_type =
      false;  // masked loads and stores of every element type; else of 32 and 64 bits if x86
  std::string problem;  // why kernels cannot run here; empty: they can

  bool has_masks(unsigned element_bits) const {
    return masks_any_type || (x86 && element_bits >= 32);
  }
  /// What code that runs here depends on: part of a kernel's key in caches.
  std::string key() const { return cpu + " " + std::to_string(vector_bits) + " " + features; }
};

/// The target that PICOKERNEL_CPU asks for now: unset, or `x86-64-v3` (AVX2), or `x86-64-v4`
/// (AVX-512). It can only take away: a host without AVX-512 stays what it is under x86-64-v4. Stays
/// valid for the life of the process.
const Target& current_target();

/// The least that machines of a triple have: x86-64-v3, or NEON for aarch64-linux-gnu. Throws
/// Error.
Target baseline_of(std::string_view triple);

}  // namespace picokernel::backend::cpu
