// What both interpreters of kernels do alike: ops on scalars, and elements in memory.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "ir/eval.h"
#include "ir/module.h"

namespace picokernel::backend {

/// Constants and elementwise ops; false: another op. `values`: bits by number of the value.
inline bool compute(const ir::Module& m, const ir::Op& op, uint64_t* values) {
  if (op.opcode == ir::Opcode::constant) {
    values[op.results[0].value] = op.scalar().bits;
    return true;
  }
  if (!ir::info(op.opcode).elementwise()) return false;
  ir::Scalar operands[3];
  for (size_t i = 0; i < op.operands.size(); ++i)
    operands[i] = {m.type(op.operands[i]).dtype, values[op.operands[i].value]};
  const DType to = m.type(op.results[0]).dtype;
  values[op.results[0].value] = eval(op.opcode, {operands, op.operands.size()}, to).bits;
  return true;
}

inline uint64_t load_element(DType dtype, const std::byte* from) {
  return ir::visit(dtype, [&]<class T>(T*) -> uint64_t {
    std::conditional_t<std::is_same_v<T, bool>, uint8_t, T> v;
    std::memcpy(&v, from, sizeof v);
    if constexpr (std::is_same_v<T, bool>)
      return v != 0;
    else
      return ir::Scalar::of(v).bits;
  });
}

inline void store_element(DType dtype, uint64_t bits, std::byte* to) {
  ir::visit(dtype, [&]<class T>(T*) {
    const T v = ir::Scalar{dtype, bits}.as<T>();
    std::memcpy(to, &v, sizeof v);
  });
}

}  // namespace picokernel::backend
