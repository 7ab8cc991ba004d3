// Making names valid and unique.
#include "backend/c_like/names.h"

#include <algorithm>
#include <string>

namespace picokernel::backend::c_like {
namespace {

constexpr std::string_view kKeywords =
    "alignas alignof and asm auto bitand bitor bool break case catch char class compl concept "
    "const consteval constexpr constinit continue decltype default delete do double else enum "
    "explicit export extern false float for friend goto if inline int long mutable namespace new "
    "noexcept not nullptr operator or private protected public register requires restrict return "
    "short signed sizeof static static_assert struct switch template this thread_local throw true "
    "try typedef typename typeof union unsigned using virtual void volatile while xor";

}  // namespace

std::string identifier(std::string_view wish) {
  std::string name;
  for (const char c : wish) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    if (letter || (digit && !name.empty()))
      name += c;
    else if (digit)
      name += std::string("v") + c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  // What headers define: types in _t, and macros in capitals.
  const bool small = std::ranges::any_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
  if (name.ends_with("_t") || (!small && name.size() > 2)) name += "_v";
  return name;
}

Names::Names() { reserve(kKeywords); }

void Names::reserve(std::string_view names) {
  for (size_t end = 0; end != names.npos; names.remove_prefix(end + 1)) {
    end = names.find(' ');
    taken_.emplace(names.substr(0, end));
    if (end == names.npos) break;
  }
}

std::string Names::unique(std::string_view wish) {
  const std::string base = identifier(wish);
  std::string name = base;
  for (size_t i = 1; name.empty() || !taken_.insert(name).second; ++i)
    name = base.empty() ? "v" + std::to_string(next_++) : base + "_" + std::to_string(i);
  return name;
}

}  // namespace picokernel::backend::c_like
