// Bytes and operations of a graph, as size expressions.
#pragma once

#include "ir/module.h"

namespace picokernel::ir {

// Evaluated with the sizes of a call. Bytes: each array read or written counts once, at the extent
// of its view.
struct Cost {
  SizeTable sizes;
  SizeId bytes_read = {}, bytes_written = {}, operations = {};
};
Cost cost(const Module& graph);

}  // namespace picokernel::ir
