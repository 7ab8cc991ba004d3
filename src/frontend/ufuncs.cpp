// Looking up ufuncs.
#include "frontend/ufuncs.h"

#include <algorithm>

namespace picokernel::frontend {
namespace {

constexpr bool operator_ = true, function = false;

constexpr Ufunc kUfuncs[] = {
#define PK_UFUNC(name, operands, types, opcode, python) \
  {#name, operands, Loops::types, python, ir::Opcode::opcode, nullptr},
#define PK_COMPOSITE(name, operands, types, python) \
  {#name, operands, Loops::types, python, std::nullopt, composites::name},
#define PK_PART(name, operands, types, python) \
  {#name, operands, Loops::types, python, std::nullopt, composites::name, true},
#define PK_ALIAS(...)
#include "frontend/ufuncs.def"
#undef PK_UFUNC
#undef PK_COMPOSITE
#undef PK_PART
#undef PK_ALIAS
};

struct Alias {
  std::string_view alias, name;
};
constexpr Alias kAliases[] = {
#define PK_UFUNC(...)
#define PK_COMPOSITE(...)
#define PK_PART(...)
#define PK_ALIAS(alias, name) {#alias, #name},
#include "frontend/ufuncs.def"
#undef PK_UFUNC
#undef PK_COMPOSITE
#undef PK_PART
#undef PK_ALIAS
};

}  // namespace

const Ufunc* find_ufunc(std::string_view name) {
  for (const Alias& a : kAliases)
    if (a.alias == name) name = a.name;
  for (const Ufunc& u : kUfuncs)
    if (u.name == name) return &u;
  return nullptr;
}

std::span<const std::string_view> ufunc_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list;
    for (const Ufunc& u : kUfuncs)
      if (!u.part) list.push_back(u.name);
    for (const Alias& a : kAliases) list.push_back(a.alias);
    std::ranges::sort(list);
    return list;
  }();
  return names;
}

}  // namespace picokernel::frontend
