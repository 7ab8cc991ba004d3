// The type rules of ops.def, used by the builder, the parser and the verifier alike.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ir/module.h"

namespace picokernel::ir {

// What an op with these operands gives: result types, or what is wrong in one sentence.
struct Inferred {
  std::vector<Type> results;
  std::string error;
  bool ok() const { return error.empty(); }
};

/// Result types by the op's rule. Ops of rule explicit_ are checked against `stated` and give it
/// back; region ops (for, while, if) take their results from the operands or, for if, from
/// `stated`.
Inferred infer(Module& m, Opcode opcode, std::span<const ValueId> operands, uint64_t attribute,
               std::span<const Type> stated);

/// NumPy's broadcast of two shapes, where sizes are equal only if they are the same expression;
/// empty error when fine.
bool broadcast(const Module& m, std::span<const SizeId> a, std::span<const SizeId> b,
               std::vector<SizeId>& out);

bool allows(Allowed allowed, DType dtype);
/// "a floating-point type", ... for messages.
std::string_view describe(Allowed allowed);

}  // namespace picokernel::ir
