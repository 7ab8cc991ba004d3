// Every elementwise op of every type on the cpu backend, against ir::eval, on edge values.
#ifdef PICOKERNEL_HAVE_LLVM

#include <cfloat>
#include <limits>

#include "backend/cpu_testing.h"
#include "ir/builder.h"
#include "ir/eval.h"
#include "ir/typing.h"

namespace picokernel::cpu_test {
namespace {

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
std::vector<uint64_t> edges(DType t) {
  return ir::visit(t, []<class T>(T*) { return edges_of<T>(); });
}

// o[i] = op(x[i], ...), all of unit stride.
ir::Module elementwise(Opcode opcode, const std::vector<DType>& operands, DType result) {
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

void check(Opcode opcode, const std::vector<DType>& types, DType result) {
  // All pairs of edge values; a third operand walks along.
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
  const size_t n = columns[0].size();
  const ir::Module m = elementwise(opcode, types, result);
  const auto executable = compile(m);

  std::vector<Memory> memories;
  std::vector<uint64_t> params;
  for (size_t c = 0; c < types.size(); ++c) {
    memories.emplace_back(types[c], n);
    for (size_t i = 0; i < n; ++i) memories[c].set(i, columns[c][i]);
  }
  memories.emplace_back(result, n);
  for (const Memory& memory : memories) params.push_back(memory.pointer());
  params.push_back(n);
  executable->launch(params.data());

  for (size_t i = 0; i < n; ++i) {
    Scalar operands[3];
    std::string shown;
    for (size_t c = 0; c < types.size(); ++c) {
      operands[c] = {types[c], columns[c][i]};
      shown += " " + std::to_string(columns[c][i]);
    }
    const Scalar want = ir::eval(opcode, {operands, types.size()}, result);
    ASSERT_TRUE(same_value(result, want.bits, memories.back().get(i)))
        << ir::info(opcode).name << " " << text_name(types.back()) << " -> " << text_name(result)
        << " of bits" << shown << ": " << memories.back().get(i) << ", not " << want.bits;
  }
}

class CpuOps : public ::testing::TestWithParam<const char*> {
  Cap cap_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Isa, CpuOps, ::testing::ValuesIn(kLevels), level_name);

TEST_P(CpuOps, EveryOpOfEveryTypeAgreesWithEval) {
  for (const ir::OpInfo& op : ir::all_ops()) {
    if (!op.elementwise() || op.rule == ir::Rule::explicit_) continue;
    for (size_t t = 0; t < kRealDTypeCount; ++t) {
      const auto dtype = static_cast<DType>(t);
      if (!ir::allows(op.allowed, dtype)) continue;
      std::vector<DType> types(static_cast<size_t>(op.operands), dtype);
      if (op.rule == ir::Rule::select) types[0] = DType::b1;
      const bool yields_bool = op.rule == ir::Rule::compare || op.rule == ir::Rule::test;
      check(op.opcode, types,
            yields_bool                  ? DType::b1
            : op.rule == ir::Rule::count ? DType::u8
                                         : dtype);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(CpuOps, EveryCastAgreesWithEval) {
  for (size_t from = 0; from < kRealDTypeCount; ++from)
    for (size_t to = 0; to < kRealDTypeCount; ++to) {
      if (from == to) continue;
      const auto x = static_cast<DType>(from), y = static_cast<DType>(to);
      check(Opcode::cast, {x}, y);
      if (size_of(x) == size_of(y) && !is_bool(x) && !is_bool(y)) check(Opcode::bitcast, {x}, y);
      if (HasFatalFailure()) return;
    }
}

// The scalar forms: a plain kernel that loads, computes and stores once.
TEST_P(CpuOps, ScalarCodeAgreesToo) {
  for (const char* op : {"floordiv", "mod", "pow", "minimum", "fmax", "add"})
    for (const char* type : {"i8", "i32", "i64", "u16", "u64", "f32", "f64"}) {
      const std::string text = std::string(
                                   "kernel @f(%p: ptr<global, T>, %n: i64) {\n  %0 = constant 0 : "
                                   "i64\n  %1 = constant 1 : i64\n") +
                               "  for %i = %0 to %n step %1 {\n    %j = add %i, %n\n    %k = add "
                               "%j, %n\n    %x = load %p[%i]\n    %y = load %p[%j]\n" +
                               "    %r = " + op + " %x, %y\n    store %r, %p[%k]\n  }\n}\n";
      std::string typed = text;
      typed.replace(typed.find("T>"), 1, type);
      const ir::Module m = parse(typed);
      const auto executable = compile(m);
      const DType t = *dtype_from_text(type);
      const std::vector<uint64_t> e = edges(t);
      const size_t n = e.size() * e.size();
      Memory memory(t, 3 * n);
      for (size_t i = 0; i < n; ++i) {
        memory.set(i, e[i / e.size()]);
        memory.set(n + i, e[i % e.size()]);
      }
      EXPECT_TRUE(agrees(m, *executable, {memory}, {at(0), number(static_cast<int64_t>(n))}))
          << op << " " << type;
    }
}

// A divisor that is the same for all, known only at launch or a constant, takes other paths.
TEST_P(CpuOps, UniformDivisors) {
  for (const char* type : {"i8", "i32", "i64", "u8", "u32", "f32"})
    for (const char* op : {"floordiv", "mod"})
      for (const char* literal : {"0", "1", "7", "100"}) {
        std::string text = std::string(
                               "kernel @f(%x: ptr<global, T>, %o: ptr<global, T>, %q: ptr<global, "
                               "T>, %d: T, %n: i64) {\n") +
                           "  %c = constant L : T\n  parallel %i in %n {\n    %v = load %x[%i]\n" +
                           "    %r = " + op + " %v, %c\n    %s = " + op +
                           " %v, %d\n    store %r, %o[%i]\n    store %s, %q[%i]\n  }\n}\n";
        for (size_t at; (at = text.find('T')) != text.npos;) text.replace(at, 1, type);
        for (size_t at; (at = text.find('L')) != text.npos;) text.replace(at, 1, literal);
        const ir::Module m = parse(text);
        const auto executable = compile(m);
        const DType t = *dtype_from_text(type);
        const std::vector<uint64_t> e = edges(t);
        Memory x(t, e.size());
        for (size_t i = 0; i < e.size(); ++i) x.set(i, e[i]);
        const std::vector<Memory> memories = {x, Memory(t, e.size()), Memory(t, e.size())};
        for (const uint64_t d : e)
          EXPECT_TRUE(
              agrees(m, *executable, memories,
                     {at(0), at(1), at(2), {-1, d}, number(static_cast<int64_t>(e.size()))}))
              << text << " by bits " << d;
      }
}

TEST(CpuSemantics, NothingIsFused) {
  const ir::Module m = parse(R"(
kernel @f(%x: ptr<global, f32>, %o: ptr<global, f32>, %n: i64) {
  parallel %i in %n {
    %v = load %x[%i]
    %p = mul %v, %v
    %c = constant -1.0 : f32
    %r = add %p, %c
    store %r, %o[%i]
  }
})");
  const auto executable = compile(m);
  Memory x(DType::f32, 33);
  for (size_t i = 0; i < x.size(); ++i)
    x.set(i, Scalar::of(1.0f + FLT_EPSILON * static_cast<float>(i + 1)).bits);
  EXPECT_TRUE(agrees(m, *executable, {x, Memory(DType::f32, 33)}, {at(0), at(1), number(33)}));
}

TEST(CpuSemantics, AnyNonZeroByteIsTrue) {
  const ir::Module m = parse(R"(
kernel @f(%x: ptr<global, bool>, %o: ptr<global, bool>, %n: i64) {
  parallel %i in %n {
    %v = load %x[%i]
    store %v, %o[%i]
  }
})");
  const auto executable = compile(m);
  for (const int64_t n : {1, 5, 300}) {
    std::vector<uint8_t> x(static_cast<size_t>(n)), o(static_cast<size_t>(n), 7);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(i * 5 % 4 == 0 ? 0 : i);
    const uint64_t params[] = {reinterpret_cast<uint64_t>(x.data()),
                               reinterpret_cast<uint64_t>(o.data()), static_cast<uint64_t>(n)};
    executable->launch(params);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(o[i], x[i] != 0) << i;
  }
}

}  // namespace
}  // namespace picokernel::cpu_test

#endif  // PICOKERNEL_HAVE_LLVM
