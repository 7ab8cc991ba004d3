// A view of a view is a view of the storage.
#include "ir/rewriter.h"
#include "passes/graph/passes.h"
#include "passes/graph/storage.h"

namespace picokernel::passes {

using namespace ir;

IndexMap composed_map(const Module& m, ValueId ref, SizeTable& sizes) {
  const Op* def = m.def(ref);
  if (def == nullptr || def->opcode != Opcode::view) {
    IndexMap identity;
    const std::vector<SizeId>& shape = m.type(ref).shape;
    for (size_t d = 0; d < shape.size(); ++d)
      identity.dims.push_back({.source = static_cast<int32_t>(d),
                               .start = sizes.constant(0),
                               .step = 1,
                               .extent = shape[d]});
    return identity;
  }
  const IndexMap inner = composed_map(m, def->operands[0], sizes);
  const IndexMap& outer = m.maps[def->map()];
  IndexMap result{.dims = {}, .picks = inner.picks};
  const auto shifted = [&](const DimMap& in,
                           SizeId index) {  // index of `in`'s view -> index of the root
    return sizes.add(in.start, sizes.mul(sizes.constant(in.step), index));
  };
  for (const DimMap& d : outer.dims) {
    if (d.source == DimMap::kNewAxis) {
      result.dims.push_back(d);
      continue;
    }
    const DimMap& in = inner.dims[static_cast<size_t>(d.source)];
    DimMap both{
        .source = in.source, .start = d.start, .step = d.step * in.step, .extent = d.extent};
    if (in.source != DimMap::kNewAxis) both.start = shifted(in, d.start);
    // Of nothing: a start behind the end would mean something else when it is printed.
    if (sizes.as_constant(d.extent) == 0) both = {in.source, sizes.constant(0), 1, d.extent};
    result.dims.push_back(both);
  }
  for (const DimPick& p : outer.picks) {
    const DimMap& in = inner.dims[static_cast<size_t>(p.source)];
    if (in.source != DimMap::kNewAxis) result.picks.push_back({in.source, shifted(in, p.index)});
  }
  return result;
}

Module compose_views(const Module& m, const Target&) {
  return Rewriter(m).run([&](Rewriter& r, OpId id) -> std::optional<std::vector<ValueId>> {
    const Op& op = m.ops[id];
    if (op.opcode != Opcode::view) return std::nullopt;
    const Op* source = m.def(op.operands[0]);
    if (source == nullptr || source->opcode != Opcode::view) return std::nullopt;
    // Ids of sizes stay valid in the new module, to whose table new ones are added.
    IndexMap map = composed_map(m, op.results[0], r.to().sizes);
    return {{r.builder().view(r[root_of(m, op.operands[0])], std::move(map))}};
  });
}

}  // namespace picokernel::passes
