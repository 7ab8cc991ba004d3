// Loops of the cpu backend against ref: tails, alignments, strides, streaming, threads, control
// flow.
#ifdef PICOKERNEL_HAVE_LLVM

#include <thread>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/cpu/compile.h"
#include "backend/cpu_testing.h"
#include "runtime/thread_pool.h"

namespace picokernel::cpu_test {
namespace {

std::string replace(std::string_view text,
                    std::initializer_list<std::pair<std::string_view, std::string_view>> with) {
  std::string s(text);
  for (const auto& [from, to] : with)
    for (size_t at = 0; (at = s.find(from, at)) != s.npos; at += to.size())
      s.replace(at, from.size(), to);
  return s;
}

class CpuLoops : public ::testing::TestWithParam<const char*> {
 protected:
  Cap cap_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Isa, CpuLoops, ::testing::ValuesIn(kLevels), level_name);

// Every tail, at every distance from a line, for mixtures of element widths; neighbours stay
// untouched.
TEST_P(CpuLoops, TailsAndAlignments) {
  struct Types {
    const char *x, *y, *o;
  };
  for (const Types t : {Types{"f32", "f32", "f32"},
                        {"f64", "f64", "f64"},
                        {"u8", "u8", "u8"},
                        {"i16", "i16", "i16"},
                        {"u8", "f32", "f64"},
                        {"bool", "i64", "f32"},
                        {"f32", "f64", "bool"},
                        {"i32", "i8", "i64"}}) {
    const std::string text = replace(R"(
kernel @f(%x: ptr<global, X>, %y: ptr<global, Y>, %o: ptr<global, O>, %n: i64) {
  parallel %i in %n {
    %v = load %x[%i]
    %w = load %y[%i]
    %a = cast %v : O
    %b = cast %w : O
    %r = add %a, %b
    store %r, %o[%i]
  }
})",
                                     {{"X", t.x}, {"Y", t.y}, {"O", t.o}});
    const ir::Module m = parse(text);
    const auto executable = compile(m);
    for (const size_t skip : {size_t{0}, size_t{1}, size_t{8}, size_t{52}}) {
      const std::vector<Memory> memories = {numbers(*dtype_from_text(t.x), 300, 1, skip),
                                            numbers(*dtype_from_text(t.y), 300, 2, skip / 2),
                                            numbers(*dtype_from_text(t.o), 300, 3, skip)};
      for (int64_t n = 0; n <= 140; ++n)
        ASSERT_TRUE(agrees(m, *executable, memories, {at(0), at(1, 3), at(2, 7), number(n)}))
            << m.name << " " << t.x << t.y << t.o << " n " << n << " skip " << skip;
    }
  }
}

// Control flow without effects is vector code: any mixture of lanes, also of those that a tail
// switches off. Two equal sides share a function, a third one differs by its constant.
TEST_P(CpuLoops, MasksOfIfAndWhile) {
  for (const char* type : {"i32", "i64", "u16"}) {
    const std::string text = replace(
        R"(
kernel @f(%x: ptr<global, T>, %o: ptr<global, T>, %s: T, %n: i64) {
  %sum = if %big : T {
    %d = add %s, %s
    yield %d
  } else {
    yield %s
  }
  parallel %i in %n {
    %v = load %x[%i]
    %zero = constant 0 : T
    %one = constant 1 : T
    %three = constant 3 : T
    %five = constant 5 : T
    %r3 = mod %v, %three
    %is3 = eq %r3, %zero
    %a, %b = if %is3 : T, T {
      %last, %turns = while with %w = %v, %t = %zero {
        %more = gt %w, %one
        yield %more
      } do %w1, %t1 {
        %half = floordiv %w1, %three
        %t2 = add %t1, %one
        %rest = mod %t2, %five
        %fifth = eq %rest, %zero
        %t3 = if %fifth : T {
          %more_turns = add %t2, %sum
          yield %more_turns
        } else {
          yield %t2
        }
        yield %half, %t3
      }
      yield %last, %turns
    } else {
      yield %v, %one
    }
    %r5 = mod %v, %five
    %is5 = eq %r5, %zero
    %c = if %is5 : T {
      %p = mul %a, %sum
      yield %p
    } else {
      yield %a
    }
    %is5b = eq %r5, %one
    %e = if %is5b : T {
      %q = mul %c, %sum
      yield %q
    } else {
      yield %c
    }
    %f = add %e, %b
    store %f, %o[%i]
  }
})",
        {{"  %sum", "  %ten = constant 10 : T\n  %big = gt %s, %ten\n  %sum"}, {"T", type}});
    const ir::Module m = parse(text);
    const auto executable = compile(m);
    const DType t = *dtype_from_text(type);
    const std::vector<Memory> memories = {numbers(t, 300, 1, 0), numbers(t, 300, 2, 0)};
    for (const int64_t factor : {7, 11})
      for (int64_t n = 0; n <= 140; ++n)
        ASSERT_TRUE(agrees(m, *executable, memories, {at(0), at(1, 3), number(factor), number(n)}))
            << type << " n " << n;
  }
}

