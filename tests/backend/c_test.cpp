// What the backend c prints, compiled by the compilers at hand without and with optimization and
// under the sanitizer of undefined behaviour, the objects of obj, and what the backend cuda prints,
// compiled for the CPU, against ref bit for bit.
#include <algorithm>
#include <array>

#include "backend/c_testing.h"
#include "backend/edge_values.h"
#include "fuzz/random_graph.h"
#include "passes/legalize/passes.h"

namespace picokernel::c_test {
namespace {

using cpu_test::agrees;
using cpu_test::at;
using cpu_test::Memory;
using cpu_test::number;
using cpu_test::parse;
using testing_values::Case;

class C : public ::testing::TestWithParam<Build> {};
INSTANTIATE_TEST_SUITE_P(With, C, ::testing::ValuesIn(builds()), build_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(C);

bool prints(const Build& build, const ir::Module& m) { return build.backend->check(m).empty(); }

// A file per type.
struct Ops {
  std::vector<Case> cases[kRealDTypeCount];
  Kernels kernels[kRealDTypeCount];
};
const Ops& ops() {
  static const Ops all = [] {
    Ops o;
    for (const Case& c : testing_values::all_cases()) {
      // Half types compute the functions of float32: one shows it.
      if (is_half(c.result) && !ir::is_exact(c.opcode, c.result) && c.opcode != ir::Opcode::exp)
        continue;
      const auto file = static_cast<size_t>(c.types.back());
      o.cases[file].push_back(c);
      o.kernels[file].add(testing_values::elementwise(c.opcode, c.types, c.result));
    }
    return o;
  }();
  return all;
}

TEST_P(C, EveryOpOfEveryType) {
  for (size_t file = 0; file < kRealDTypeCount; ++file) {
    const Library library(ops().kernels[file], GetParam());
    ASSERT_TRUE(library.loaded());
    for (size_t i = 0; i < ops().cases[file].size(); ++i) {
      const Case& c = ops().cases[file][i];
      const std::vector<std::vector<uint64_t>> columns = testing_values::columns_of(c.types);
      const size_t n = columns[0].size();
      std::vector<Memory> memories;
      std::vector<cpu_test::Argument> arguments;
      for (size_t k = 0; k < columns.size(); ++k) {
        memories.emplace_back(c.types[k], n);
        for (size_t j = 0; j < n; ++j) memories[k].set(j, columns[k][j]);
      }
      memories.emplace_back(c.result, n);
      for (size_t k = 0; k < memories.size(); ++k) arguments.push_back(at(static_cast<int>(k)));
      arguments.push_back(number(static_cast<int64_t>(n)));
      Compiled compiled(library, "k" + std::to_string(i));
      const ir::Module expanded = passes::expand_math(ops().kernels[file].modules()[i], {});
      EXPECT_TRUE(agrees(expanded, compiled, memories, arguments))
          << ir::info(c.opcode).name << " " << text_name(c.types.back()) << " -> "
          << text_name(c.result);
    }
  }
}

// Control flow: either sign of a step, values that swap places, conditions of several statements.
constexpr const char* kControl[] = {R"(
kernel @steps(%o: ptr<global, i64>, %from: i64, %to: i64, %step: i64) {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %sum, %count = for %i = %from to %to step %step with %s = %zero, %c = %zero {
    %s1 = add %s, %i
    %c1 = add %c, %one
    yield %s1, %c1
  }
  store %sum, %o[%zero]
  store %count, %o[%one]
})",
                                    R"(
kernel @fibonacci(%o: ptr<global, i64>, %n: i64, %int: i64, %status: i64) {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %a, %b, %c = for %i = %zero to %n step %one with %x = %zero, %y = %one, %z = %n {
    %fmaf = add %x, %y
    yield %y, %fmaf, %x
  }
  %r = sub %a, %c
  store %r, %o[%zero]
  store %b, %o[%one]
})",
                                    R"(
kernel @collatz(%o: ptr<global, i64>, %n: i64, %unused: i64, %table: i64) {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %two = constant 2 : i64
  %three = constant 3 : i64
  store %n, %o[%zero]
  %steps, %last = while with %s = %zero, %first = %n {
    %x = load %o[%zero]
    %more = gt %x, %one
    %y = load %o[%zero]
    %above = ge %y, %one
    %both = and %more, %above
    yield %both
  } do %t, %before {
    %z = load %o[%zero]
    %r = mod %z, %two
    %even = eq %r, %zero
    %next = if %even : i64 {
      %half = floordiv %z, %two
      yield %half
    } else {
      %triple = mul %z, %three
      %up = add %triple, %one
      yield %up
    }
    store %next, %o[%zero]
    if %even {
      store %next, %o[%one]
    }
    %t1 = add %t, %one
    yield %t1, %before
  }
  store %steps, %o[%one]
})",
                                    R"(
kernel @memory(%o: ptr<global, i64>, %n: i64, %m: i64, %k: i64) {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %all = alloc %n : ptr<local, i64>
  parallel %i in %n {
    %row = alloc %m : ptr<local, i32>
    for %j = %zero to %m step %one {
      %v = cast %j : i32
      store %v, %row[%j]
    }
    %sum = for %l = %zero to %m step %one with %s = %zero {
      %u = load %row[%l]
      %w = cast %u : i64
      %t = add %s, %w
      yield %t
    }
    store %sum, %all[%i]
  }
  parallel %p, %q in %n, %one {
    %x = load %all[%p]
    %at = add %p, %q
    store %x, %o[%at]
  }
})"};

