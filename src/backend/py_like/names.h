// Python identifiers: valid and unique within one printed function.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace picokernel::backend::py_like {

class Names {
 public:
  /// Marks a name as taken by what the source is run with.
  void reserve(std::string_view name) { taken_.emplace(name); }
  /// The wish with characters replaced that Python would refuse, made unique by underscores behind
  /// it.
  std::string unique(std::string_view wish);
  /// The next of t0, t1, ... that is free; each prefix counts for itself.
  std::string temporary(char prefix);

 private:
  std::set<std::string, std::less<>> taken_;
  size_t next_[128] = {};
};

/// The wish as a valid identifier; not a keyword.
std::string identifier(std::string_view wish);

}  // namespace picokernel::backend::py_like
