// Making names valid and unique.
#include "backend/py_like/names.h"

#include <algorithm>
#include <cctype>

namespace picokernel::backend::py_like {
namespace {

constexpr std::string_view kKeywords[] = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

}  // namespace

std::string identifier(std::string_view wish) {
  std::string name;
  for (const char c : wish)
    name += std::isalnum(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 128
                ? c
                : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name.insert(0, "_");
  if (std::ranges::find(kKeywords, name) != std::end(kKeywords)) name += "_";
  return name;
}

std::string Names::unique(std::string_view wish) {
  std::string name = identifier(wish);
  while (!taken_.insert(name).second) name += "_";
  return name;
}

std::string Names::temporary(char prefix) {
  while (true) {
    std::string name = prefix + std::to_string(next_[static_cast<size_t>(prefix)]++);
    if (taken_.insert(name).second) return name;
  }
}

}  // namespace picokernel::backend::py_like
