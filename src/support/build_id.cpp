// The build id of the library that this file is linked into: GNU's note in ELF, the UUID in Mach-O.
#include "support/build_id.h"

#include <cstdint>
#include <cstring>
#include <string_view>

#ifdef __APPLE__
#include <dlfcn.h>
#include <mach-o/loader.h>
#else
#include <algorithm>
#include <span>

#include <elf.h>
#include <link.h>
#endif

namespace picokernel {
namespace {

constexpr char kHere = 0;  // an address in this library

std::string hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

#ifdef __APPLE__

std::string find() {
  Dl_info image{};
  if (dladdr(&kHere, &image) == 0) return {};
  const auto* header = static_cast<const mach_header_64*>(image.dli_fbase);
  const auto* at = reinterpret_cast<const char*>(header + 1);
  for (uint32_t i = 0; i < header->ncmds; ++i) {
    const auto* command = reinterpret_cast<const load_command*>(at);
    if (command->cmd == LC_UUID) {
      const auto* uuid = reinterpret_cast<const uuid_command*>(at);
      return hex({reinterpret_cast<const char*>(uuid->uuid), sizeof uuid->uuid});
    }
    at += command->cmdsize;
  }
  return {};
}

#else

std::string id_in_notes(std::string_view notes) {
  constexpr std::string_view kOwner{"GNU", 4};  // with its zero byte
  const auto padded = [](size_t n) { return (n + 3) & ~size_t{3}; };
  ElfW(Nhdr) note;
  while (notes.size() >= sizeof note) {
    std::memcpy(&note, notes.data(), sizeof note);
    notes.remove_prefix(sizeof note);
    const size_t name = padded(note.n_namesz), bytes = padded(note.n_descsz);
    if (notes.size() < name + bytes) break;
    if (note.n_type == NT_GNU_BUILD_ID && notes.substr(0, note.n_namesz) == kOwner)
      return hex(notes.substr(name, note.n_descsz));
    notes.remove_prefix(name + bytes);
  }
  return {};
}

// Of the object that this code is in.
int visit(dl_phdr_info* object, size_t, void* id) {
  const std::span<const ElfW(Phdr)> segments(object->dlpi_phdr, object->dlpi_phnum);
  const auto address = [&](const ElfW(Phdr) & p) { return object->dlpi_addr + p.p_vaddr; };
  const auto is_ours = [&](const ElfW(Phdr) & p) {
    return p.p_type == PT_LOAD && reinterpret_cast<ElfW(Addr)>(&kHere) - address(p) < p.p_memsz;
  };
  if (std::ranges::none_of(segments, is_ours)) return 0;
  auto& found = *static_cast<std::string*>(id);
  for (const ElfW(Phdr) & p : segments)
    if (p.p_type == PT_NOTE && found.empty())
      found = id_in_notes({reinterpret_cast<const char*>(address(p)), p.p_memsz});
  return 1;
}

std::string find() {
  std::string id;
  dl_iterate_phdr(visit, &id);
  return id;
}

#endif

}  // namespace

const std::string& build_id() {
  static const std::string id = find();
  return id;
}

}  // namespace picokernel
