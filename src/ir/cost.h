// Bytes and operations of a graph, as size expressions.
#pragma once

#include "ir/module.h"

namespace picokernel::ir {

// Evaluated with the sizes of a call. Bytes: each array read or written counts once, at the extent
// of its view.
struct Cost {
  struct Operation {
    Opcode opcode;
    DType dtype;  // of the first operand
    SizeId elements;
  };
  SizeTable sizes;
  SizeId bytes_read = {}, bytes_written = {};
  std::vector<Operation> operations;  // elementwise ones, in order
};
Cost cost(const Module& graph);

}  // namespace picokernel::ir