TEST_P(C, LoopsAndMemory) {
  Kernels kernels;
  for (const char* text : kControl)
    if (prints(GetParam(), parse(text))) kernels.add(parse(text));
  const Library library(kernels, GetParam());
  ASSERT_TRUE(library.loaded());
  const int64_t least = std::numeric_limits<int64_t>::min(),
                most = std::numeric_limits<int64_t>::max();
  const std::vector<std::array<int64_t, 3>> numbers[] = {
      {{0, 5, 1},
       {21, -1, -7},
       {5, 3, 1},
       {0, 33, 2},
       {1, 9, 0},
       {most - 2, most, 3},
       {least + 2, least, -3},
       {least, most, most}},
      {{0, 0, 0}, {1, 0, 0}, {30, 1, 1}, {100, 2, 3}},
      {{27, 0, 0}, {1, 0, 0}},
      {{0, 4, 0}, {3, 0, 0}, {7, 100, 0}, {16, 1, 5}}};
  for (size_t k = 0; k < kernels.modules().size(); ++k)
    for (const auto& [a, b, c] : numbers[k]) {
      Compiled compiled(library, "k" + std::to_string(k));
      EXPECT_TRUE(agrees(kernels.modules()[k], compiled, {Memory(DType::i64, 16)},
                         {at(0), number(a), number(b), number(c)}))
          << kControl[k] << a << " " << b << " " << c;
    }
}

// Scalars of every type as parameters and as results; constants that literals spell with care.
TEST_P(C, ScalarsOfEveryType) {
  Kernels kernels;
  std::vector<DType> types;
  std::vector<std::vector<uint64_t>> values;
  for (size_t t = 0; t < kRealDTypeCount; ++t) {
    types.push_back(static_cast<DType>(t));
    values.push_back(testing_values::edges(types[t]));
    if (types[t] == DType::f32) values[t].push_back(0xffc12345);
    if (types[t] == DType::f64) values[t].push_back(0x7ff8000000abcdef);
    const std::string name(text_name(types[t]));
    ir::Module m = parse("kernel @f(%o: ptr<global, " + name + ">, %x: " + name +
                         ") {\n  %0 = constant 0 : i64\n  store %x, %o[%0]\n}");
    ir::Builder b(m);
    for (size_t i = 0; i < values[t].size(); ++i) {
      const ir::ValueId v = b.constant({types[t], values[t][i]});
      const ir::ValueId offset = b.constant(ir::Scalar::of(static_cast<int64_t>(i + 1)));
      b.store(v, m.params()[0], offset);
    }
    kernels.add(std::move(m));
  }
  const Library library(kernels, GetParam());
  ASSERT_TRUE(library.loaded());
  for (size_t t = 0; t < kRealDTypeCount; ++t)
    for (const uint64_t x : values[t]) {
      Compiled compiled(library, "k" + std::to_string(t));
      EXPECT_TRUE(agrees(kernels.modules()[t], compiled, {Memory(types[t], values[t].size() + 1)},
                         {at(0), {-1, x}}))
          << text_name(types[t]);
    }
}

