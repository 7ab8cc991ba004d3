// What a parallel body does over its innermost index: what varies, how accesses walk, what it
// costs.
#pragma once

#include <optional>
#include <vector>

#include "backend/cpu/target.h"
#include "ir/module.h"

namespace picokernel::backend::cpu {

// How a value depends on the innermost index.
enum class Variation : uint8_t {
  uniform,   // the same for all points of a row: computed once, before the loop
  affine,    // i64: a uniform start plus index times a uniform step
  periodic,  // i64: the index modulo a constant
  varying,   // a vector
};

struct Variance {
  Variation kind = Variation::uniform;
  std::optional<int64_t> step;  // affine: where it is a known constant; periodic: the period
  bool local = false;           // depends on the turn of a loop in the body: computed where it is
  bool unit() const { return kind == Variation::affine && step == 1; }
};

// Loads or stores of neighbouring elements, which are whole vectors together: every member walks in
// steps of as many elements as there are members, each beside the one before it.
struct Interleaved {
  std::vector<ir::OpId> members;  // by address
  ir::OpId at;                    // the member where all are done: the first load, the last store
};

// Rough costs of one point, for the choice of threads only.
struct PointCost {
  uint32_t bytes = 0;      // loaded and stored, uniform accesses excluded
  double picoseconds = 0;  // on one thread with its data in the nearer caches
  bool loops = false;      // how long a point takes depends on its values
};

struct BodyAnalysis {
  bool vectorised = true;          // masks can do what its regions do
  std::vector<Variance> variance;  // by value; what is not of the body is uniform
  unsigned lanes = 1, units = 1;   // elements of a vector, vectors side by side; 1, 1: scalar code
  bool masked_tail = false;        // else the last elements run as scalar code
  // A body so long that its loops are masked throughout: it is compiled once or twice, not four
  // times.
  bool masked_loops = false;
  bool nontemporal = false;  // has unit-stride stores past the caches
  // Some access is of unit stride in the next outer dimension: the two are walked in tiles.
  bool tiled = false;
  std::vector<Interleaved> interleaved;
  std::vector<ir::OpId> hoisted;  // uniform and affine ops of masked regions that are not local
  PointCost cost;

  const Variance& of(ir::ValueId v) const { return variance[v.value]; }
  /// Null: it stands alone.
  const Interleaved* interleaved_with(ir::OpId access) const;
};

BodyAnalysis analyse(const ir::Module& m, const ir::Op& parallel, const Target& target);

/// Control flow that is more than choosing between values: it holds accesses or a `for`, and runs
/// under masks.
bool runs_masked(const ir::Module& m, const ir::Op& op);

/// Bits of an element in memory and in a vector: bool is a byte.
inline unsigned bits_of(DType t) { return static_cast<unsigned>(size_of(t)) * 8; }

}  // namespace picokernel::backend::cpu
