// The spellings of CUDA C++, and what stands round its functions.
#include "backend/cuda/cuda.h"

#include "backend/c_like/c11.h"
#include "backend/c_like/legalize.h"
#include "backend/c_like/printer.h"
#include "passes/graph/passes.h"
#include "passes/lower/nests.h"

namespace picokernel::backend {
namespace cuda {
namespace {

using ir::Opcode;

constexpr std::string_view kHead =
    R"(// CUDA C++, printed by picokernel; needs no header. Grids and blocks may have any size, along y too
// where blockIdx.y occurs: threads stride over the elements, along x over the innermost dimension.
// Arithmetic is spelt so that no compiler fuses it; leave -use_fast_math and -ftz alone.
#ifndef PK_FUNCTION
#define PK_FUNCTION extern "C" __global__
#endif
#ifndef PK_RESTRICT  // __restrict__ where no array that is written overlaps another one
#define PK_RESTRICT
#endif

)";

// The operators of floats would be contracted to fma unless a flag of the compiler forbids it.
// Rounding to nearest, subnormals kept (CUDA Math API, single and double precision intrinsics).
constexpr c_like::FunctionName kFunctions[] = {
    {Opcode::add, "__fadd_rn", "__dadd_rn"}, {Opcode::sub, "__fsub_rn", "__dsub_rn"},
    {Opcode::mul, "__fmul_rn", "__dmul_rn"}, {Opcode::div, "__fdiv_rn", "__ddiv_rn"},
    {Opcode::fma, "__fmaf_rn", "__fma_rn"},  {Opcode::sqrt, "__fsqrt_rn", "__dsqrt_rn"},
    {Opcode::floor, "floorf", "floor"},      {Opcode::ceil, "ceilf", "ceil"},
    {Opcode::trunc, "truncf", "trunc"},      {Opcode::rint, "rintf", "rint"},
    {Opcode::abs, "fabsf", "fabs"},          {Opcode::copysign, "copysignf", "copysign"},
};

// Atomic functions take pointers that are not volatile.
constexpr c_like::Threads kThreads{
    .ids = {"threadIdx.$1", "blockIdx.$1", "blockDim.$1", "gridDim.$1"},
    .shared = "__shared__ $0 $1[$2];",
    .dynamic =
        "extern __shared__ unsigned long long dynamic_memory[]; $0 *$1 = ($0 *)dynamic_memory;",
    .dynamic_parameter = {},
    .barrier = "__syncthreads();",
    .vote = "if ($0) atomicAdd($1, 1);",
    .first = "threadIdx.x + threadIdx.y + threadIdx.z == 0",
    .cas32 = "atomicCAS((unsigned int *)$0, $1, $2)",
    .cas64 = "atomicCAS((unsigned long long *)$0, $1, $2)",
    .helper = "static __device__ ",
    .add32 = "atomicAdd((unsigned int *)$0, $1)",
    .add64 = "atomicAdd((unsigned long long *)$0, $1)",
};

const c_like::Dialect kCuda{
    .values = {"bool", "signed char", "short", "int", "long long", "unsigned char",
               "unsigned short", "unsigned int", "unsigned long long", "unsigned short",
               "unsigned short", "float", "double"},
    .elements = {"unsigned char", "signed char", "short", "int", "long long", "unsigned char",
                 "unsigned short", "unsigned int", "unsigned long long", "unsigned short",
                 "unsigned short", "float", "double"},
    .spaces = {},
    .pointer = "*PK_RESTRICT ",
    .function = "PK_FUNCTION void ",
    .i64_literal = "$0ll",
    .u64_literal = "$0ull",
    .i32_least = "(-2147483647 - 1)",
    .i64_least = "(-9223372036854775807ll - 1)",
    .infinity = "__int_as_float(0x7f800000)",
    .nan = "__int_as_float(0x7fc00000)",
    .functions = kFunctions,
    .bitcast = "memcpy(&$0, &$1, sizeof $0);",
    .load_bits = "memcpy(&$0, $1 + $2, sizeof $0);",
    .store_bits = "memcpy($1 + $2, &$0, sizeof $0);",
    .parallel = {"for (long long $0 = blockIdx.x * (long long)blockDim.x + threadIdx.x; $0 < $1; "
                 "$0 += gridDim.x * (long long)blockDim.x) {",
                 "for (long long $0 = blockIdx.y * (long long)blockDim.y + threadIdx.y; $0 < $1; "
                 "$0 += gridDim.y * (long long)blockDim.y) {",
                 "for (long long $0 = 0; $0 < $1; ++$0) {"},
    .alloc = {},
    .free = {},
    .reserved =
        "blockDim blockIdx ceil ceilf copysign copysignf fabs fabsf floor floorf gridDim "
        "memcpy rint rintf threadIdx trunc truncf warpSize atomicAdd atomicCAS dynamic_memory",
    .threads = &kThreads,
};

std::vector<Diagnostic> refused(const ir::Module& m, ir::OpId at, std::string why) {
  return {{.location = m.location(m.ops[at]),
           .message = "cuda prints one loop nest without memory of its own, and " + std::move(why),
           .notes = {"hint: split the kernel there"}}};
}

std::vector<Diagnostic> check_graph(const ir::Module& traced) {
  ir::Module m = traced;
  for (const passes::PassFunction pass :
       {passes::compose_views, passes::bind_outputs, passes::fold, passes::simplify, passes::cse,
        passes::dce, passes::materialize})
    m = pass(m, {.backend = "cuda"});
  const passes::Nests found = passes::find_nests(m);
  std::vector<ir::OpId> writes;
  ir::walk(m, [&](ir::OpId id) {
    if (m.ops[id].opcode == Opcode::write) writes.push_back(id);
  });
  if (found.nests.size() > 1)
    return refused(m, writes.back(), "this needs what other threads have computed, or other loops");
  return {};
}

// Nothing waits for other threads, and nobody gives memory.
std::vector<Diagnostic> check(const ir::Module& m) {
  if (m.level == ir::Level::graph) return check_graph(m);
  if (ir::is_of_threads(m)) return c_like::check_threads(m, "cuda");
  std::vector<Diagnostic> found;
  size_t nests = 0;
  ir::walk(m, [&](ir::OpId id) {
    const Opcode opcode = m.ops[id].opcode;
    if (!found.empty()) return;
    if (opcode == Opcode::alloc) found = refused(m, id, "this allocates some");
    if (opcode == Opcode::parallel && ++nests > 1) found = refused(m, id, "this is another one");
  });
  return found;
}

std::string file(std::span<const ir::Module> kernels, std::string_view triple) {
  if (!triple.empty()) throw Error("cuda prints one text for all machines: leave --target out");
  c_like::check_names(kernels);
  std::string text(kHead);
  for (const ir::Module& m : kernels) {
    if (&m != kernels.data()) text += "\n";
    text += c_like::notes(m) + c_like::Printer(m, kCuda).function();
  }
  return text;
}

}  // namespace
}  // namespace cuda

const Backend cuda_backend{
    .name = "cuda",
    .summary = "CUDA C++ source of one kernel, for NVRTC or nvcc",
    .level = ir::Level::kernel,
    .legalize = c_like::kLegalize,
    .check = cuda::check,
    .emit =
        [](const ir::Module& m) {
          return Artifact{.code = cuda::file({&m, 1}, {}), .entry = c_like::function_name(m)};
        },
    .open = nullptr,
    .why_not_live = [] { return std::string("it prints CUDA C++; run kernels on `cpu`"); },
    .prints_only = true,
    .takes_arrays = true,
    .file = cuda::file,
    .threads = Threads::grid,
};

}  // namespace picokernel::backend
