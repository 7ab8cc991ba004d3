// Identifiers of the C family: valid and unique within one printed function.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace picokernel::backend::c_like {

/// Letters, digits and single underscores; starts with a letter.
std::string identifier(std::string_view wish);

class Names {
 public:
  /// Without the keywords of C and C++.
  Names();
  /// Takes these names away; a space stands between them.
  void reserve(std::string_view names);
  /// The wish as an identifier, with a number behind it if it is taken; without one: v0, v1, ...
  std::string unique(std::string_view wish);

 private:
  std::set<std::string, std::less<>> taken_;
  size_t next_ = 0;
};

}  // namespace picokernel::backend::c_like
