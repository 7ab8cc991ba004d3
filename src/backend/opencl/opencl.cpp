// The spellings of OpenCL C 1.2, and what stands round its functions.
#include "backend/opencl/opencl.h"

#include "backend/c_like/c11.h"
#include "backend/c_like/legalize.h"
#include "backend/c_like/printer.h"
#include "backend/opencl/device.h"

namespace picokernel::backend {
namespace opencl {
namespace {

using ir::Opcode;

// float64 and 64-bit atomics are asked for where they are used: devices may lack them.
constexpr std::string_view kHead =
    "// OpenCL C 1.2, printed by picokernel. An array is memory and a place in it, in bytes.\n"
    "#pragma OPENCL FP_CONTRACT OFF\n";
constexpr std::string_view kDoubles = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
constexpr std::string_view kWideAtomics =
    "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n";

constexpr c_like::FunctionName kFunctions[] = {
    {Opcode::fma, "fma", "fma"},       {Opcode::sqrt, "sqrt", "sqrt"},
    {Opcode::floor, "floor", "floor"}, {Opcode::ceil, "ceil", "ceil"},
    {Opcode::trunc, "trunc", "trunc"}, {Opcode::rint, "rint", "rint"},
    {Opcode::abs, "fabs", "fabs"},     {Opcode::copysign, "copysign", "copysign"},
};

constexpr c_like::Threads kThreads{
    .ids = {"(long)get_local_id($0)", "(long)get_group_id($0)", "(long)get_local_size($0)",
            "(long)get_num_groups($0)"},
    .shared = "__local $0 $1[$2];",
    .dynamic = "__local $0 *$1 = (__local $0 *)dynamic_memory;",
    .dynamic_parameter = "__local ulong *dynamic_memory",
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    .vote = "if ($0) atomic_inc((volatile __local int *)$1);",
    .first = "get_local_id(0) + get_local_id(1) + get_local_id(2) == 0",
    .cas32 = "atomic_cmpxchg($0, $1, $2)",
    .cas64 = "atom_cmpxchg($0, $1, $2)",
    .helper = "static ",
    .add32 = "atomic_add($0, $1)",
    .add64 = "atom_add($0, $1)",
};

const c_like::Dialect kOpenCl{
    .values = {"bool", "char", "short", "int", "long", "uchar", "ushort", "uint", "ulong", "ushort",
               "ushort", "float", "double"},
    .elements = {"uchar", "char", "short", "int", "long", "uchar", "ushort", "uint", "ulong",
                 "ushort", "ushort", "float", "double"},
    .spaces = {"__global ", "__local ", "__private "},
    .pointer = "*",
    .function = "__kernel void ",
    .i64_literal = "$0L",
    .u64_literal = "$0UL",
    .i32_least = "(-2147483647 - 1)",
    .i64_least = "(-9223372036854775807L - 1)",
    .infinity = "INFINITY",
    .nan = "NAN",
    .functions = kFunctions,
    .bitcast = "$0 = as_$2($1);",
    .load_bits = {},
    .store_bits = {},
    .parallel = {},
    .alloc = {},
    .free = {},
    .reserved =
        "as_double as_float as_int as_long as_uint as_ulong as_ushort atom_add atom_cmpxchg "
        "atomic_add atomic_cmpxchg atomic_inc barrier ceil complex constant copysign double16 "
        "double2 double3 double4 double8 dynamic_memory fabs float16 float2 float3 float4 float8 "
        "floor fma get_group_id get_local_id get_local_size get_num_groups global half imaginary "
        "int16 int2 int3 int4 int8 kernel local long16 long2 long3 long4 long8 pipe printf quad "
        "read_only read_write rint sqrt trunc uchar uint ulong uniform ushort write_only",
    .memory_parameters = "__global uchar *$0_memory, long $0_at",
    .memory_pointer = "($0_memory + $0_at)",
    .bool_parameter = "uchar",
    .threads = &kThreads,
};

const std::vector<passes::Pass> kLegalize = [] {
  std::vector<passes::Pass> all{{"flatten_meetings", passes::flatten_meetings,
                                 "PoCL loses its way in branches with barriers"}};
  all.insert(all.end(), std::begin(c_like::kLegalize), std::end(c_like::kLegalize));
  return all;
}();

std::vector<Diagnostic> check(const ir::Module& m) {
  bool nests = m.level == ir::Level::graph;
  ir::walk(m, [&](ir::OpId id) { nests |= m.ops[id].opcode == Opcode::parallel; });
  if (nests)
    return {{.message = "backend opencl runs kernels of threads only",
             .notes = {"hint: kernels of arrays run on `cpu`"}}};
  return c_like::check_threads(m, "opencl");
}

std::string text(const ir::Module& m) {
  bool doubles = false, wide = false;
  for (const ir::ValueId v : m.params()) doubles |= m.type(v).dtype == DType::f64;
  ir::walk(m, [&](ir::OpId id) {
    const ir::Op& op = m.ops[id];
    for (const ir::ValueId v : op.results) doubles |= m.type(v).dtype == DType::f64;
    wide |= ir::info(op.opcode).atomic() && size_of(m.type(op.operands[0]).dtype) == 8;
  });
  return std::string(kHead) + std::string(doubles ? kDoubles : "") +
         std::string(wide ? kWideAtomics : "") + "\n" + c_like::notes(m) +
         c_like::Printer(m, kOpenCl).function();
}

Artifact emit(const ir::Module& m) { return {.code = text(m), .entry = c_like::function_name(m)}; }

}  // namespace
}  // namespace opencl

const Backend opencl_backend{
    .name = "opencl",
    .summary = "OpenCL C of kernels of threads, run by this machine's OpenCL",
    .level = ir::Level::kernel,
    .legalize = opencl::kLegalize,
    .check = opencl::check,
    .emit = opencl::emit,
    .open = opencl::open,
    .why_not_live = opencl::why_not_live,
    .threads = Threads::grid,
    .threads_only = true,
};

}  // namespace picokernel::backend
