// Appending ops.
#include "ir/builder.h"

#include "ir/typing.h"
#include "support/check.h"

namespace picokernel::ir {

Builder::Builder(Module& m) : m_(m) {
  if (m.blocks.size() == 0) m.blocks.push({});
}

void Builder::set_location(const Location& location) {
  location_ = location.known() ? m_.locations.push(location) : LocationId{};
}

ValueId Builder::param(const Type& type, std::string name) {
  return block_param(Module::body(), type, std::move(name));
}

ValueId Builder::block_param(BlockId block, const Type& type, std::string name) {
  const ValueId v = m_.values.push(
      {.type = m_.types.intern(type), .op = {}, .block = block, .name = std::move(name)});
  m_.blocks[block].params.push_back(v);
  return v;
}

BlockId Builder::new_block() { return m_.blocks.push({}); }

OpId Builder::op(Opcode opcode, std::vector<ValueId> operands, uint64_t attribute,
                 std::vector<Type> stated) {
  const Inferred inferred = infer(m_, opcode, operands, attribute, stated);
  PK_CHECK(inferred.ok(), inferred.error);
  const OpId id = m_.ops.push({.opcode = opcode,
                               .attribute = attribute,
                               .operands = std::move(operands),
                               .location = location_});
  for (const Type& type : inferred.results)
    m_.ops[id].results.push_back(
        m_.values.push({.type = m_.types.intern(type), .op = id, .block = {}, .name = {}}));
  m_.blocks[block_].ops.push_back(id);
  return id;
}

OpId Builder::op_with_regions(Opcode opcode, std::vector<ValueId> operands,
                              std::vector<BlockId> regions, std::vector<Type> stated) {
  const OpId id = op(opcode, std::move(operands), 0, std::move(stated));
  m_.ops[id].regions = std::move(regions);
  return id;
}

ValueId Builder::constant(Scalar scalar) {
  const OpId id = op(Opcode::constant, {}, scalar.bits, {{.dtype = scalar.dtype}});
  m_.ops[id].scalar_dtype = scalar.dtype;
  return m_.ops[id].results[0];
}

ValueId Builder::size(SizeId size) {
  return value(Opcode::size, {}, size.value, {{.dtype = DType::i64}});
}

ValueId Builder::cast(ValueId v, DType dtype) {
  if (m_.type(v).dtype == dtype) return v;
  return value(Opcode::cast, {v}, 0, {{.dtype = dtype}});
}

ValueId Builder::view(ValueId ref, IndexMap map) {
  const MapId id = m_.maps.push(std::move(map));
  return value(Opcode::view, {ref}, id.value);
}

ValueId Builder::scratch(DType dtype, std::vector<SizeId> shape) {
  return value(Opcode::scratch, {}, 0,
               {{.kind = TypeKind::ref, .dtype = dtype, .shape = std::move(shape)}});
}

void Builder::return_values(std::vector<ValueId> values) {
  m_.results.clear();
  for (const ValueId v : values) m_.results.push_back(m_.values[v].type);
  op(Opcode::return_, std::move(values));
}

}  // namespace picokernel::ir