TEST_P(C, ResultsAreStored) {
  Kernels kernels;
  kernels.add(parse(R"(
kernel @f(%x: i32, %y: bool) -> (i32, f32, bool) {
  %a = cast %x : f32
  %b = not %y
  return %x, %a, %b
})"));
  const Library library(kernels, GetParam());
  ASSERT_TRUE(library.loaded());
  int32_t a = 0;
  float b = 0;
  uint8_t c = 7;
  const uint64_t params[] = {static_cast<uint64_t>(-3), 1, reinterpret_cast<uint64_t>(&a),
                             reinterpret_cast<uint64_t>(&b), reinterpret_cast<uint64_t>(&c)};
  Compiled(library, "k0").launch(params);
  EXPECT_EQ(a, -3);
  EXPECT_EQ(b, -3.0f);
  EXPECT_EQ(c, 0);
}

TEST_P(C, OneMemoryOfTwoTypes) {
  Kernels kernels;
  kernels.add(parse(R"(
kernel @f(%x: ptr<global, f32>, %y: ptr<global, i32>, %n: i64) {
  %c = constant 1.5 : f32
  %one = constant 1 : i32
  parallel %i in %n {
    store %c, %x[%i]
    %v = load %y[%i]
    %w = add %v, %one
    store %w, %y[%i]
    %z = load %x[%i]
    %q = mul %z, %z
    store %q, %x[%i]
  }
})"));
  const Library library(kernels, GetParam());
  ASSERT_TRUE(library.loaded());
  Compiled compiled(library, "k0");
  EXPECT_TRUE(
      agrees(kernels.modules()[0], compiled, {Memory(DType::f32, 9)}, {at(0), at(0), number(9)}));
}

TEST_P(C, AnyNonZeroByteIsTrue) {
  Kernels kernels;
  kernels.add(testing_values::elementwise(ir::Opcode::not_, {DType::b1}, DType::b1));
  const Library library(kernels, GetParam());
  ASSERT_TRUE(library.loaded());
  const uint8_t x[] = {0, 1, 2, 255};
  uint8_t o[] = {9, 9, 9, 9};
  const uint64_t params[] = {reinterpret_cast<uint64_t>(x), reinterpret_cast<uint64_t>(o), 4};
  Compiled(library, "k0").launch(params);
  EXPECT_EQ(std::vector<uint8_t>(o, o + 4), (std::vector<uint8_t>{1, 0, 0, 0}));
}

TEST_P(C, NoMemoryIsAReturnValue) {
  if (is_cuda(*GetParam().backend)) GTEST_SKIP() << "it prints nothing that allocates";
  Kernels kernels;
  kernels.add(parse(kControl[3]));
  const Library library(kernels, GetParam());
  ASSERT_TRUE(library.loaded());
  const auto f =
      reinterpret_cast<int (*)(int64_t*, int64_t, int64_t, int64_t)>(library.find("pk_k0"));
  int64_t o[4] = {};
  EXPECT_EQ(f(o, 4, 4, 0), 0);
  for (const int64_t count : {int64_t{1} << 62, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(f(o, count, 1, 0), -1);
    EXPECT_EQ(f(o, 4, count, 0), -1);
  }
}

// Graphs, as functions of arrays and sizes: every view that the front ends make.
TEST_P(C, RandomGraphs) {
  constexpr uint64_t kCount = 60;
  Kernels kernels;
  std::vector<fuzz::Program> programs;
  std::vector<uint64_t> seeds;
  for (uint64_t seed = 1; seed <= kCount; ++seed) {
    fuzz::Program program = fuzz::random_program(seed, is_cuda(*GetParam().backend) ? 6 : 24);
    if (!prints(GetParam(), program.graph)) continue;
    kernels.add(program.graph);
    programs.push_back(std::move(program));
    seeds.push_back(seed);
  }
  ASSERT_GT(programs.size(), kCount / 4);
  const Library library(kernels, GetParam());
  ASSERT_TRUE(library.loaded());
  for (size_t k = 0; k < programs.size(); ++k) {
    const ir::Module& graph = programs[k].graph;
    std::vector<backend::RefArray> want = programs[k].arguments;
    std::vector<Memory> memories;
    std::vector<uint64_t> slots;
    const auto add = [&](const backend::RefArray& a) {
      memories.emplace_back(a.dtype, a.elements.size());
      for (size_t i = 0; i < a.elements.size(); ++i) memories.back().set(i, a.elements[i]);
    };
    std::vector<int64_t> symbols(graph.sizes.symbol_count());
    for (size_t i = 0; i < want.size(); ++i) {
      add(want[i]);
      const ir::Type& t = graph.type(graph.params()[i]);
      slots.push_back(t.is_scalar() ? want[i].elements[0] : memories.back().pointer());
      for (size_t d = 0; d < t.shape.size(); ++d)
        if (const SizeNode& size = graph.sizes[t.shape[d]]; size.kind == SizeKind::symbol)
          symbols[static_cast<size_t>(size.constant)] = want[i].shape[d];
    }
    for (const backend::RefArray& a : backend::run_graph(graph, want)) {
      want.push_back(a);
      backend::RefArray none = a;
      std::ranges::fill(none.elements, 0);
      add(none);
      slots.push_back(memories.back().pointer());
    }
    slots.insert(slots.end(), symbols.begin(), symbols.end());
    Compiled(library, "k" + std::to_string(k)).launch(slots.data());
    for (size_t i = 0; i < want.size(); ++i)
      for (size_t j = 0; j < want[i].elements.size(); ++j)
        ASSERT_TRUE(cpu_test::same_value(want[i].dtype, want[i].elements[j], memories[i].get(j)))
            << "seed " << seeds[k] << ", array " << i << ", element " << j << "\n"
            << ir::print(graph);
  }
}

// A product and a sum are never made one, whatever the compiler would do by itself.
TEST_P(C, NothingIsFused) {
  Kernels kernels;
  kernels.add(parse(R"(
kernel @f(%x: ptr<global, f32>, %o: ptr<global, f32>, %n: i64) {
  %c = constant -1.0 : f32
  parallel %i in %n {
    %v = load %x[%i]
    %p = mul %v, %v
    %r = add %p, %c
    store %r, %o[%i]
  }
})"));
  Memory x(DType::f32, 33);
  for (size_t i = 0; i < x.size(); ++i)
    x.set(i, ir::Scalar::of(1.0f + 0x1p-23f * static_cast<float>(i + 1)).bits);
  for (const char* flags : {"", " -std=gnu11"}) {
    Build build = GetParam();
    if (!is_cuda(*build.backend)) build.flags += flags;
    const Library library(kernels, build);
    ASSERT_TRUE(library.loaded());
    Compiled compiled(library, "k0");
    EXPECT_TRUE(agrees(kernels.modules()[0], compiled, {x, Memory(DType::f32, 33)},
                       {at(0), at(1), number(33)}))
        << flags;
  }
}

TEST(CFiles, NamesThatClashAreRefused) {
  const std::vector<ir::Module> kernels = ir::parse(
      "kernel @a__b(%x: ptr<global, f32>) {\n}\nkernel @a_b(%x: ptr<global, f32>) {\n}", "f.pk");
  try {
    driver::find_backend("c")->file(kernels, {});
    FAIL();
  } catch (const CompileError& error) {
    EXPECT_STREQ(error.what(),
                 "kernels @a__b and @a_b would both be pk_a_b in C\n  rename one of them");
  }
}

}  // namespace
}  // namespace picokernel::c_test
