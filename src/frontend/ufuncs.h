// The facts of ufuncs.def as data, and the builders of those that are no single op.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/promotion.h"
#include "ir/builder.h"

namespace picokernel::frontend {

using Composite = ir::ValueId (*)(ir::Builder&, std::span<const ir::ValueId>, DType);

struct Ufunc {
  std::string_view name;
  int operands;
  Loops loops;
  bool python_operator;
  std::optional<ir::Opcode> opcode;  // else a composite
  Composite composite;
  bool part = false;  // one of a NumPy function's results, under a name of ours
};

/// By NumPy's name, aliases included; null if unknown.
const Ufunc* find_ufunc(std::string_view name);
/// All of NumPy's names, aliases included, sorted.
std::span<const std::string_view> ufunc_names();

// Built on operands that are already of the loop's type, the last argument.
namespace composites {
#define PK_UFUNC(...)
#define PK_COMPOSITE(name, ...) ir::ValueId name(ir::Builder&, std::span<const ir::ValueId>, DType);
#define PK_PART(name, ...) ir::ValueId name(ir::Builder&, std::span<const ir::ValueId>, DType);
#define PK_ALIAS(...)
#include "frontend/ufuncs.def"
#undef PK_UFUNC
#undef PK_COMPOSITE
#undef PK_PART
#undef PK_ALIAS

ir::ValueId number(ir::Builder& b, DType type, double value);
/// `power` with an exponent known at trace time, where NumPy has a loop of its own for it; invalid
/// where it has none.
ir::ValueId static_power(ir::Builder& b, ir::ValueId x, DType type, double exponent);
/// Exact comparison of uint64 `x` with int64 `y`: no type holds both.
ir::ValueId compare_mixed(ir::Builder& b, ir::Opcode comparison, ir::ValueId x, ir::ValueId y);
/// Of x's shape, and true or false whatever x is. x is no float.
ir::ValueId always(ir::Builder& b, bool truth, ir::ValueId x);
}  // namespace composites

}  // namespace picokernel::frontend
