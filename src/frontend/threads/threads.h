// The front end of thread kernels: from the syntax tree of a function and the types of its
// arguments to kernel-level IR. Typing, semantics and every user error are here; Python only hands
// over the tree.
#pragma once

#include <span>
#include <string>

#include "frontend/threads/tree.h"

namespace picokernel::frontend::threads {

// What a kernel is compiled for: equal ones may share it.
struct Argument {
  enum class Kind : uint8_t { array, number };
  Kind kind = Kind::array;
  DType dtype = DType::f32;
  bool weak = false;        // a Python number
  uint8_t rank = 0;         // array
  bool contiguous = false;  // array: in C order, so that strides follow from sizes
  friend auto operator<=>(const Argument&, const Argument&) = default;
};

// Checks are what the reference interpreter looks at: indices of each axis. A guarded kernel
// reports failed assertions, what is raised and, where there are no checks, indices out of bounds;
// the access is left out.
struct Options {
  FloatMode floats = {};
  bool checks = false, guards = false;
};

// What a guarded kernel may report, by its place in a list.
struct Site {
  Location where = {};
  std::string exception = {};  // Python's class; empty: an index
  std::string message = {};
  std::string array = {};  // of an index
  size_t axis = 0;
};

// The last parameter of a guarded kernel is a pointer to these i64: the least of the keys reported,
// then one of those keys with the index and the size that belong to it. A key is the number of the
// thread in the grid, x fastest, times kMaxSites, plus the site.
inline constexpr int64_t kMaxSites = int64_t{1} << 16;
enum ReportSlot : int64_t { kLeastKey, kClaimedKey, kIndex, kSize, kReportSlots };

/// The kernel, and into `sites` what it may report. Its parameters are, for each argument in turn:
/// of an array the pointer, the sizes and, unless it is contiguous, the strides in elements, as
/// i64; of a number itself. Throws CompileError.
ir::Module compile(const Program& program, std::span<const Argument> arguments,
                   const Options& options, std::vector<Site>* sites = nullptr);

}  // namespace picokernel::frontend::threads
