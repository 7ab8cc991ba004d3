// What goes with printed source: one operation per line, refusals, pairs of arguments that must not
// overlap.
#include <sstream>

#include <gtest/gtest.h>

#include "backend/mlx/mlx.h"
#include "backend/numpy/numpy.h"
#include "driver/compile.h"
#include "ir/text.h"
#include "passes/graph/hazards.h"

namespace picokernel {
namespace {

ir::Module parse(std::string_view text) { return ir::parse(text, "test.pk")[0]; }

constexpr std::string_view kFma = R"(
graph @fma(%a: ref f32[n], %b: ref f32[n], %c: ref f32[n]) -> (f32[n]) {
  %0 = read %a
  %1 = read %b
  %2 = mul %0, %1
  %3 = read %c
  %4 = add %2, %3
  return %4
})";

// As `line category op` for each printed operation.
std::string operations(const backend::Backend& backend, std::string_view text) {
  const ir::Module m = driver::lower_for(backend, parse(text));
  const backend::Artifact artifact = backend.emit(m);
  std::string out;
  for (const backend::PrintedOp& op : artifact.operations)
    out += std::to_string(op.line) + " " + std::string(op.category) + " " +
           (op.op.valid() ? std::string(ir::info(m.ops[op.op].opcode).name) : "-") + "\n";
  std::istringstream lines(artifact.code);
  size_t count = 0;
  for (std::string line; std::getline(lines, line);) ++count;
  EXPECT_EQ(count, artifact.operations.size() + 1) << artifact.code;
  return out;
}

TEST(PrintedSource, EveryLineIsOneOperation) {
  EXPECT_EQ(operations(backend::numpy_backend, kFma), "2 op mul\n3 op add\n");
  EXPECT_EQ(
      operations(backend::mlx_backend, kFma),
      "2 h2d read\n3 h2d read\n4 op_lazy mul\n5 h2d read\n6 op_lazy add\n7 sync -\n8 d2h write\n");
}

TEST(PrintedSource, ScratchIsAllocation) {
  EXPECT_EQ(operations(backend::numpy_backend, R"(
graph @relu(%a: ref f32[n]) -> (f32[n]) {
  %0 = read %a
  %1 = constant 0.0 : f32
  %2 = gt %0, %1
  %3 = select %2, %0, %1
  return %3
})"),
            "2 alloc scratch\n3 op gt\n4 op write\n5 op select\n");
}

TEST(PrintedSource, AnEmptyKernelIsAFunctionToo) {
  const backend::Artifact artifact =
      backend::numpy_backend.emit(parse("graph @f(%a: ref f32[n]) {\n}"));
  EXPECT_EQ(artifact.code, "def f(a):\n    pass\n");
  EXPECT_TRUE(artifact.operations.empty());
}

std::string refusal(const backend::Backend& backend, std::string_view text) {
  const std::vector<Diagnostic> found = backend.check(parse(text));
  return found.empty() ? "" : to_string(found);
}

TEST(PrintedSource, MlxRefusesFloat64Functions) {
  EXPECT_EQ(refusal(backend::mlx_backend, R"(graph @f(%a: ref f64[n]) -> (f64[n]) {
  %0 = read %a
  %1 = exp %0 loc("user.py":7:9)
  return %1
})"),
            "user.py:7:9: error: exp of float64 is computed in float32 by MLX\n"
            "  float32 arrays are fine here\n"
            "  use backend=\"cpu\" or float32");
  // Numbers of the host are NumPy's; log and tanh are full precision.
  EXPECT_EQ(refusal(backend::mlx_backend, R"(graph @f(%a: ref f64[n], %s: f64) -> (f64[n]) {
  %0 = read %a
  %1 = exp %s
  %2 = log %0
  %3 = tanh %2
  %4 = mul %1, %3
  return %4
})"),
            "");
}

// By the table of spellings, at the user's line; expansions and numbers of the host count.
TEST(PrintedSource, OpsThatATargetLacksAreRefused) {
  constexpr std::string_view text = R"(graph @f(%a: ref f32[n]) -> (f32[n]) {
  %0 = read %a
  %1 = fma %0, %0, %0 loc("user.py":7:9)
  return %1
})";
  EXPECT_EQ(refusal(backend::numpy_backend, text),
            "user.py:7:9: error: NumPy has no fma of float32\n"
            "  fma is x * y + z, rounded once\n"
            "  use backend=\"cpu\", or compute it outside of the kernel");
  EXPECT_EQ(refusal(backend::mlx_backend, text),
            "user.py:7:9: error: MLX has no fma of float32\n"
            "  fma is x * y + z, rounded once\n"
            "  use backend=\"cpu\", or compute it outside of the kernel");
  EXPECT_EQ(refusal(backend::mlx_backend, R"(graph @f(%a: ref f32[n], %s: f32) -> (f32[n]) {
  %0 = read %a
  %1 = hypot %0, %0
  %2 = hypot %s, %s
  %3 = fmod %1, %2
  return %3
})"),
            "");
}

TEST(PrintedSource, MlxRefusesStoresThroughOtherThanSlices) {
  EXPECT_EQ(refusal(backend::mlx_backend, R"(graph @f(%a: ref f32[n, m], %b: ref f32[m, n]) {
  %t = view %a [1 : 0 : 1 : m, 0 : 0 : 1 : n]
  %0 = read %b
  write %t, %0
})"),
            "MLX stores through slices only, not through transposed or repeated views\n"
            "  store to a slice of the array itself, or use backend=\"cpu\"");
  EXPECT_EQ(refusal(backend::mlx_backend, R"(graph @f(%a: ref f32[n], %b: ref f32[n]) {
  %t = view %a [0 : n - 1 : -1 : n]
  %0 = read %b
  write %t, %0
})"),
            "");
}

using Pairs = std::vector<std::pair<size_t, size_t>>;

Pairs hazards(const backend::Backend& backend, std::string_view text) {
  return passes::hazards(driver::lower_for(backend, parse(text)));
}

TEST(Hazards, OnlyReadsBehindTheFirstWrite) {
  EXPECT_EQ(hazards(backend::numpy_backend, kFma), (Pairs{{2, 3}}));
  EXPECT_EQ(hazards(backend::mlx_backend, kFma), Pairs{});
}

TEST(Hazards, MasksAndCasts) {
  EXPECT_EQ(hazards(backend::numpy_backend, R"(
graph @f(%a: ref f32[n], %c: ref bool[n], %b: ref f32[n]) -> (f32[n]) {
  %0 = read %a
  %1 = read %c
  %2 = read %b
  %3 = select %1, %0, %2
  return %3
})"),
            (Pairs{{0, 3}, {1, 3}}));
  EXPECT_EQ(hazards(backend::numpy_backend, R"(
graph @f(%a: ref f32[n]) -> (f64[n]) {
  %0 = read %a
  %1 = cast %0 : f64
  return %1
})"),
            (Pairs{{0, 1}}));
}

}  // namespace
}  // namespace picokernel
