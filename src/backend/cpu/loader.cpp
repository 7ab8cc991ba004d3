// RuntimeDyld without a JIT round it: loading takes 30 us, against 75 with ORC's LLJIT and JITLink,
// which bring queues, symbol tables and threads that one finished object has no use for.
#include "backend/cpu/loader.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <numeric>
#include <optional>

#include <llvm/ExecutionEngine/JITSymbol.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/Alignment.h>
#include <llvm/Support/Memory.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Process.h>

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

// All that compiled code may call. pk_ names are emitted by us, the others by LLVM's code
// generator.
const std::map<std::string, uint64_t, std::less<>>& allowed() {
  static const std::map<std::string, uint64_t, std::less<>> symbols = {
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

// One mapping for all sections of an object: code reaches its constants by 32-bit distances, and
// between other libraries' mappings the system may have room for two sections only far apart.
class OneMapping : public llvm::RuntimeDyld::MemoryManager {
 public:
  OneMapping() = default;
  ~OneMapping() override { llvm::sys::Memory::releaseMappedMemory(all_); }
  OneMapping(const OneMapping&) = delete;
  OneMapping& operator=(const OneMapping&) = delete;

  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(uintptr_t code, llvm::Align, uintptr_t constants, llvm::Align,
                              uintptr_t data, llvm::Align) override {
    const size_t page = llvm::sys::Process::getPageSizeEstimate();
    const auto pages = [&](uintptr_t bytes) { return (bytes + page - 1) / page * page; };
    std::error_code error;
    // Not announced: the addresses of the few functions that code calls.
    const size_t data_size = pages(data) + page;
    all_ = llvm::sys::Memory::allocateMappedMemory(
        pages(code) + pages(constants) + data_size, nullptr,
        llvm::sys::Memory::MF_READ | llvm::sys::Memory::MF_WRITE, error);
    if (error) throw std::bad_alloc();
    auto* begin = static_cast<uint8_t*>(all_.base());
    code_ = {begin, begin, pages(code)};
    constants_ = {code_.begin + code_.size, code_.begin + code_.size, pages(constants)};
    const auto data_begin = constants_.begin + constants_.size;
    data_ = {data_begin, data_begin, data_size};
  }
  uint8_t* allocateCodeSection(uintptr_t size, unsigned alignment, unsigned,
                               llvm::StringRef) override {
    return code_.take(size, alignment);
  }
  uint8_t* allocateDataSection(uintptr_t size, unsigned alignment, unsigned, llvm::StringRef,
                               bool read_only) override {
    return (read_only ? constants_ : data_).take(size, alignment);
  }
  // Nothing unwinds through kernels.
  void registerEHFrames(uint8_t*, uint64_t, size_t) override {}
  void deregisterEHFrames() override {}
  bool finalizeMemory(std::string* reason) override {
    const auto protect = [&](const Part& part, unsigned flags) {
      if (part.size == 0) return true;
      const std::error_code error =
          llvm::sys::Memory::protectMappedMemory({part.begin, part.size}, flags);
      if (error) *reason = error.message();
      return !error;
    };
    constexpr unsigned kRead = llvm::sys::Memory::MF_READ;
    return !(protect(code_, kRead | llvm::sys::Memory::MF_EXEC) && protect(constants_, kRead));
  }

 private:
  struct Part {
    uint8_t *begin = nullptr, *next = nullptr;
    size_t size = 0;

    uint8_t* take(uintptr_t bytes, unsigned alignment) {
      auto* at = reinterpret_cast<uint8_t*>(
          llvm::alignTo(reinterpret_cast<uintptr_t>(next), std::max(alignment, 1u)));
      PK_CHECK(at + bytes <= begin + size, "sections are larger than LLVM announced");
      next = at + bytes;
      return at;
    }
  };
  llvm::sys::MemoryBlock all_;
  Part code_, constants_, data_;
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
  OneMapping memory_;
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
