// Runs kernels on cpu and on ref over equal memory, and compares bit by bit, all NaNs as one.
#pragma once

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "backend/cpu/cpu.h"
#include "backend/ref/interpreter.h"
#include "ir/eval.h"
#include "ir/scalar.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "passes/legalize/passes.h"

namespace picokernel::cpu_test {

// PICOKERNEL_CPU for a scope.
class Cap {
 public:
  explicit Cap(const char* level) {
    if (const char* before = std::getenv("PICOKERNEL_CPU")) before_ = before;
    set(level);
  }
  ~Cap() { set(before_.c_str()); }

 private:
  static void set(const char* level) {
    if (*level != '\0')
      setenv("PICOKERNEL_CPU", level, 1);
    else
      unsetenv("PICOKERNEL_CPU");
  }
  std::string before_;
};

#if defined(__x86_64__)
inline constexpr const char* kLevels[] = {"", "x86-64-v4", "x86-64-v3"};
#else
inline constexpr const char* kLevels[] = {""};
#endif
inline std::string level_name(const ::testing::TestParamInfo<const char*>& p) {
  return *p.param ? std::string(p.param).substr(7) : "host";
}

inline std::unique_ptr<runtime::Executable> compile(ir::Module m) {
  ir::verify_or_throw(m, "the test");
  for (const passes::Pass& pass : backend::cpu_backend.legalize) m = pass.run(m, {});
  return backend::cpu_backend.open(backend::cpu_backend.emit(m), m);
}

inline ir::Module parse(std::string_view text) { return ir::parse(text, "test.pk").at(0); }

// Memory of a test: elements of one type, at any distance from an aligned address.
class Memory {
 public:
  Memory(DType dtype, size_t count, size_t skip_bytes = 0)
      : dtype_(dtype),
        count_(count),
        skip_(skip_bytes),
        bytes_(count * size_of(dtype) + skip_bytes + 64) {}
  Memory(const Memory& other) : Memory(other.dtype_, other.count_, other.skip_) {
    std::memcpy(at(0), other.at(0), count_ * size_of(dtype_));
  }
  Memory(Memory&&) = default;
  Memory& operator=(Memory&&) = default;
  Memory& operator=(const Memory& other) { return *this = Memory(other); }

  void set(size_t i, uint64_t bits) { std::memcpy(at(i), &bits, size_of(dtype_)); }
  uint64_t get(size_t i) const {
    return ir::visit(dtype_, [&]<class T>(T*) {
      T v{};
      std::memcpy(&v, at(i), sizeof v);
      return ir::Scalar::of(v).bits;
    });
  }
  uint64_t pointer(size_t element = 0) const { return reinterpret_cast<uint64_t>(at(element)); }
  size_t size() const { return count_; }
  DType dtype() const { return dtype_; }

 private:
  std::byte* at(size_t i) const {
    auto base = reinterpret_cast<uintptr_t>(bytes_.data());
    base = (base + 63) / 64 * 64 + skip_;
    return reinterpret_cast<std::byte*>(base) + i * size_of(dtype_);
  }
  DType dtype_;
  size_t count_, skip_;
  std::vector<std::byte> bytes_;
};

inline bool same_value(DType t, uint64_t a, uint64_t b) {
  if (a == b) return true;
  const auto nan = [t](uint64_t bits) {
    return std::isnan(ir::cast({t, bits}, DType::f64).as<double>());
  };
  return is_float(t) && nan(a) && nan(b);
}

inline ::testing::AssertionResult same_contents(const Memory& want, const Memory& got) {
  for (size_t i = 0; i < want.size(); ++i)
    if (!same_value(want.dtype(), want.get(i), got.get(i)))
      return ::testing::AssertionFailure()
             << "element " << i << ": " << std::hex << got.get(i) << ", not " << want.get(i);
  return ::testing::AssertionSuccess();
}

// A kernel's arguments: memories, each with the element that the pointer shows, and scalars.
struct Argument {
  int memory = -1;    // index, or -1: a scalar
  uint64_t bits = 0;  // of the scalar; else the element that the pointer shows
};
inline Argument at(int memory, uint64_t element = 0) { return {memory, element}; }
inline Argument number(int64_t v) { return {-1, static_cast<uint64_t>(v)}; }

inline std::vector<uint64_t> slots(const std::vector<Memory>& memories,
                                   const std::vector<Argument>& arguments) {
  std::vector<uint64_t> list;
  for (const Argument& a : arguments)
    list.push_back(a.memory < 0 ? a.bits : memories[static_cast<size_t>(a.memory)].pointer(a.bits));
  return list;
}

/// Runs on copies of the memories with ref, which computes functions by their expansions, and with
/// `run`, and compares all of them.
inline ::testing::AssertionResult agrees(const ir::Module& m, runtime::Executable& run,
                                         const std::vector<Memory>& memories,
                                         const std::vector<Argument>& arguments) {
  const std::vector<Memory> want = memories, got = memories;
  backend::run_kernel(passes::expand_math(m, {}), slots(want, arguments));
  run.launch(slots(got, arguments).data());
  for (size_t i = 0; i < memories.size(); ++i) {
    const ::testing::AssertionResult same = same_contents(want[i], got[i]);
    if (!same) return ::testing::AssertionFailure() << "memory " << i << ", " << same.message();
  }
  return ::testing::AssertionSuccess();
}

inline uint64_t random_bits(uint64_t& state) {
  state += 0x9E3779B97F4A7C15;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

/// Small values of the type, the same ones for the same seed.
inline Memory numbers(DType t, size_t count, uint64_t seed, size_t skip_bytes = 0) {
  Memory m(t, count, skip_bytes);
  for (size_t i = 0; i < count; ++i) {
    const auto v = static_cast<int64_t>(random_bits(seed) % 2001) - 1000;
    const ir::Scalar s =
        is_float(t) ? ir::Scalar::of(static_cast<double>(v) / 8) : ir::Scalar::of(v);
    m.set(i, ir::cast(s, t).bits);
  }
  return m;
}

}  // namespace picokernel::cpu_test