TEST_P(CpuLoops, StridesOfAnySignAndZero) {
  for (const char* type : {"f32", "i64", "u8"})
    for (const char* output : {"unit", "any"}) {
      const bool unit = output == std::string_view("unit");
      const std::string text = replace(R"(
kernel @f(%x: ptr<global, T>, %y: ptr<global, T>, %z: ptr<global, T>, %o: ptr<global, T>, %n: i64, %sx: i64, %sy: i64, %so: i64) {
  %zero = constant 0 : i64
  parallel %i in %n {
    %ix = mul %i, %sx
    %iy = mul %sy, %i
    %io = mul %i, %so
    %a = load %x[%ix]
    %b = load %y[%iy]
    %c = load %z[%zero]
    %s = add %a, %b
    %r = mul %s, %c
    store %r, %o[OFFSET]
  }
})",
                                       {{"OFFSET", unit ? "%i" : "%io"}, {"T", type}});
      const ir::Module m = parse(text);
      const auto executable = compile(m);
      const DType t = *dtype_from_text(type);
      const std::vector<Memory> memories = {numbers(t, 1000, 1), numbers(t, 1000, 2),
                                            numbers(t, 1, 3), numbers(t, 1000, 4)};
      for (const int64_t sx : {-3, -1, 0, 1, 2, 7})
        for (const int64_t sy : {-1, 1, 5})
          for (const int64_t so : {-2, -1, 1, 3})
            for (const int64_t n : {1, 2, 15, 16, 17, 33, 64, 70})
              ASSERT_TRUE(agrees(m, *executable, memories,
                                 {at(0, 500), at(1, 500), at(2), at(3, 500), number(n), number(sx),
                                  number(sy), number(so)}))
                  << type << " " << output << " " << sx << " " << sy << " " << so << " n " << n;
    }
}

TEST_P(CpuLoops, OffsetsThatAreDataOrKnown) {
  // A gather, a constant stride, a shifted and a reversed access, and the index as a value.
  const ir::Module m = parse(R"(
kernel @f(%x: ptr<global, f32>, %k: ptr<global, i64>, %o: ptr<global, f32>, %n: i64) {
  %2 = constant 2 : i64
  %3 = constant 3 : i64
  %1 = constant 1 : i64
  parallel %i in %n {
    %j = load %k[%i]
    %a = load %x[%j]
    %t = mul %i, %2
    %b = load %x[%t]
    %u = add %i, %3
    %c = load %x[%u]
    %last = sub %n, %1
    %v = sub %last, %i
    %d = load %x[%v]
    %f = cast %i : f32
    %w = add %t, %u
    %g = cast %w : f32
    %s0 = add %a, %b
    %s1 = sub %c, %d
    %s2 = mul %s0, %s1
    %s3 = add %s2, %f
    %s4 = add %s3, %g
    store %s4, %o[%u]
  }
})");
  const auto executable = compile(m);
  Memory k(DType::i64, 200);
  for (size_t i = 0; i < 200; ++i) k.set(i, i * 37 % 400);
  const std::vector<Memory> memories = {numbers(DType::f32, 400, 1), k,
                                        numbers(DType::f32, 210, 2)};
  for (int64_t n = 0; n <= 70; ++n)
    ASSERT_TRUE(agrees(m, *executable, memories, {at(0), at(1), at(2), number(n)})) << n;
}

