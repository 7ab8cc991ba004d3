// The few calls that differ between LLVM 19 and 22. The only file that looks at LLVM's version.
#pragma once

#include <memory>
#include <string>

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>

namespace picokernel::backend::cpu {

inline const llvm::Target* lookup_target(const llvm::Triple& triple, std::string& error) {
#if LLVM_VERSION_MAJOR >= 22
  return llvm::TargetRegistry::lookupTarget(triple, error);
#else
  return llvm::TargetRegistry::lookupTarget(triple.str(), error);
#endif
}

inline std::unique_ptr<llvm::TargetMachine> create_target_machine(
    const llvm::Target& target, const llvm::Triple& triple, const std::string& cpu,
    const std::string& features, const llvm::TargetOptions& options, llvm::CodeGenOptLevel level) {
#if LLVM_VERSION_MAJOR >= 21
  const llvm::Triple& name = triple;
#else
  const std::string& name = triple.str();
#endif
  return std::unique_ptr<llvm::TargetMachine>(target.createTargetMachine(
      name, cpu, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level, true));
}

inline void set_target_triple(llvm::Module& module, const llvm::TargetMachine& machine) {
#if LLVM_VERSION_MAJOR >= 21
  module.setTargetTriple(machine.getTargetTriple());
#else
  module.setTargetTriple(machine.getTargetTriple().str());
#endif
}

}  // namespace picokernel::backend::cpu
