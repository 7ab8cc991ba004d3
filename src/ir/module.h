// The container of both levels of the IR: one function with its values, ops, blocks, types and
// sizes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <picokernel/accuracy.h>
#include <picokernel/diagnostic.h>

#include "ir/op.h"
#include "ir/scalar.h"
#include "ir/type.h"

namespace picokernel::ir {

using OpId = Index<struct OpTag>;
using ValueId = Index<struct ValueTag>;
using BlockId = Index<struct BlockTag>;
using MapId = Index<struct MapTag>;
using LocationId = Index<struct LocationTag>;

// One dimension of a view: which dimension of the source it walks, from where, and how far a step
// goes.
struct DimMap {
  static constexpr int32_t kNewAxis = -1;  // a dimension of step 0: newaxis, broadcasting
  int32_t source = kNewAxis;
  SizeId start = {};   // index in the source dimension; unused for kNewAxis
  int64_t step = 1;    // never 0 for a source dimension
  SizeId extent = {};  // of the view
  friend auto operator<=>(const DimMap&, const DimMap&) = default;
};
// `pick` fixes a source dimension at an index (integer indexing).
struct DimPick {
  int32_t source = 0;
  SizeId index = {};
  friend auto operator<=>(const DimPick&, const DimPick&) = default;
};
struct IndexMap {
  std::vector<DimMap> dims;
  std::vector<DimPick> picks;
  friend auto operator<=>(const IndexMap&, const IndexMap&) = default;
};

struct Op {
  Opcode opcode = Opcode::constant;
  DType scalar_dtype = DType::i64;  // attribute scalar: the constant's dtype
  uint64_t attribute = 0;           // scalar: bits; size: SizeId; map: MapId; flag: 0 or 1;
                                    // number: an axis or a count
  std::vector<ValueId> operands = {};
  std::vector<ValueId> results = {};
  std::vector<BlockId> regions = {};
  LocationId location = {};

  Scalar scalar() const { return {scalar_dtype, attribute}; }
  SizeId size() const { return SizeId(attribute); }
  MapId map() const { return MapId(attribute); }
  bool flag() const { return attribute != 0; }
};

struct Value {
  TypeId type = {};
  OpId op = {};        // defining op; invalid for block parameters
  BlockId block = {};  // owning block of a parameter
  std::string name;    // for people only: never carries meaning
};

struct Block {
  std::vector<ValueId> params;
  std::vector<OpId> ops;
};

// A fact that the trace relied on: left (relation) right. Checked at each call; a failed one
// retraces.
enum class Relation : uint8_t { eq, ne, ge };
struct Guard {
  SizeId left = {};
  Relation relation = Relation::eq;
  SizeId right = {};
};

// A weak integer argument meets this dtype somewhere: its value must fit, which each call checks.
struct RangeCheck {
  uint32_t param = 0;
  DType dtype = DType::i64;
  friend bool operator==(const RangeCheck&, const RangeCheck&) = default;
};

// What a front end asks of each call beside the graph itself. Belongs to the module as traced:
// passes drop it, the text does not show it.
struct CallChecks {
  // Scalars computed from Python integers, which have no bounds: they must fit their dtype on the
  // way and this one here.
  struct Integer {
    ValueId value = {};
    DType dtype = DType::i64;
  };
  std::vector<Integer> integers;
  // (read, written): positions of parameters of which the first is read after the second was
  // written, so that one array for both would mean something else than two.
  std::vector<std::pair<uint32_t, uint32_t>> late_reads;
};

using picokernel::Accuracy;

// Sizes and types are tables of the module, so values of two modules never mix. The body is block
// 0; its parameters are the function's.
class Module {
 public:
  std::string name = "kernel";
  Level level = Level::graph;
  FloatMode floats;
  SizeTable sizes;
  TypeTable types;
  std::vector<std::string> symbol_names;  // by symbol number, for people only
  std::vector<TypeId> results;            // graph level: types of what it returns
  std::vector<DType> result_dtypes;       // of a trace: what callers see, complex for pairs
  std::vector<Guard> guards;
  std::vector<RangeCheck> range_checks;
  CallChecks checks;
  std::vector<std::string> notes;  // on the parameters, line by line, for people only
  IndexVector<OpId, Op> ops;
  IndexVector<ValueId, Value> values;
  IndexVector<BlockId, Block> blocks;
  IndexVector<MapId, IndexMap> maps;
  IndexVector<LocationId, Location> locations;

  static constexpr BlockId body() { return BlockId(size_t{0}); }
  std::span<const ValueId> params() const { return blocks[body()].params; }
  const Type& type(ValueId v) const { return types[values[v].type]; }
  const Op* def(ValueId v) const { return values[v].op.valid() ? &ops[values[v].op] : nullptr; }
  Location location(const Op& op) const {
    return op.location.valid() ? locations[op.location] : Location{};
  }
};

/// How a type is written, with this module's names of sizes.
std::string to_string(const Module& m, TypeId type);
std::string to_string(const Module& m, SizeId size);

/// Calls f(OpId) for every op of the block and, before its own regions are left, of the regions
/// inside.
template <class F>
void walk(const Module& m, BlockId block, F&& f) {
  for (const OpId id : m.blocks[block].ops) {
    f(id);
    for (const BlockId region : m.ops[id].regions) walk(m, region, f);
  }
}
template <class F>
void walk(const Module& m, F&& f) {
  walk(m, Module::body(), f);
}

/// The op's operands, and what its regions use of the values around it.
std::vector<ValueId> outer_operands(const Module& m, const Op& op);

/// A kernel that runs for each thread of a grid.
bool is_of_threads(const Module& m);

/// No effect but its results: pure ops, and control flow over nothing else.
bool is_pure(const Module& m, const Op& op);

// A loop's parts by name. Body parameters: the index, then the carried values.
struct ForView {
  const Op& op;
  ValueId from() const { return op.operands[0]; }
  ValueId to() const { return op.operands[1]; }
  ValueId step() const { return op.operands[2]; }
  std::span<const ValueId> inits() const { return std::span(op.operands).subspan(3); }
  BlockId body() const { return op.regions[0]; }
};
struct WhileView {
  const Op& op;
  std::span<const ValueId> inits() const { return op.operands; }
  BlockId condition() const {
    return op.regions[0];
  }  // parameters: the carried values; yields one bool
  BlockId body() const {
    return op.regions[1];
  }  // parameters: the carried values; yields the next ones
};
struct IfView {
  const Op& op;
  ValueId condition() const { return op.operands[0]; }
  BlockId then_block() const { return op.regions[0]; }
  BlockId else_block() const { return op.regions[1]; }
};
// Region parameters: one i64 index per extent, outermost first.
struct ParallelView {
  const Op& op;
  std::span<const ValueId> extents() const { return op.operands; }
  BlockId body() const { return op.regions[0]; }
};

}  // namespace picokernel::ir
