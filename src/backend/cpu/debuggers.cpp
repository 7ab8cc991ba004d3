// gdb's JIT interface and perf's map files.
#include "backend/cpu/debuggers.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <llvm/Object/SymbolSize.h>
#include <unistd.h>

#include <picokernel/diagnostic.h>

#include "runtime/fork.h"

// Names and layouts are those of gdb's gdb/jit.h. gdb stops at the function and reads the list.
extern "C" {

struct jit_code_entry {
  jit_code_entry* next_entry;
  jit_code_entry* prev_entry;
  const char* symfile_addr;
  uint64_t symfile_size;
};
enum : uint32_t { JIT_NOACTION, JIT_REGISTER_FN, JIT_UNREGISTER_FN };
struct jit_descriptor {
  uint32_t version;
  uint32_t action_flag;
  jit_code_entry* relevant_entry;
  jit_code_entry* first_entry;
};

// Visible in stripped libraries too; protected: another compiler's in the process are others.
__attribute__((visibility("protected"))) jit_descriptor __jit_debug_descriptor = {1, JIT_NOACTION,
                                                                                  nullptr, nullptr};
__attribute__((visibility("protected"), noinline)) void __jit_debug_register_code() {
  __asm__ volatile("" ::: "memory");
}
}

namespace picokernel::backend::cpu {

namespace {

bool wants_perf_map() {
  static const std::string value = [] {
    const char* text = std::getenv("PICOKERNEL_PERF");
    return std::string(text != nullptr ? text : "");
  }();
  if (value.empty() || value == "map") return !value.empty();
  throw LaunchError(Diagnostic{.message = "PICOKERNEL_PERF is '" + value + "'",
                               .notes = {"it takes 'map': names of kernels for perf report"}});
}

// What debuggers know, under a lock. A forked child has the code, and a map file of its own.
class Registry {
 public:
  void add(jit_code_entry& entry, const std::vector<std::string>& lines) {
    const std::lock_guard lock(mutex_);
    entry.prev_entry = nullptr;
    entry.next_entry = __jit_debug_descriptor.first_entry;
    if (entry.next_entry != nullptr) entry.next_entry->prev_entry = &entry;
    __jit_debug_descriptor.first_entry = &entry;
    tell(entry, JIT_REGISTER_FN);
    append(lines);
    lines_.insert(lines_.end(), lines.begin(), lines.end());
  }
  void remove(jit_code_entry& entry, const std::vector<std::string>& lines) {
    const std::lock_guard lock(mutex_);
    (entry.prev_entry != nullptr ? entry.prev_entry->next_entry
                                 : __jit_debug_descriptor.first_entry) = entry.next_entry;
    if (entry.next_entry != nullptr) entry.next_entry->prev_entry = entry.prev_entry;
    tell(entry, JIT_UNREGISTER_FN);
    for (const std::string& line : lines) std::erase(lines_, line);
  }

 private:
  static void tell(jit_code_entry& entry, uint32_t action) {
    __jit_debug_descriptor.relevant_entry = &entry;
    __jit_debug_descriptor.action_flag = action;
    __jit_debug_register_code();
    __jit_debug_descriptor.action_flag = JIT_NOACTION;
    __jit_debug_descriptor.relevant_entry = nullptr;
  }
  // A map that cannot be written costs names only.
  static void append(const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    const std::string name = "/tmp/perf-" + std::to_string(getpid()) + ".map";
    std::FILE* file = std::fopen(name.c_str(), "ae");
    if (file == nullptr) return;
    for (const std::string& line : lines) std::fputs(line.c_str(), file);
    std::fclose(file);
  }
  void in_child() {
    append(lines_);
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::vector<std::string> lines_;  // of perf's map
  runtime::ForkRegistration fork_registration_{
      runtime::ForkStage::compile,
      {this, [](void* self) { static_cast<Registry*>(self)->mutex_.lock(); },
       [](void* self) { static_cast<Registry*>(self)->mutex_.unlock(); },
       [](void* self) { static_cast<Registry*>(self)->in_child(); }}};
};

// Never destroyed: kernels may be dropped at exit.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

}  // namespace

void let_debuggers_fork() { registry(); }

namespace {

std::vector<std::string> perf_lines(const llvm::object::ObjectFile& object) {
  std::vector<std::string> lines;
  for (const auto& [symbol, size] : llvm::object::computeSymbolSizes(object)) {
    auto type = symbol.getType();
    auto name = symbol.getName();
    auto address = symbol.getAddress();
    if (!type || !name || !address) {
      llvm::consumeError(type.takeError());
      llvm::consumeError(name.takeError());
      llvm::consumeError(address.takeError());
      continue;
    }
    if (*type != llvm::object::SymbolRef::ST_Function) continue;
    char numbers[40];
    std::snprintf(numbers, sizeof numbers, "%" PRIx64 " %" PRIx64 " ", *address, size);
    lines.push_back(numbers + name->str() + "\n");
  }
  return lines;
}

}  // namespace

struct KnownToDebuggers::Registered {
  llvm::object::OwningBinary<llvm::object::ObjectFile> object;  // with the sections' addresses
  std::vector<std::string> lines;
  jit_code_entry entry{};
};

KnownToDebuggers::KnownToDebuggers(const llvm::object::ObjectFile& object,
                                   const llvm::RuntimeDyld::LoadedObjectInfo& loaded) {
  auto made = std::make_unique<Registered>();
  made->object = loaded.getObjectForDebug(object);
  const llvm::object::ObjectFile* found = made->object.getBinary();
  if (found == nullptr) return;
  if (wants_perf_map()) made->lines = perf_lines(*found);
  made->entry.symfile_addr = found->getData().data();
  made->entry.symfile_size = found->getData().size();
  registry().add(made->entry, made->lines);
  registered_ = std::move(made);
}

KnownToDebuggers::~KnownToDebuggers() {
  if (registered_ != nullptr) registry().remove(registered_->entry, registered_->lines);
}

}  // namespace picokernel::backend::cpu
