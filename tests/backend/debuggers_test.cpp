// What gdb and perf find of loaded kernels.
#if defined(PICOKERNEL_HAVE_LLVM) && defined(__linux__)

#include <fstream>
#include <iterator>

#include <dlfcn.h>
#include <elf.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/cpu_testing.h"

namespace picokernel::cpu_test {
namespace {

struct Entry {
  Entry *next, *previous;
  const char* file;
  uint64_t size;
};
struct Descriptor {
  uint32_t version, action;
  Entry *relevant, *first;
};
const Descriptor& descriptor() {
  return *static_cast<const Descriptor*>(dlsym(RTLD_DEFAULT, "__jit_debug_descriptor"));
}

// The address of a function in the ELF file that an entry points to; 0: none.
uint64_t address_in(const Entry& entry, std::string_view name) {
  const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(entry.file);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(entry.file + header.e_shoff);
  for (size_t s = 0; s < header.e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const char* names = entry.file + sections[sections[s].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(entry.file + sections[s].sh_offset);
    for (size_t i = 0; i < sections[s].sh_size / sizeof(Elf64_Sym); ++i)
      if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && names + symbols[i].st_name == name)
        return sections[symbols[i].st_shndx].sh_addr + symbols[i].st_value;
  }
  return 0;
}

uint64_t known_to_gdb(std::string_view name) {
  for (const Entry* e = descriptor().first; e != nullptr; e = e->next) {
    EXPECT_EQ(e->next != nullptr ? e->next->previous : e, e);
    if (const uint64_t address = address_in(*e, name)) return address;
  }
  return 0;
}

std::unique_ptr<runtime::Executable> make(const std::string& name) {
  return compile(parse("kernel @" + name + R"((%x: ptr<global, f32>, %n: i64) {
  parallel %i in %n {
    %v = load %x[%i]
    %w = add %v, %v
    store %w, %x[%i]
  }
})"));
}

TEST(Debuggers, GdbKnowsKernelsWhileTheyAreLoaded) {
  EXPECT_EQ(descriptor().version, 1u);
  EXPECT_EQ(known_to_gdb("pk::first"), 0u);
  auto first = make("first"), second = make("memcpy"), third = make("third");
  const uint64_t address = known_to_gdb("pk::first");
  EXPECT_NE(address, 0u);
  EXPECT_NE(known_to_gdb("pk::memcpy"), 0u);
  second.reset();  // from the middle of the list
  EXPECT_EQ(known_to_gdb("pk::memcpy"), 0u);
  EXPECT_NE(known_to_gdb("pk::third"), 0u);
  EXPECT_EQ(known_to_gdb("pk::first"), address);
  third.reset();
  first.reset();
  EXPECT_EQ(known_to_gdb("pk::first"), 0u);
  EXPECT_EQ(known_to_gdb("pk::third"), 0u);
}

TEST(Debuggers, AForkedChildKnowsThemToo) {
  const auto kept = make("before");
  const pid_t child = fork();
  if (child == 0) {
    const auto made = make("inside");
    _exit(known_to_gdb("pk::before") != 0 && known_to_gdb("pk::inside") != 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(known_to_gdb("pk::inside"), 0u);
}

}  // namespace
}  // namespace picokernel::cpu_test

#endif
