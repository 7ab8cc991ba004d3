// Every elementwise op of every type on the cpu backend, against ir::eval, on edge values.
// Functions whose last digits are the target's, against what ref makes of their expansion.
#ifdef PICOKERNEL_HAVE_LLVM

#include <cfloat>

#include "backend/cpu_testing.h"
#include "backend/edge_values.h"
#include "ir/eval.h"
#include "ir/typing.h"
#include "passes/legalize/passes.h"

namespace picokernel::cpu_test {
namespace {

using ir::Opcode;
using ir::Scalar;
using testing_values::all_cases;
using testing_values::Case;
using testing_values::columns_of;
using testing_values::edges;
using testing_values::elementwise;

void check(Opcode opcode, const std::vector<DType>& types, DType result) {
  const std::vector<std::vector<uint64_t>> columns = columns_of(types);
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
  const Memory got = memories.back();
  const bool exact = ir::is_exact(opcode, result);
  if (!exact) backend::run_kernel(passes::expand_math(m, {}), params);

  for (size_t i = 0; i < n; ++i) {
    Scalar operands[3];
    std::string shown;
    for (size_t c = 0; c < types.size(); ++c) {
      operands[c] = {types[c], columns[c][i]};
      shown += " " + std::to_string(columns[c][i]);
    }
    const uint64_t want =
        exact ? ir::eval(opcode, {operands, types.size()}, result).bits : memories.back().get(i);
    ASSERT_TRUE(same_value(result, want, got.get(i)))
        << ir::info(opcode).name << " " << text_name(types.back()) << " -> " << text_name(result)
        << " of bits" << shown << ": " << got.get(i) << ", not " << want;
  }
}

class CpuOps : public ::testing::TestWithParam<const char*> {
  Cap cap_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Isa, CpuOps, ::testing::ValuesIn(kLevels), level_name);

TEST_P(CpuOps, EveryOpOfEveryTypeAgreesWithEval) {
  for (const Case& c : all_cases()) {
    check(c.opcode, c.types, c.result);
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
      EXPECT_TRUE(agrees(passes::expand_math(m, {}), *executable, {memory},
                         {at(0), number(static_cast<int64_t>(n))}))
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
