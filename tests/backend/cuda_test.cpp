// What the backend cuda prints, compiled by NVRTC where it is installed. What it computes is tested
// in c_test.cpp.
#include <string>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "backend/cpu_testing.h"
#include "backend/edge_values.h"
#include "driver/backends.h"
#include "driver/compile.h"
#include "fuzz/random_graph.h"

namespace picokernel {
namespace {

const backend::Backend& cuda() { return *driver::find_backend("cuda"); }

// The functions of NVRTC that a compilation takes (CUDA 13, NVRTC's guide); null: not installed.
class Nvrtc {
 public:
  static const Nvrtc* instance() {
    static const Nvrtc one;
    return one.library_ == nullptr ? nullptr : &one;
  }

  /// The PTX, or the log behind "error: ".
  std::string compile(const std::string& text) const {
    void* program = nullptr;
    create_(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr);
    const char* options[] = {"--gpu-architecture=sm_90"};
    const bool failed = compile_(program, 1, options) != 0;
    size_t size = 0;
    (failed ? log_size_ : ptx_size_)(program, &size);
    std::string result(size, ' ');
    (failed ? log_ : ptx_)(program, result.data());
    destroy_(&program);
    return failed ? "error: " + result : result;
  }

 private:
  Nvrtc() {
    for (const char* name : {"libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"})
      if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library_, name));
    };
    find(create_, "nvrtcCreateProgram");
    find(compile_, "nvrtcCompileProgram");
    find(destroy_, "nvrtcDestroyProgram");
    find(log_size_, "nvrtcGetProgramLogSize");
    find(log_, "nvrtcGetProgramLog");
    find(ptx_size_, "nvrtcGetPTXSize");
    find(ptx_, "nvrtcGetPTX");
  }

  void* library_ = nullptr;
  int (*create_)(void**, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile_)(void*, int, const char* const*);
  int (*destroy_)(void**);
  int (*log_size_)(void*, size_t*);
  int (*log_)(void*, char*);
  int (*ptx_size_)(void*, size_t*);
  int (*ptx_)(void*, char*);
};

TEST(Cuda, NvrtcCompilesEveryOpOfEveryType) {
  if (Nvrtc::instance() == nullptr) GTEST_SKIP() << "no NVRTC here";
  std::vector<ir::Module> lowered;
  for (const testing_values::Case& c : testing_values::all_cases()) {
    if (is_half(c.result) && !ir::is_exact(c.opcode, c.result)) continue;  // float32's
    ir::Module m = testing_values::elementwise(c.opcode, c.types, c.result);
    m.name = "k" + std::to_string(lowered.size());
    lowered.push_back(driver::lower_for(cuda(), std::move(m)));
  }
  const std::string ptx = Nvrtc::instance()->compile(cuda().file(lowered, {}));
  EXPECT_EQ(ptx.find("error: "), ptx.npos) << ptx.substr(0, 2000);
  EXPECT_NE(ptx.find(".entry pk_k0"), ptx.npos);
}

TEST(Cuda, NvrtcCompilesArraysOfAllViews) {
  if (Nvrtc::instance() == nullptr) GTEST_SKIP() << "no NVRTC here";
  std::vector<ir::Module> lowered;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    ir::Module graph = fuzz::random_program(seed, 6).graph;
    if (!cuda().check(graph).empty()) continue;
    graph.name = "k" + std::to_string(seed);
    lowered.push_back(driver::lower_for(cuda(), std::move(graph)));
  }
  ASSERT_GT(lowered.size(), 10u);
  const std::string ptx = Nvrtc::instance()->compile(cuda().file(lowered, {}));
  EXPECT_EQ(ptx.find("error: "), ptx.npos) << ptx.substr(0, 2000);
}

// By default the compiler makes one fma of a product and a sum.
TEST(Cuda, NothingIsFused) {
  if (Nvrtc::instance() == nullptr) GTEST_SKIP() << "no NVRTC here";
  const ir::Module m = driver::lower_for(cuda(), cpu_test::parse(R"(
kernel @f(%x: ptr<global, f64>, %o: ptr<global, f64>, %n: i64) {
  parallel %i in %n {
    %v = load %x[%i]
    %p = mul %v, %v
    %q = add %p, %v
    %r = sub %q, %p
    store %r, %o[%i]
  }
})"));
  const std::string ptx = Nvrtc::instance()->compile(cuda().file({&m, 1}, {}));
  EXPECT_NE(ptx.find("mul.rn.f64"), ptx.npos) << ptx;
  EXPECT_EQ(ptx.find("fma"), ptx.npos) << ptx;
}

TEST(Cuda, SecondLoopsAreRefused) {
  const ir::Module m = cpu_test::parse(R"(
graph @f(%a: ref f32[n], %o: ref f32[n], %p: ref f32[m]) {
  %0 = read %a
  write %o, %0
  %1 = constant 1.0 : f32
  write %p, %1
})");
  const std::vector<Diagnostic> refused = cuda().check(m);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(
      refused[0].message,
      "cuda prints one loop nest without memory of its own, and this needs what other threads "
      "have computed, or other loops");
}

}  // namespace
}  // namespace picokernel
