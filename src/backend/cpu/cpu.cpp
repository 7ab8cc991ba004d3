// The backends cpu, llvm and asm.
#include "backend/cpu/cpu.h"

#include "backend/cpu/compile.h"
#include "backend/cpu/executable.h"
#include "backend/cpu/target.h"
#include "passes/common/passes.h"
#include "passes/legalize/passes.h"

namespace picokernel::backend {
namespace cpu {

std::string target_key() { return current_target().key(); }
std::string emit_llvm_text(const ir::Module& kernel) {
  return compile(kernel, current_target(), Output::llvm_text).code;
}
std::string emit_assembly(const ir::Module& kernel) {
  return compile(kernel, current_target(), Output::assembly).code;
}

namespace {

std::vector<Diagnostic> check(const ir::Module&) { return {}; }
std::string why_not_live() { return current_target().problem; }

Artifact emit(const ir::Module& kernel) {
  CompiledKernel compiled = compile(kernel, current_target(), Output::object);
  return {.code = write_info(compiled.info) + compiled.code, .entry = kernel.name};
}
Artifact emit_text(const ir::Module& kernel) {
  return {.code = emit_llvm_text(kernel), .entry = kernel.name};
}
Artifact emit_asm(const ir::Module& kernel) {
  return {.code = emit_assembly(kernel), .entry = kernel.name};
}

std::unique_ptr<runtime::Executable> open(const Artifact& artifact, const ir::Module&) {
  std::string_view code = artifact.code;
  const KernelInfo info = read_info(code);
  return make_executable(artifact.entry, info, code);
}

constexpr passes::Pass kLegalize[] = {
    {"expand_halves", passes::expand_halves, "x86-64-v3 converts them, and no more"},
    {"expand_bfloat16", passes::expand_bfloat16, "LLVM's conversion flushes subnormals"},
    {"expand_double_to_half", passes::expand_double_to_half, "LLVM would call a function"},
    {"fold", passes::fold, "what the expansions made of constants"},
    {"cse", passes::cse, "what they made twice"},
    {"dce", passes::dce, "what they left over"},
};

std::string prints_only() { return "it prints only; run kernels on `cpu`"; }

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

}  // namespace picokernel::backend
