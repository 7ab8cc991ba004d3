// The backends cpu, llvm, asm and obj.
#include "backend/cpu/cpu.h"

#include "backend/c_like/c11.h"
#include "backend/c_like/printer.h"
#include "backend/cpu/compile.h"
#include "backend/cpu/executable.h"
#include "backend/cpu/target.h"
#include "passes/common/passes.h"
#include "passes/legalize/passes.h"

namespace picokernel::backend {
namespace cpu {

std::string target_key() { return current_target().key(); }
std::string emit_llvm_text(const ir::Module& kernel) {
  return compile({&kernel, 1}, current_target(), Output::llvm_text).code;
}
std::string emit_assembly(const ir::Module& kernel) {
  return compile({&kernel, 1}, current_target(), Output::assembly).code;
}

namespace {

std::vector<Diagnostic> check(const ir::Module&) { return {}; }
std::string why_not_live() { return current_target().problem; }

Artifact emit(const ir::Module& kernel) {
  CompiledKernel compiled = compile({&kernel, 1}, current_target(), Output::object);
  return {.code = write_info(compiled.info) + compiled.code, .entry = kernel.name};
}
Artifact emit_text(const ir::Module& kernel) {
  return {.code = emit_llvm_text(kernel), .entry = kernel.name};
}
Artifact emit_asm(const ir::Module& kernel) {
  return {.code = emit_assembly(kernel), .entry = kernel.name};
}

Target target_of(std::string_view triple) {
  return triple.empty() ? current_target() : baseline_of(triple);
}

std::string object_file(std::span<const ir::Module> kernels, std::string_view triple) {
  c_like::check_names(kernels);
  return compile(kernels, target_of(triple), Output::c_object).code;
}
Artifact emit_object(const ir::Module& kernel) {
  return {.code = object_file({&kernel, 1}, {}), .entry = c_like::function_name(kernel)};
}
std::string object_header(std::span<const ir::Module> kernels, std::string_view triple) {
  const Target target = target_of(triple);
  return c_like::c_header(kernels, "// They run on the thread that calls them. Compiled for " +
                                       target.triple + ", " + target.cpu + ".\n");
}

std::unique_ptr<runtime::Executable> open(const Artifact& artifact, const ir::Module&) {
  std::string_view code = artifact.code;
  const KernelInfo info = read_info(code);
  return make_executable(artifact.entry, info, code);
}

constexpr passes::Pass kPasses[] = {
    {"expand_int_pow", passes::expand_int_pow, "before the loops, which count exponents down"},
    {"expand_int_loops", passes::expand_int_loops, "objects cannot call our gcd"},
    {"expand_halves", passes::expand_halves, "x86-64-v3 converts them, and no more"},
    {"expand_bfloat16", passes::expand_bfloat16, "LLVM's conversion flushes subnormals"},
    {"expand_double_to_half", passes::expand_double_to_half, "LLVM would call a function"},
    {"expand_math", passes::expand_math, "the same bits on every machine, and no calls"},
    {"fold", passes::fold, "what the expansions made of constants"},
    {"cse", passes::cse, "what they made twice"},
    {"dce", passes::dce, "what they left over"},
};
constexpr std::span<const passes::Pass> kLegalizeObject = kPasses;
constexpr std::span<const passes::Pass> kLegalize = kLegalizeObject.subspan(2);

std::string prints_only() { return "it prints only; run kernels on `cpu`"; }
std::string links_only() { return "it is linked into other programs; run kernels on `cpu`"; }

}  // namespace
}  // namespace cpu

const Backend cpu_backend{
    .name = "cpu",
    .summary = "native code through LLVM, vectorised and threaded",
    .level = ir::Level::kernel,
    .legalize = cpu::kLegalize,
    .check = cpu::check,
    .emit = cpu::emit,
    .open = cpu::open,
    .why_not_live = cpu::why_not_live,
    .target = cpu::target_key,
    .storable = true,
    .binary = true,
    .threads = Threads::loops,
};
const Backend llvm_backend{
    .name = "llvm",
    .summary = "the LLVM IR of cpu",
    .level = ir::Level::kernel,
    .legalize = cpu::kLegalize,
    .check = cpu::check,
    .emit = cpu::emit_text,
    .open = nullptr,
    .why_not_live = cpu::prints_only,
    .target = cpu::target_key,
    .prints_only = true,
};
const Backend asm_backend{
    .name = "asm",
    .summary = "the assembly of cpu",
    .level = ir::Level::kernel,
    .legalize = cpu::kLegalize,
    .check = cpu::check,
    .emit = cpu::emit_asm,
    .open = nullptr,
    .why_not_live = cpu::prints_only,
    .target = cpu::target_key,
    .prints_only = true,
};

const Backend obj_backend{
    .name = "obj",
    .summary = "an object file of C functions, for programs without picokernel",
    .level = ir::Level::kernel,
    .legalize = cpu::kLegalizeObject,
    .check = cpu::check,
    .emit = cpu::emit_object,
    .open = nullptr,
    .why_not_live = cpu::links_only,
    .target = cpu::target_key,
    .prints_only = true,
    .takes_arrays = true,
    .file = cpu::object_file,
    .header = cpu::object_header,
    .binary = true,
};

}  // namespace picokernel::backend
