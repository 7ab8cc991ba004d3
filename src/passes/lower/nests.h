// Cuts a graph into loop nests, and says how each nest walks memory. Lowering and launching both
// read this one description, so a kernel's parameters and what a launch passes cannot differ.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "ir/module.h"

namespace picokernel::passes {

// A storage seen through a map: one pointer of the kernel. Its base moves with the map's starts and
// picks.
struct Access {
  ir::ValueId ref = {};   // in the graph: a parameter, a scratch or a view of these
  ir::ValueId root = {};  // the parameter or scratch that owns the storage
  ir::IndexMap map;       // from the root's dimensions; its sizes are of Nests::sizes
  bool read = false, written = false;
};

/// The two views of one storage have no element in common: they fix a dimension at different
/// indices.
bool disjoint(const SizeTable& sizes, const ir::IndexMap& a, const ir::IndexMap& b);

// Writes that run in one loop over `shape`, with all that they compute.
struct Nest {
  std::vector<SizeId> shape;
  std::vector<ir::OpId> writes;             // in program order
  std::vector<ir::OpId> reads;              // that the written values depend on, in program order
  std::vector<Access> accesses;             // each (root, map) once, in order of first use
  std::map<ir::ValueId, size_t> access_of;  // ref -> its access
};

// A value that must go through scratch before the graph can be cut: see materialize.
struct Conflict {
  ir::ValueId value = {};  // what to copy
  ir::OpId before = {};    // the copy is made before this op
};
struct Nests {
  std::vector<Nest> nests;
  SizeTable sizes;  // of the graph, with the starts and indices of the accesses' maps
  std::vector<Conflict> conflicts;  // empty after materialize
};

/// Expects a graph without results (after bind_outputs).
/// A write joins the nest before it when the shapes agree and every storage that either of them
/// writes is touched through one map only, or through disjoint ones: then each point depends on
/// itself alone. A read whose storage was written in between, in another nest, is a conflict; so is
/// a write whose value reads its own storage through another map.
Nests find_nests(const ir::Module& graph);

// How an access walks one loop dimension. Only in the innermost: periodic, the index modulo the
// nest's period; two to four, for accesses with neighbours.
enum class Stride : uint8_t { zero, unit, any, periodic, two, three, four };
// An access that stands a few elements beside another one of the same storage and strides.
struct Neighbour {
  size_t leader = 0;  // an access; itself: no neighbour
  int64_t delta = 0;  // elements from the leader, less than the innermost stride
  friend auto operator<=>(const Neighbour&, const Neighbour&) = default;
};
// Loops of one nest after coalescing: outermost first, the innermost is the one to vectorise.
struct NestClass {
  size_t rank = 0;
  std::vector<std::vector<Stride>> strides;  // [access][loop dimension]
  int64_t period = 0;                        // 0: no access is periodic
  std::vector<Neighbour> neighbours = {};    // [access]; empty: none is known
  friend auto operator<=>(const NestClass&, const NestClass&) = default;
};
struct LaunchClass {
  std::vector<NestClass> nests;
  bool nontemporal = false;  // stores past the caches
  friend auto operator<=>(const LaunchClass&, const LaunchClass&) = default;
};
/// The class of contiguous arrays: one loop where all accesses of a nest have its shape, else one
/// per dimension.
LaunchClass contiguous_class(const ir::Module& graph, const std::vector<Nest>& nests);

// The kernel's parameters, in this order, one 8-byte slot each:
//   the graph's scalar parameters;
//   the distinct expressions of its `size` ops, as i64, in order of first use;
//   for each nest: a pointer per access, an i64 extent per loop, then an i64 stride in elements for
//   each (access, loop) of class Stride::any, accesses outermost.
struct NestParams {
  size_t pointers = 0, extents = 0, strides = 0;  // first slots
};
struct KernelParams {
  std::vector<size_t> scalars;  // positions of the scalars among the graph's parameters
  std::vector<SizeId> sizes;    // slots scalars.size() ...
  std::vector<NestParams> nests;
  size_t count = 0;
};
KernelParams kernel_params(const ir::Module& graph, const std::vector<Nest>& nests,
                           const LaunchClass& launch);

}  // namespace picokernel::passes
