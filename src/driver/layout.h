// How the nests of a graph walk the arrays of one call: loops coalesced and sorted by stride, as
// NumPy's nditer does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "driver/kernel.h"
#include "passes/lower/nests.h"

namespace picokernel::driver {

// An array of the call, by graph parameter or scratch.
struct ArrayLayout {
  std::vector<int64_t> shape, strides;  // strides in elements
};
/// A complex one is laid out as its pairs of reals.
ArrayLayout layout_of(const Arg& array);

struct AccessLayout {
  ir::ValueId root = {};
  int64_t offset = 0;            // of the first point, in elements
  std::vector<int64_t> strides;  // per loop
  bool periodic = false;         // in the innermost one
};
struct NestLayout {
  std::vector<int64_t> extents;  // outermost first; at least one loop
  std::vector<AccessLayout> accesses;
  bool empty = false;                         // some extent is 0
  int64_t period = 0;                         // 0: no access is periodic
  std::vector<passes::Neighbour> neighbours;  // [access]
};

/// `symbols`: the values of the size symbols; `arrays`: the layout of each storage, by its value in
/// the graph.
NestLayout lay_out(const passes::Nests& nests, const passes::Nest& nest,
                   std::span<const int64_t> symbols, const std::vector<ArrayLayout>& arrays);

passes::NestClass classify(const NestLayout& layout);

/// Strides in elements of a fresh array whose axes are ordered in memory as those of the given
/// inputs of the same shape are (NumPy's K order); C order where they do not say.
std::vector<int64_t> k_order_strides(std::span<const int64_t> shape,
                                     std::span<const ArrayLayout* const> inputs);

}  // namespace picokernel::driver
