// Kernel -> LLVM module -> passes -> object code, assembly or text.
#include "backend/cpu/compile.h"

#include <map>
#include <memory>
#include <utility>

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "backend/cpu/emit_entry.h"
#include "backend/cpu/emit_module.h"
#include "backend/cpu/llvm_compat.h"
#include "ir/text.h"
#include "support/check.h"
#include "trace/trace.h"

namespace picokernel::backend::cpu {
namespace {

trace::NameId name_of(const char* text) { return trace::intern(text); }

struct Names {
  trace::NameId ir = name_of("llvm ir"), passes = name_of("llvm passes"),
                codegen = name_of("llvm codegen");
};
const Names& names() {
  static const Names n;
  return n;
}

// What one compilation works on; leaked if LLVM fails in the middle of it.
struct Job {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  KernelInfo info;
  llvm::TargetMachine* machine = nullptr;
  Output output = Output::object;
  llvm::SmallVector<char, 0> buffer;
  std::string errors;
};

struct CollectDiagnostics : llvm::DiagnosticHandler {
  explicit CollectDiagnostics(std::string& errors) : errors(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      llvm::raw_string_ostream text(errors);
      llvm::DiagnosticPrinterRawOStream printer(text);
      info.print(printer);
      text << "\n";
    }
    return true;
  }
  std::string& errors;
};

// What takes compile time and gains nothing here: loops are emitted in the form that strength
// reduction looks for (a quarter of the time), and processors that run x86-64-v3 schedule by
// themselves (an eighth). There are no other switches than those for command lines.
void turn_off_passes() {
  constexpr std::pair<const char*, const char*> kSwitches[] = {
      {"disable-lsr", "true"}, {"post-RA-scheduler", "false"}, {"enable-misched", "false"}};
  const auto& options = llvm::cl::getRegisteredOptions();
  for (const auto& [name, value] : kSwitches)
    if (const auto it = options.find(name); it != options.end())
      it->second->addOccurrence(1, name, value);
}

bool initialise_llvm() {
  if (llvm::InitializeNativeTarget() || llvm::InitializeNativeTargetAsmPrinter()) return false;
#ifdef PICOKERNEL_AARCH64
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmPrinter();
#endif
  turn_off_passes();
  return true;
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target) {
  static const bool initialised = initialise_llvm();
  PK_CHECK(initialised, "LLVM is built without this machine's target");
  const llvm::Triple triple(target.triple);
  std::string reason;
  const llvm::Target* llvm_target = lookup_target(triple, reason);
  if (llvm_target == nullptr)
    throw Error(Diagnostic{.message = "this picokernel has no code generator for " + target.triple,
                           .notes = {reason, "build it with -DPICOKERNEL_AARCH64=ON"}});
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  auto machine = create_target_machine(*llvm_target, triple, target.cpu, target.features, options,
                                       llvm::CodeGenOptLevel::Default);
  PK_CHECK(machine != nullptr, "LLVM has no code generator for ", target.cpu);
  return machine;
}

// Under the lock. One per target that was ever asked for; creating one costs as much as compiling
// half a kernel.
std::unique_ptr<llvm::TargetMachine>& machine_for(const Target& target) {
  static auto& machines = *new std::map<std::string, std::unique_ptr<llvm::TargetMachine>>;
  auto& machine = machines[target.triple + " " + target.key()];
  if (machine == nullptr) machine = make_machine(target);
  return machine;
}

// The code is vectorised and interleaved already: these clean up what emission repeats, and move
// out of loops what does not change there.
void run_passes(Job& job) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(job.machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                       /*UseMemorySSA=*/true));
  for (llvm::Function& f : *job.module)
    if (!f.isDeclaration()) passes.run(f, functions);
}

void generate(Job& job) {
  llvm::raw_svector_ostream stream(job.buffer);
  if (job.output == Output::llvm_text) {
    job.module->print(stream, nullptr);
    return;
  }
  llvm::legacy::PassManager codegen;
  const auto type = job.output == Output::assembly ? llvm::CodeGenFileType::AssemblyFile
                                                   : llvm::CodeGenFileType::ObjectFile;
  if (job.machine->addPassesToEmitFile(codegen, stream, nullptr, type, /*DisableVerify=*/true))
    fail_in_llvm("this target cannot emit files");
  codegen.run(*job.module);
}

[[noreturn]] void fail(std::span<const ir::Module> kernels, const Target& target,
                       const std::string& reason) {
  std::string text;
  for (const ir::Module& m : kernels) text += "\n" + ir::print(m);
  throw InternalError(
      Diagnostic{.message = "LLVM could not compile a kernel for " + target.cpu + ": " + reason,
                 .notes = {"the kernel:" + text, "reproduce with `picoc emit llvm` on this text"}});
}

}  // namespace

CompiledKernel compile(std::span<const ir::Module> kernels, const Target& target, Output output) {
  const LlvmLock lock;
  std::unique_ptr<llvm::TargetMachine>& machine = machine_for(target);
  auto job = std::make_unique<Job>();
  job->context.setDiagnosticHandler(std::make_unique<CollectDiagnostics>(job->errors));
  job->machine = machine.get();
  job->output = output;
  {
    const trace::Span span(trace::Category::compile, names().ir);
    job->module = std::make_unique<llvm::Module>(kernels[0].name, job->context);
    job->module->setDataLayout(machine->createDataLayout());
    set_target_triple(*job->module, *machine);
    for (const ir::Module& kernel : kernels) {
      job->info = emit_module(kernel, *job->module, target);
      if (output == Output::c_object) emit_entry(kernel, job->info, *job->module, target);
    }
    std::string reason;
    llvm::raw_string_ostream text(reason);
    if (llvm::verifyModule(*job->module, &text)) fail(kernels, target, reason);
  }
  const auto guarded = [&](trace::NameId name, void (*f)(Job&)) {
    struct Call {
      Job* job;
      void (*f)(Job&);
    } call{job.get(), f};
    const trace::Span span(trace::Category::compile, name);
    const std::string fatal =
        run_guarded([](void* c) { static_cast<Call*>(c)->f(*static_cast<Call*>(c)->job); }, &call);
    if (fatal.empty()) return;
    static_cast<void>(job.release());
    static_cast<void>(machine.release());
    fail(kernels, target, fatal);
  };
  guarded(names().passes, run_passes);
  guarded(names().codegen, generate);
  if (!job->errors.empty()) fail(kernels, target, job->errors);
  return {std::string(job->buffer.begin(), job->buffer.end()), std::move(job->info)};
}

}  // namespace picokernel::backend::cpu
