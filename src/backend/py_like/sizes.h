// Size expressions and views as Python text.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/module.h"

namespace picokernel::backend::py_like {

class Sizes {
 public:
  /// `names` are the parameters' names; each symbol is the shape of a parameter somewhere.
  Sizes(const ir::Module& m, std::span<const std::string> names);

  std::string text(SizeId size) const;
  /// `(a.shape[0], 3)`
  std::string shape(std::span<const SizeId> sizes) const;
  /// For making further expressions, which text() knows too.
  SizeTable& table() { return table_; }

 private:
  std::string operand(SizeId size) const;  // with parentheses where needed

  SizeTable table_;  // the module's, and more
  std::map<uint32_t, std::string> symbols_;
};

// A view, applied in this order: base[index].transpose(order)[axes], then broadcast to a shape.
struct ViewText {
  std::string index;          // without the outer brackets; empty: all of it
  std::vector<size_t> order;  // empty: as it is
  std::string axes;           // None where dimensions are new
  std::string broadcast;      // a shape, if a dimension is repeated
  bool scalar = false;    // every dimension is picked: the index gives one element, not an array
  bool one_index = true;  // `index` alone says it: what an assignment to a device array needs
};
ViewText view_text(Sizes& sizes, const ir::Module& m, const ir::IndexMap& map,
                   const ir::Type& source);
/// `base[1:-1]`; a picked element as an array of rank 0: `base[2, ...]`. `module` spells
/// broadcast_to.
std::string view_of(const std::string& base, const ViewText& view, std::string_view module);

}  // namespace picokernel::backend::py_like
