// The header of an artifact: a line per nest.
#include "backend/cpu/kernel_info.h"

#include <sstream>

#include "support/check.h"

namespace picokernel::backend::cpu {
namespace {

constexpr std::string_view kMagic = "picokernel-cpu-1";

}  // namespace

std::string nest_symbol(const std::string& kernel, size_t nest) {
  return "pk::" + kernel + (nest == 0 ? "" : "." + std::to_string(nest));
}

std::string write_info(const KernelInfo& info) {
  std::ostringstream text;
  text << kMagic << ' ' << info.allocates << ' ' << info.nests.size() << '\n';
  for (const NestInfo& n : info.nests) {
    text << n.nontemporal << ' ' << n.bytes << ' ' << static_cast<uint64_t>(n.picoseconds) << ' '
         << n.loops << ' ' << n.extents.size();
    for (const Extent& e : n.extents) text << ' ' << e.constant << ' ' << e.value;
    text << '\n';
  }
  return std::move(text).str() + '\0';
}

KernelInfo read_info(std::string_view& code) {
  const size_t end = code.find('\0');
  PK_CHECK(code.starts_with(kMagic) && end != code.npos, "not an artifact of the cpu backend");
  std::istringstream text{std::string(code.substr(kMagic.size(), end - kMagic.size()))};
  KernelInfo info;
  size_t count = 0;
  text >> info.allocates >> count;
  for (size_t i = 0; i < count && text; ++i) {
    NestInfo n;
    size_t rank = 0;
    text >> n.nontemporal >> n.bytes >> n.picoseconds >> n.loops >> rank;
    for (size_t d = 0; d < rank && text; ++d) {
      Extent e;
      text >> e.constant >> e.value;
      n.extents.push_back(e);
    }
    info.nests.push_back(std::move(n));
  }
  PK_CHECK(text, "a damaged artifact of the cpu backend");
  code.remove_prefix(end + 1);
  return info;
}

}  // namespace picokernel::backend::cpu
