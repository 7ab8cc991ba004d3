// Which storage a ref belongs to.
#pragma once

#include "ir/module.h"

namespace picokernel::passes {

/// The parameter or scratch value that owns the storage of a ref.
inline ir::ValueId root_of(const ir::Module& m, ir::ValueId ref) {
  while (m.def(ref) != nullptr && m.def(ref)->opcode == ir::Opcode::view)
    ref = m.def(ref)->operands[0];
  return ref;
}

}  // namespace picokernel::passes
