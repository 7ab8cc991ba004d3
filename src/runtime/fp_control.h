// The floating-point control register: kernels run with round to nearest, all exceptions masked, no
// flush to zero.
#pragma once

#include <cstdint>

namespace picokernel::runtime {

#if defined(__x86_64__)

inline uint32_t read_fp_control() noexcept { return __builtin_ia32_stmxcsr(); }
inline void write_fp_control(uint32_t value) noexcept { __builtin_ia32_ldmxcsr(value); }
inline constexpr uint32_t kFpControlMask =
    0xffc0;  // the rest are sticky flags, which belong to the caller
inline constexpr uint32_t kFpControlDefault = 0x1f80;

#elif defined(__aarch64__)

inline uint32_t read_fp_control() noexcept {
  uint64_t value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return static_cast<uint32_t>(value);
}
inline void write_fp_control(uint32_t value) noexcept {
  asm volatile("msr fpcr, %0" : : "r"(static_cast<uint64_t>(value)));
}
inline constexpr uint32_t kFpControlMask = 0xffffffff;
inline constexpr uint32_t kFpControlDefault = 0;

#else
#error "picokernel knows the floating-point control register of x86-64 and arm64 only"
#endif

/// Gives the scope the default control bits and puts the caller's back: other libraries set flush
/// to zero on threads that are not theirs. One register read in the usual case.
class FpControlScope {
 public:
  FpControlScope() noexcept : found_(read_fp_control()) {
    if (!is_default(found_)) [[unlikely]]
      write_fp_control((found_ & ~kFpControlMask) | kFpControlDefault);
  }
  ~FpControlScope() {
    if (!is_default(found_)) [[unlikely]]
      write_fp_control((read_fp_control() & ~kFpControlMask) | (found_ & kFpControlMask));
  }
  FpControlScope(const FpControlScope&) = delete;
  FpControlScope& operator=(const FpControlScope&) = delete;

 private:
  static bool is_default(uint32_t value) noexcept {
    return (value & kFpControlMask) == kFpControlDefault;
  }
  uint32_t found_;
};

}  // namespace picokernel::runtime
