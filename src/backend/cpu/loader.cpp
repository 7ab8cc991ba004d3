// RuntimeDyld without a JIT round it: loading takes 30 us, against 75 with ORC's LLJIT and JITLink,
// which bring queues, symbol tables and threads that one finished object has no use for.
#include "backend/cpu/loader.h"

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <type_traits>

#include <llvm/ExecutionEngine/JITSymbol.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include "backend/cpu/compile.h"
#include "backend/cpu/debuggers.h"
#include "support/check.h"
#include "trace/trace.h"

namespace picokernel::backend::cpu {
namespace {

template <class F>
uint64_t address_of(F* function) {
  return reinterpret_cast<uint64_t>(function);
}

template <class T, int operands>
using Function = std::conditional_t<operands == 1, T(T), T(T, T)>;

// All that compiled code may call. pk_ names are emitted by us, the others by LLVM's code
// generator.
const std::map<std::string, uint64_t, std::less<>>& allowed() {
  static const std::map<std::string, uint64_t, std::less<>> symbols = {
#define PK_LIBM(name, operands)                                        \
  {"pk_" #name "f", address_of<Function<float, operands>>(::name##f)}, \
      {"pk_" #name, address_of<Function<double, operands>>(::name)},
#include "backend/cpu/libm.def"
#undef PK_LIBM
      {"pk_gcd", address_of<uint64_t(uint64_t, uint64_t)>(std::gcd<uint64_t, uint64_t>)},
      {"pk_alloc", address_of(allocate_for_launch)},
      {"memcpy", address_of<void*(void*, const void*, size_t)>(::memcpy)},
      {"memmove", address_of<void*(void*, const void*, size_t)>(::memmove)},
      {"memset", address_of<void*(void*, int, size_t)>(::memset)},
  };
  return symbols;
}

class AllowList : public llvm::JITSymbolResolver {
 public:
  void lookup(const LookupSet& names, OnResolvedFunction on_resolved) override {
    LookupResult found;
    for (const llvm::StringRef name : names) {
      // Mach-O puts an underscore before every C name.
      const std::string_view text(name.data(), name.size());
      auto it = allowed().find(text);
      if (it == allowed().end() && text.starts_with('_')) it = allowed().find(text.substr(1));
      if (it == allowed().end()) {
        on_resolved(llvm::createStringError(llvm::inconvertibleErrorCode(),
                                            "compiled code calls " + std::string(text)));
        return;
      }
      found[name] = llvm::JITEvaluatedSymbol(it->second, llvm::JITSymbolFlags::Exported);
    }
    on_resolved(std::move(found));
  }
  // Nobody else defines our symbols.
  llvm::Expected<LookupSet> getResponsibilitySet(const LookupSet&) override { return LookupSet(); }
};

class Loaded : public LoadedCode {
 public:
  explicit Loaded(std::string_view object) {
    // A copy: object files are read in place and need their alignment.
    const auto buffer =
        llvm::MemoryBuffer::getMemBufferCopy({object.data(), object.size()}, "kernel");
    auto file = llvm::object::ObjectFile::createObjectFile(buffer->getMemBufferRef());
    PK_CHECK(static_cast<bool>(file), llvm::toString(file.takeError()));
    AllowList resolver;
    llvm::RuntimeDyld linker(memory_, resolver);
    const std::unique_ptr<llvm::RuntimeDyld::LoadedObjectInfo> loaded = linker.loadObject(**file);
    linker.resolveRelocations();
    PK_CHECK(!linker.hasError(), linker.getErrorString().str());
    std::string error;
    PK_CHECK(!memory_.finalizeMemory(&error), error);
    for (const auto& [name, symbol] : linker.getSymbolTable())
      symbols_[name.str()] = symbol.getAddress();
    known_.emplace(**file, *loaded);
  }

  void* symbol(const std::string& name) const override {
    auto it = symbols_.find(name);
    if (it == symbols_.end()) it = symbols_.find("_" + name);
    PK_CHECK(it != symbols_.end(), "the object has no function ", name);
    return reinterpret_cast<void*>(it->second);
  }

 private:
  llvm::SectionMemoryManager memory_;
  std::map<std::string, uint64_t> symbols_;
  std::optional<KnownToDebuggers> known_;  // forgotten before the memory goes
};

}  // namespace

std::unique_ptr<LoadedCode> load_object(std::string_view object) {
  static const trace::NameId name = trace::intern("link");
  const trace::Span span(trace::Category::compile, name);
  const LlvmLock lock;
  return std::make_unique<Loaded>(object);
}

}  // namespace picokernel::backend::cpu
