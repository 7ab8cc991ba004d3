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

// Checks are what the reference interpreter looks at: indices of each axis.
struct Options {
  FloatMode floats = {};
  bool checks = false;
};

/// The kernel. Its parameters are, for each argument in turn: of an array the pointer, the sizes
/// and, unless it is contiguous, the strides in elements, as i64; of a number itself. Throws
/// CompileError.
ir::Module compile(const Program& program, std::span<const Argument> arguments,
                   const Options& options);

}  // namespace picokernel::frontend::threads
