// Rebuilding modules.
#include "ir/rewriter.h"

#include "support/check.h"

namespace picokernel::ir {

// Tables of sizes, types and maps are copied whole: ids of these stay valid in the new module.
Rewriter::Rewriter(const Module& from)
    : from_(from), builder_((to_.blocks.push({}), to_)), values_(from.values.size()) {
  to_.name = from.name;
  to_.level = from.level;
  to_.floats = from.floats;
  to_.sizes = from.sizes;
  to_.types = from.types;
  to_.symbol_names = from.symbol_names;
  to_.results = from.results;
  to_.guards = from.guards;
  to_.range_checks = from.range_checks;
  to_.notes = from.notes;
  to_.maps = from.maps;
  to_.locations = from.locations;
}

std::vector<ValueId> Rewriter::mapped(std::span<const ValueId> old) const {
  std::vector<ValueId> list;
  list.reserve(old.size());
  for (const ValueId v : old) {
    PK_CHECK(values_[v.value].valid(), "a pass uses a value that it has not rebuilt");
    list.push_back(values_[v.value]);
  }
  return list;
}

std::vector<ValueId> Rewriter::copy(OpId id, const Visit& visit) {
  const Op& op = from_.ops[id];
  std::vector<BlockId> regions;
  for (const BlockId region : op.regions) {
    const BlockId outer = builder_.insertion_block();
    regions.push_back(builder_.new_block());
    builder_.set_insertion_block(regions.back());
    for (const ValueId p : from_.blocks[region].params)
      map(p, builder_.block_param(regions.back(), from_.type(p), from_.values[p].name));
    walk(region, visit);
    builder_.set_insertion_block(outer);
  }
  std::vector<Type> stated;
  for (const ValueId r : op.results) stated.push_back(from_.type(r));
  builder_.set_location(op.location);
  const OpId made = builder_.op(op.opcode, mapped(op.operands), op.attribute, std::move(stated));
  to_.ops[made].regions = std::move(regions);
  to_.ops[made].scalar_dtype = op.scalar_dtype;
  return to_.ops[made].results;
}

void Rewriter::walk_op(OpId id, const Visit& visit) {
  builder_.set_location(from_.ops[id].location);
  std::optional<std::vector<ValueId>> results;
  if (visit) results = visit(*this, id);
  if (!results) results = copy(id, visit);
  const std::vector<ValueId>& old = from_.ops[id].results;
  PK_CHECK(results->size() == old.size(), "a pass gives an op the wrong number of results");
  for (size_t i = 0; i < old.size(); ++i) {
    map(old[i], (*results)[i]);
    if (!(*results)[i].valid()) continue;  // removed: nothing uses it
    std::string& name = to_.values[(*results)[i]].name;
    if (name.empty()) name = from_.values[old[i]].name;
  }
}

void Rewriter::walk(BlockId block, const Visit& visit) {
  for (const OpId id : from_.blocks[block].ops) walk_op(id, visit);
}

std::vector<ValueId> Rewriter::splice(BlockId region, const Visit& visit) {
  for (const OpId id : from_.blocks[region].ops) {
    if (from_.ops[id].opcode == Opcode::yield) return mapped(from_.ops[id].operands);
    walk_op(id, visit);
  }
  return {};
}

Module Rewriter::run(const Visit& visit) {
  for (const ValueId p : from_.params())
    map(p, builder_.param(from_.type(p), from_.values[p].name));
  walk(Module::body(), visit);
  return std::move(to_);
}

Module substitute_sizes(const Module& m,
                        const std::function<SizeId(SizeTable&, uint32_t)>& replacement,
                        std::vector<std::string> names) {
  Module out = m;
  out.sizes = {};
  out.types = {};
  out.symbol_names = std::move(names);
  std::vector<SizeId> symbols;
  for (uint32_t s = 0; s < m.sizes.symbol_count(); ++s)
    symbols.push_back(replacement(out.sizes, s));
  const auto size = [&](SizeId id) { return out.sizes.import(m.sizes, id, symbols); };
  const auto type = [&](TypeId id) {
    Type t = m.types[id];
    for (SizeId& s : t.shape) s = size(s);
    return out.types.intern(t);
  };
  for (size_t i = 0; i < out.values.size(); ++i)
    out.values[ValueId(i)].type = type(m.values[ValueId(i)].type);
  for (TypeId& t : out.results) t = type(t);
  for (Guard& g : out.guards) {
    g.left = size(g.left);
    g.right = size(g.right);
  }
  for (size_t i = 0; i < out.ops.size(); ++i) {
    Op& op = out.ops[OpId(i)];
    if (info(op.opcode).attribute == Attribute::size) op.attribute = size(op.size()).value;
  }
  for (size_t i = 0; i < out.maps.size(); ++i) {
    IndexMap& map = out.maps[MapId(i)];
    for (DimMap& d : map.dims) {
      if (d.start.valid()) d.start = size(d.start);
      d.extent = size(d.extent);
    }
    for (DimPick& p : map.picks) p.index = size(p.index);
  }
  return out;
}

}  // namespace picokernel::ir
