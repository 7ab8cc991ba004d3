// Which storage a ref belongs to, and what it shows of it.
#pragma once

#include "ir/module.h"

namespace picokernel::passes {

/// The parameter or scratch value that owns the storage of a ref.
inline ir::ValueId root_of(const ir::Module& m, ir::ValueId ref) {
  while (m.def(ref) != nullptr && m.def(ref)->opcode == ir::Opcode::view)
    ref = m.def(ref)->operands[0];
  return ref;
}

/// The map of a chain of views, from the root's dimensions; of a root itself, all of it. New
/// expressions go to `sizes`, which has those of the module.
ir::IndexMap composed_map(const ir::Module& m, ir::ValueId ref, SizeTable& sizes);

}  // namespace picokernel::passes