TEST_P(CpuLoops, APointReadsWhatItHasStored) {
  // In place, and through memory that a uniform offset shares; the load after the store must not
  // move before it.
  const ir::Module m = parse(R"(
kernel @f(%x: ptr<global, i32>, %n: i64, %one: i64) {
  %0 = constant 0 : i64
  parallel %i in %n {
    %a = load %x[%i]
    %b = add %a, %a
    store %b, %x[%i]
    %c = load %x[%i]
    %d = mul %c, %b
    store %d, %x[%i]
  }
  parallel %j in %one {
    %e = constant 5 : i32
    store %e, %x[%0]
    %f = load %x[%0]
    %g = add %f, %e
    store %g, %x[%0]
  }
})");
  const auto executable = compile(m);
  for (const int64_t n : {1, 3, 64, 100})
    EXPECT_TRUE(
        agrees(m, *executable, {numbers(DType::i32, 100, 1)}, {at(0), number(n), number(1)}))
        << n;
}

TEST_P(CpuLoops, StreamingStores) {
  // Two outputs whose alignments may agree or not, one of another width; any start.
  // A short body has loops of several vectors, a long one a masked loop on each side of what
  // streams.
  for (const int extra : {0, 60}) {
    std::string more;
    for (int e = 0; e < extra; ++e)
      more += "    %b" + std::to_string(e + 1) + " = add %b" + std::to_string(e) + ", %a\n";
    const ir::Module m = parse(replace(R"(
kernel @f(%x: ptr<global, f32>, %o: ptr<global, f32>, %q: ptr<global, f64>, %r: ptr<global, bool>, %n: i64) {
  parallel %i in %n {
    %a = load %x[%i]
    %b0 = add %a, %a
MORE    %c = cast BLAST : f64
    %d = lt %a, BLAST
    store BLAST, %o[%i] nontemporal
    store %c, %q[%i] nontemporal
    store %d, %r[%i] nontemporal
  }
})",
                                       {{"MORE", more}, {"BLAST", "%b" + std::to_string(extra)}}));
    const auto executable = compile(m);
    for (const uint64_t start : {0, 1, 8, 15})
      for (const uint64_t other : {0, 1, 8})
        for (const size_t skip : {0, 2}) {
          const std::vector<Memory> memories = {
              numbers(DType::f32, 400, 1), numbers(DType::f32, 400, 2, skip),
              numbers(DType::f64, 400, 3), numbers(DType::b1, 400, 4)};
          for (const int64_t n : {0, 1, 5, 63, 64, 65, 127, 200, 301})
            ASSERT_TRUE(agrees(m, *executable, memories,
                               {at(0), at(1, start), at(2, other), at(3, 1), number(n)}))
                << start << " " << other << " " << n;
        }
#if defined(__x86_64__)
    EXPECT_NE(backend::cpu::emit_assembly(m).find("vmovnt"), std::string::npos);
#endif
  }
}

constexpr std::string_view kThreeDimensions = R"(
kernel @f(%x: ptr<global, f32>, %y: ptr<global, f32>, %o: ptr<global, f32>, %n: i64, %m: i64, %k: i64, %sx0: i64, %sx1: i64, %so0: i64, %so1: i64) {
  parallel %i0, %i1, %i2 in %n, %m, %k {
    %a = mul %i0, %sx0
    %b = mul %i1, %sx1
    %c = add %a, %b
    %d = add %c, %i2
    %v = load %x[%d]
    %w = load %y[%i1]
    %e = mul %i0, %so0
    %f = mul %i1, %so1
    %g = add %e, %f
    %h = add %g, %i2
    %r = mul %v, %w
    store %r, %o[%h]
  }
})";

TEST_P(CpuLoops, ThreeDimensions) {
  const ir::Module m = parse(kThreeDimensions);
  const auto executable = compile(m);
  const std::vector<Memory> memories = {numbers(DType::f32, 4000, 1), numbers(DType::f32, 100, 2),
                                        numbers(DType::f32, 4000, 3)};
  for (const int64_t n : {0, 1, 3})
    for (const int64_t k : {0, 1, 7, 16, 70})
      EXPECT_TRUE(agrees(m, *executable, memories,
                         {at(0, 2000), at(1), at(2), number(n), number(5), number(k), number(-400),
                          number(75), number(500), number(90)}))
          << n << " " << k;
}

