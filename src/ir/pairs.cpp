// Building pairs and taking them apart.
#include "ir/pairs.h"

namespace picokernel::ir {

ValueId part_of(Builder& b, ValueId pairs, int part) {
  Module& m = b.module();
  const std::vector<SizeId> shape = m.type(pairs).shape;
  const auto last = static_cast<int32_t>(shape.size() - 1);
  IndexMap map;
  for (int32_t d = 0; d < last; ++d)
    map.dims.push_back({.source = d,
                        .start = m.sizes.constant(0),
                        .step = 1,
                        .extent = shape[static_cast<size_t>(d)]});
  map.picks.push_back({.source = last, .index = m.sizes.constant(part)});
  return b.view(pairs, std::move(map));
}

ValueId make_pairs(Builder& b, ValueId real, ValueId imag, std::vector<SizeId> shape) {
  shape.push_back(b.module().sizes.constant(2));
  const DType dtype = b.module().type(real).dtype;
  const ValueId pairs = b.scratch(dtype, std::move(shape));
  b.write(part_of(b, pairs, 0), real);
  b.write(part_of(b, pairs, 1), imag);
  return b.read(pairs);
}

}  // namespace picokernel::ir
