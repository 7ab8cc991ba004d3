// Edge values of every type, and kernels of one op.
#pragma once

#include <limits>
#include <vector>

#include "ir/builder.h"
#include "ir/eval.h"
#include "ir/typing.h"

namespace picokernel::testing_values {

using ir::Opcode;
using ir::Scalar;

template <class T>
std::vector<uint64_t> edges_of() {
  std::vector<uint64_t> list;
  const auto add = [&](auto v) { list.push_back(Scalar::of(static_cast<T>(v)).bits); };
  if constexpr (std::is_same_v<T, bool>) {
    add(false), add(true);
  } else if constexpr (ir::is_half_type<T>) {
    for (const uint64_t bits : edges_of<float>()) {
      const float v = Scalar{DType::f32, bits}.as<float>();
      add(v), add(v * 0x1p-112f);
    }
    for (const uint16_t bits : {1, 0x3ff, 0x400, 0x7bff, 0x7f, 0x80, 0x7f7f, 0x3c01})
      list.push_back(bits), list.push_back(bits | 0x8000u);
  } else if constexpr (std::is_floating_point_v<T>) {
    using L = std::numeric_limits<T>;
    for (const T v : {T(0),
                      T(0.5),
                      T(1),
                      T(1.5),
                      T(2.5),
                      T(3),
                      T(7.25),
                      T(100.7),
                      T(255.5),
                      T(32768),
                      T(2147483647.0),
                      T(2147483648.0),
                      T(4294967296.0),
                      T(9223372036854775807.0),
                      T(1.8446744073709552e19),
                      T(1e-3),
                      T(1e10),
                      L::denorm_min(),
                      L::min(),
                      L::max(),
                      L::infinity()}) {
      add(v);
      add(-v);
    }
    add(L::quiet_NaN());
  } else {
    using L = std::numeric_limits<T>;
    for (const int v : {0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 100}) {
      add(v);
      add(-v);
    }
    add(L::min()), add(L::min() + 1), add(L::max()), add(L::max() - 1), add(L::max() / 3);
  }
  return list;
}
inline std::vector<uint64_t> edges(DType t) {
  return ir::visit(t, []<class T>(T*) { return edges_of<T>(); });
}

// o[i] = op(x[i], ...), all of unit stride.
inline ir::Module elementwise(Opcode opcode, const std::vector<DType>& operands, DType result) {
  ir::Module m;
  m.level = ir::Level::kernel;
  ir::Builder b(m);
  const auto pointer = [&](DType t) { return b.param({.kind = ir::TypeKind::ptr, .dtype = t}); };
  std::vector<ir::ValueId> inputs, values;
  for (const DType t : operands) inputs.push_back(pointer(t));
  const ir::ValueId out = pointer(result), n = b.param({.dtype = DType::i64});
  const ir::BlockId body = b.new_block();
  const ir::ValueId i = b.block_param(body, {.dtype = DType::i64});
  b.set_insertion_block(body);
  for (const ir::ValueId p : inputs) values.push_back(b.load(p, i));
  b.store(b.value(opcode, values, 0, {{.dtype = result}}), out, i);
  b.set_insertion_block(ir::Module::body());
  b.op_with_regions(Opcode::parallel, {n}, {body});
  return m;
}

// All pairs of edge values; a third operand walks along.
inline std::vector<std::vector<uint64_t>> columns_of(const std::vector<DType>& types) {
  std::vector<std::vector<uint64_t>> columns(types.size());
  const std::vector<uint64_t> first = edges(types[0]),
                              second = edges(types.size() > 1 ? types[1] : types[0]),
                              third = edges(types.back());
  size_t k = 0;
  for (const uint64_t x : first)
    for (size_t j = 0; j < (types.size() > 1 ? second.size() : 1); ++j, ++k) {
      columns[0].push_back(x);
      if (types.size() > 1) columns[1].push_back(second[j]);
      if (types.size() > 2) columns[2].push_back(third[k * 7 % third.size()]);
    }
  return columns;
}

// An op on operands of these types.
struct Case {
  Opcode opcode;
  std::vector<DType> types;
  DType result;
};

/// Every elementwise op of every type, and every cast and bitcast.
inline std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const ir::OpInfo& op : ir::all_ops()) {
    if (!op.elementwise() || op.rule == ir::Rule::explicit_) continue;
    for (size_t t = 0; t < kRealDTypeCount; ++t) {
      const auto dtype = static_cast<DType>(t);
      if (!ir::allows(op.allowed, dtype)) continue;
      std::vector<DType> types(static_cast<size_t>(op.operands), dtype);
      if (op.rule == ir::Rule::select) types[0] = DType::b1;
      const bool yields_bool = op.rule == ir::Rule::compare || op.rule == ir::Rule::test;
      cases.push_back({op.opcode, types,
                       yields_bool                  ? DType::b1
                       : op.rule == ir::Rule::count ? DType::u8
                                                    : dtype});
    }
  }
  for (size_t from = 0; from < kRealDTypeCount; ++from)
    for (size_t to = 0; to < kRealDTypeCount; ++to) {
      if (from == to) continue;
      const auto x = static_cast<DType>(from), y = static_cast<DType>(to);
      cases.push_back({Opcode::cast, {x}, y});
      if (size_of(x) == size_of(y) && !is_bool(x) && !is_bool(y))
        cases.push_back({Opcode::bitcast, {x}, y});
    }
  return cases;
}

}  // namespace picokernel::testing_values