TEST_P(CpuLoops, ThreadsDoNotChangeResults) {
  const int before = runtime::num_threads();
  // Large enough to be split: a contiguous loop that streams, rows, and few long rows.
  const ir::Module flat = parse(R"(
kernel @f(%x: ptr<global, f32>, %o: ptr<global, f32>, %n: i64) {
  parallel %i in %n {
    %v = load %x[%i]
    %r = mul %v, %v
    store %r, %o[%i] nontemporal
  }
})");
  const ir::Module rows = parse(kThreeDimensions);
  const auto run_flat = compile(flat), run_rows = compile(rows);
  const Memory x = numbers(DType::f32, 300'000, 1), y = numbers(DType::f32, 400, 2),
               fresh(DType::f32, 300'000);
  std::vector<Memory> want;
  for (const int threads : {1, 2, 3, 7}) {
    runtime::set_num_threads(threads);
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::vector<Memory> memories = {x, y, fresh, fresh, fresh};
      run_flat->launch(slots(memories, {at(0), at(2, 5), number(299'990)}).data());
      run_rows->launch(slots(memories, {at(0), at(1), at(3), number(20), number(30), number(450),
                                        number(15'000), number(500), number(15'000), number(500)})
                           .data());
      run_rows->launch(slots(memories, {at(0), at(1), at(4), number(1), number(2), number(150'000),
                                        number(0), number(150'000), number(0), number(150'000)})
                           .data());
      if (want.empty()) want = memories;
      for (size_t i = 0; i < memories.size(); ++i)
        ASSERT_TRUE(same_contents(want[i], memories[i])) << threads << " threads, memory " << i;
    }
  }
  runtime::set_num_threads(before);
}

TEST_P(CpuLoops, ManyNestsAndStraightCode) {
  // Constant extents, code between nests, values of scalars shared by all, nests that read what
  // earlier ones wrote.
  const ir::Module m = parse(R"(
kernel @f(%a: f32, %k: i32, %t: bool, %x: ptr<global, f32>, %y: ptr<global, f32>, %n: i64) {
  %0 = constant 0 : i64
  %8 = constant 8 : i64
  %f = cast %k : f32
  %s = mul %a, %f
  %c = select %t, %s, %a
  parallel %i in %n {
    %v = load %x[%i]
    %w = mul %v, %c
    store %w, %y[%i]
  }
  %p = load %y[%0]
  %q = add %p, %a
  store %q, %x[%0]
  parallel %j, %l in %8, %8 {
    %g = mul %j, %8
    %h = add %g, %l
    %u = load %x[%h]
    %z = load %y[%h]
    %r = add %u, %z
    store %r, %x[%h]
  }
})");
  const auto executable = compile(m);
  const std::vector<Memory> memories = {numbers(DType::f32, 100, 1), numbers(DType::f32, 100, 2)};
  const auto f = [](float v) { return Argument{-1, ir::Scalar::of(v).bits}; };
  for (const int64_t t : {0, 1})
    EXPECT_TRUE(agrees(m, *executable, memories,
                       {f(1.5f), number(-3), number(t), at(0), at(1), number(90)}));
}

TEST_P(CpuLoops, ControlFlowMemoryAndValuesAcrossNests) {
  const ir::Module m = parse(R"(
kernel @f(%x: ptr<global, i64>, %y: ptr<global, i64>, %n: i64) {
  %0 = constant 0 : i64
  %1 = constant 1 : i64
  %2 = constant 2 : i64
  %first = load %x[%0]
  %buffer = alloc %n : ptr<global, i64>
  parallel %i in %n {
    %v = load %x[%i]
    %sum = for %j = %0 to %i step %2 with %acc = %v {
      %odd = and %j, %v
      %c = gt %odd, %first
      %next = if %c : i64 {
        %u = add %acc, %j
        yield %u
      } else {
        %w = sub %acc, %first
        yield %w
      }
      yield %next
    }
    store %sum, %buffer[%i]
  }
  %m = while with %k = %n {
    %more = gt %k, %2
    yield %more
  } do %k2 {
    %half = shr %k2, %1
    yield %half
  }
  parallel %p in %n {
    %b = load %buffer[%p]
    %r = mul %b, %m
    store %r, %y[%p]
  }
})");
  const auto executable = compile(m);
  for (const int64_t n : {1, 2, 50})
    EXPECT_TRUE(agrees(m, *executable, {numbers(DType::i64, 60, 1), numbers(DType::i64, 60, 2)},
                       {at(0), at(1), number(n)}))
        << n;
}

TEST_P(CpuLoops, ScalarFunctionsReturnValues) {
  const ir::Module m = parse(R"(
kernel @f(%a: f32, %n: i8, %t: bool) -> (f32, i8, bool) {
  %r = add %a, %a
  %s = mul %n, %n
  %u = not %t
  return %r, %s, %u
})");
  const auto executable = compile(m);
  uint64_t results[3] = {};
  const uint64_t arguments[] = {ir::Scalar::of(1.25f).bits, ir::Scalar::of(int8_t{-13}).bits, 1};
  uint64_t params[6];
  for (int i = 0; i < 3; ++i) {
    params[i] = arguments[i];
    params[3 + i] = reinterpret_cast<uint64_t>(&results[i]);
  }
  executable->launch(params);
  const std::vector<ir::Scalar> want = backend::run_kernel(m, arguments);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(results[i], want[static_cast<size_t>(i)].bits) << i;
}

TEST_P(CpuLoops, EmptyDomainsReadNothing) {
  const ir::Module m = parse(R"(
kernel @f(%x: ptr<global, f32>, %o: ptr<global, f32>, %n: i64, %m: i64) {
  %0 = constant 0 : i64
  parallel %i, %j in %n, %m {
    %v = load %x[%0]
    store %v, %o[%j]
  }
})");
  const auto executable = compile(m);
  for (const auto& [n, k] : {std::pair{0, 5}, {5, 0}, {-1, 5}, {0, 0}}) {
    const uint64_t params[] = {0, 0, static_cast<uint64_t>(n), static_cast<uint64_t>(k)};
    executable->launch(params);
  }
}

TEST(CpuCode, TheHotLoopIsTight) {
  const ir::Module m = parse(R"(
kernel @f(%a: ptr<global, f32>, %b: ptr<global, f32>, %c: ptr<global, f32>, %o: ptr<global, f32>, %n: i64) {
  parallel %i in %n {
    %x = load %a[%i]
    %y = load %b[%i]
    %z = load %c[%i]
    %m = mul %x, %y
    %s = add %m, %z
    store %s, %o[%i]
  }
})");
#if defined(__x86_64__)
  const Cap cap("x86-64-v3");
  const std::string text = backend::cpu::emit_assembly(m);
  EXPECT_EQ(text.find("(%rsp)"), std::string::npos) << "spills\n" << text;
  EXPECT_EQ(text.find("vperm"), std::string::npos) << text;
  EXPECT_NE(text.find("vmulps\t("), std::string::npos) << "loads are folded\n" << text;
  EXPECT_EQ(text.find("vfmadd"), std::string::npos) << text;
#endif
}

TEST(CpuCode, AllocationsThatFailEndTheLaunch) {
  const ir::Module m = parse(R"(
kernel @f(%x: ptr<global, i64>, %n: i64) {
  %0 = constant 0 : i64
  %b = alloc %n : ptr<global, i64>
  store %n, %b[%0]
  store %n, %x[%0]
})");
  const auto executable = compile(m);
  int64_t x = -1;
  const uint64_t params[] = {reinterpret_cast<uint64_t>(&x), uint64_t{1} << 62};
  EXPECT_THROW(executable->launch(params), std::bad_alloc);
  EXPECT_EQ(x, -1);
}

TEST(CpuTarget, FatalErrorsOfLlvmAreCaught) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(backend::cpu::run_guarded([](void*) { backend::cpu::fail_in_llvm("no such thing"); },
                                        nullptr),
              "no such thing");
    EXPECT_EQ(backend::cpu::run_guarded([](void*) {}, nullptr), "");
  }
}

TEST(CpuTarget, FatalErrorsOfLlvmAreInternalErrorsWithTheKernel) {
  if (!backend::cpu::current_target().x86) GTEST_SKIP() << "the fence is one of x86";
  const ir::Module m = parse(R"(kernel @f(%o: ptr<global, i32>, %n: i64) {
  %c = constant 1 : i32
  parallel %i in %n {
    store %c, %o[%i] nontemporal
  }
})");
  backend::cpu::Target impossible = backend::cpu::current_target();
  impossible.cpu = "x86-64";
  impossible.features = "-sse";  // but the fence that the code needs
  impossible.vector_bits = 128;
  try {
    backend::cpu::compile({&m, 1}, impossible, backend::cpu::Output::object);
    ADD_FAILURE() << "compiled";
  } catch (const InternalError& e) {
    const std::string text = e.what();
    for (const char* part : {"Cannot select", "kernel @f", "picoc emit llvm"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_NE(compile(m), nullptr);
}

TEST(CpuTarget, UnknownLevelsAreReported) {
  const Cap cap("x86-64-v9");
  EXPECT_NE(backend::cpu_backend.why_not_live().find("x86-64-v9"), std::string::npos);
}

TEST(CpuTarget, DamagedArtifactsAreRefused) {
  const ir::Module m = parse("kernel @f(%n: i64) {\n}\n");
  backend::Artifact artifact = backend::cpu_backend.emit(m);
  const uint64_t params[] = {1};
  backend::cpu_backend.open(artifact, m)->launch(params);
  artifact.code.resize(artifact.code.size() / 2);
  EXPECT_THROW(backend::cpu_backend.open(artifact, m), InternalError);
  artifact.code = "something else";
  EXPECT_THROW(backend::cpu_backend.open(artifact, m), InternalError);
}

TEST(CpuTarget, ManyThreadsCompileAndLaunch) {
  const ir::Module m = parse(kThreeDimensions);
  const std::vector<Memory> memories = {numbers(DType::f32, 400, 1), numbers(DType::f32, 10, 2),
                                        numbers(DType::f32, 400, 3)};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i)
        EXPECT_TRUE(agrees(m, *compile(m), memories,
                           {at(0), at(1), at(2), number(3), number(5), number(20), number(100),
                            number(20), number(100), number(20)}));
    });
  for (std::thread& t : threads) t.join();
}

TEST(CpuTarget, AForkedChildCompilesAndRuns) {
  const ir::Module m = parse(kThreeDimensions);
  const auto before = compile(m);
  const std::vector<Memory> memories = {numbers(DType::f32, 400, 1), numbers(DType::f32, 10, 2),
                                        numbers(DType::f32, 400, 3)};
  const std::vector<Argument> arguments = {at(0),       at(1),      at(2),       number(3),
                                           number(5),   number(20), number(100), number(20),
                                           number(100), number(20)};
  const pid_t child = fork();
  if (child == 0)
    _exit(agrees(m, *before, memories, arguments) && agrees(m, *compile(m), memories, arguments)
              ? 0
              : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Leaves one page free among all that is mapped, and nothing else within 8 GiB of it.
void crowd_address_space() {
  constexpr size_t kPage = 4096, kFar = size_t{8} << 30;
  const auto reserve = [](size_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
  };
  char* const below = reserve(kFar);  // no hole is so large: it lies below everything
  char* hole = nullptr;
  for (const size_t bytes : {kPage << 16, kPage << 12, kPage << 8, kPage << 4, kPage})
    for (char* p = reserve(bytes); p != nullptr; p = reserve(bytes)) {
      if (p < below) {
        munmap(p, bytes);
        break;
      }
      hole = p;
    }
  munmap(hole, kPage);
}

TEST(CpuTarget, CodeReachesItsConstantsInACrowdedAddressSpace) {
  const ir::Module m = parse(R"(kernel @f(%x: ptr<global, f32>, %n: i64) {
  %c = constant 0.3 : f32
  parallel %i in %n {
    %a = load %x[%i]
    %b = mul %a, %c
    store %b, %x[%i]
  }
})");
  const backend::Artifact artifact = backend::cpu_backend.emit(m);
  const pid_t child = fork();
  if (child == 0) {
    crowd_address_space();
    float x[3] = {1, 2, 3};
    const uint64_t params[] = {reinterpret_cast<uint64_t>(x), 3};
    backend::cpu_backend.open(artifact, m)->launch(params);
    _exit(x[2] == 3 * 0.3f ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(CpuTarget, CompilingDependsOnNothingElse) {
  const ir::Module m = parse(kThreeDimensions);
  EXPECT_EQ(backend::cpu_backend.emit(m).code, backend::cpu_backend.emit(m).code);
}

}  // namespace
}  // namespace picokernel::cpu_test

#endif  // PICOKERNEL_HAVE_LLVM
