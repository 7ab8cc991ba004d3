// Kernels of threads under the reference interpreter: what they compute, and what it finds.
#include "backend/ref/thread_interpreter.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "driver/backends.h"
#include "driver/compile.h"
#include "ir/text.h"

namespace picokernel::backend {
namespace {

// Collects the parameters of one launch.
struct Launch {
  std::vector<uint64_t> params;
  std::vector<Reach> reach;
  Grid grid;

  template <class T>
  Launch& array(std::vector<T>& v) {
    params.push_back(reinterpret_cast<uint64_t>(v.data()));
    reach.push_back({0, static_cast<int64_t>(v.size())});
    return *this;
  }
  Launch& number(int64_t v) {
    params.push_back(static_cast<uint64_t>(v));
    reach.push_back({});
    return *this;
  }
  void run(const std::string& text, uint64_t seed = 0) const {
    const std::vector<ir::Module> parsed = ir::parse("picokernel 1\n" + text, "test.pk", true);
    run_threads(parsed.at(0), params, reach, grid, seed);
  }
  // The message of what it finds, for several orders of the threads.
  std::string finding(const std::string& text) const {
    std::string found;
    for (uint64_t seed = 0; seed < 5; ++seed) {
      try {
        run(text, seed);
      } catch (const KernelError& e) {
        found = e.what();
        continue;
      }
      return "seed " + std::to_string(seed) + " found nothing";
    }
    return found;
  }
};

Grid grid(int64_t blocks, int64_t threads) { return {{blocks, 1, 1}, {threads, 1, 1}}; }

// o[i] = 3 * x[i] for i below n.
const std::string kTriple = R"(kernel @triple(%x: ptr<global, f32>, %o: ptr<global, f32>, %n: i64) {
  %t = thread_id 0 : i64
  %b = block_id 0 : i64
  %d = block_dim 0 : i64
  %first = mul %b, %d
  %i = add %first, %t
  %inside = lt %i, %n
  if %inside {
    %v = load %x[%i]
    %three = constant 3.0 : f32
    %w = mul %v, %three
    store %w, %o[%i]
  }
}
)";

TEST(ThreadInterpreter, GuardedElementwiseOverAnyGrid) {
  for (const auto& [blocks, threads] : {std::pair{1, 1}, {1, 8}, {3, 4}, {10, 1}}) {
    std::vector<float> x{1, 2, 3, 4, 5, 6, 7}, o(7, -1);
    Launch{.grid = grid(blocks, threads)}.array(x).array(o).number(7).run(kTriple);
    for (int i = 0; i < 7; ++i)
      EXPECT_EQ(o[static_cast<size_t>(i)],
                i < blocks * threads ? 3.0f * static_cast<float>(i + 1) : -1.0f);
  }
}

TEST(ThreadInterpreter, IdsOfThreeAxes) {
  const std::string text = R"(kernel @ids(%o: ptr<global, i64>) {
  %tx = thread_id 0 : i64
  %ty = thread_id 1 : i64
  %tz = thread_id 2 : i64
  %bx = block_id 0 : i64
  %by = block_id 1 : i64
  %bz = block_id 2 : i64
  %dx = block_dim 0 : i64
  %dy = block_dim 1 : i64
  %dz = block_dim 2 : i64
  %gx = grid_dim 0 : i64
  %gy = grid_dim 1 : i64
  %xb = mul %bx, %dx
  %x = add %xb, %tx
  %yb = mul %by, %dy
  %y = add %yb, %ty
  %zb = mul %bz, %dz
  %z = add %zb, %tz
  %wx = mul %gx, %dx
  %wy = mul %gy, %dy
  %plane = mul %z, %wy
  %row = add %plane, %y
  %rows = mul %row, %wx
  %at = add %rows, %x
  store %at, %o[%at]
}
)";
  std::vector<int64_t> o(4 * 6 * 6, -1);
  Launch l{.grid = {{2, 3, 2}, {2, 2, 3}}};
  l.array(o).run(text);
  for (size_t i = 0; i < o.size(); ++i) EXPECT_EQ(o[i], static_cast<int64_t>(i));
}

// Each block reverses its part of x through shared memory; `@` stands for the barrier.
std::string reverse(const std::string& barrier) {
  return R"(kernel @reverse(%x: ptr<global, i32>) {
  %s = shared 4 : ptr<shared, i32>
  %t = thread_id 0 : i64
  %b = block_id 0 : i64
  %four = constant 4 : i64
  %base = mul %b, %four
  %i = add %base, %t
  %v = load %x[%i]
  store %v, %s[%t]
  )" + barrier +
         R"(
  %three = constant 3 : i64
  %back = sub %three, %t
  %w = load %s[%back]
  store %w, %x[%i]
}
)";
}

TEST(ThreadInterpreter, BarriersOrderSharedMemory) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<int32_t> x{1, 2, 3, 4, 5, 6, 7, 8};
    Launch{.grid = grid(2, 4)}.array(x).run(reverse("barrier"), seed);
    EXPECT_EQ(x, (std::vector<int32_t>{4, 3, 2, 1, 8, 7, 6, 5}));
  }
}

TEST(ThreadInterpreter, AMissingBarrierIsARaceOrAReadOfNothing) {
  std::vector<int32_t> x{1, 2, 3, 4};
  const std::string found = Launch{.grid = grid(1, 4)}.array(x).finding(reverse(""));
  EXPECT_TRUE(found.find("a race: thread (") != found.npos ||
              found.find("which nobody has written") != found.npos)
      << found;
  EXPECT_NE(found.find("of `s`"), found.npos) << found;
}

TEST(ThreadInterpreter, RacesOfOneBlock) {
  std::vector<int32_t> x(8);
  Launch l{.grid = grid(1, 4)};
  l.array(x);
  // All threads write their number to one element.
  const std::string text = R"(kernel @f(%x: ptr<global, i32>) {
  %t = thread_id 0 : i64
  %zero = constant 0 : i64
  %v = cast %t : i32
  store %v, %x[%zero]
}
)";
  const std::string found = l.finding(text);
  EXPECT_EQ(found.find("test.pk:6:3: error: a race: thread ("), 0u) << found;
  EXPECT_NE(found.find(") of block (0, 0, 0) writes element 0 of `x`, and thread ("), found.npos);
  EXPECT_NE(found.find(") writes it at line 6"), found.npos) << found;
  EXPECT_NE(found.find("no barrier lies between them"), found.npos);
  // One value: no order of the writes shows.
  l.run(R"(kernel @f(%x: ptr<global, i32>) {
  %t = thread_id 0 : i64
  %zero = constant 0 : i64
  %v = constant 7 : i32
  store %v, %x[%zero]
}
)");
  EXPECT_EQ(x[0], 7);
}

TEST(ThreadInterpreter, AReadAndALaterWriteOfAnotherThread) {
  std::vector<int32_t> x{1, 2, 3, 4, 5};
  const std::string shift = R"(kernel @shift(%x: ptr<global, i32>) {
  %t = thread_id 0 : i64
  %one = constant 1 : i64
  %next = add %t, %one
  %v = load %x[%next]
  @
  store %v, %x[%t]
}
)";
  std::string text = shift;
  text.replace(text.find('@', 10), 1, "");
  EXPECT_NE(Launch{.grid = grid(1, 4)}.array(x).finding(text).find("a race"), std::string::npos);
  x = {1, 2, 3, 4, 5};
  text = shift;
  text.replace(text.find('@', 10), 1, "barrier");
  Launch{.grid = grid(1, 4)}.array(x).run(text);
  EXPECT_EQ(x, (std::vector<int32_t>{2, 3, 4, 5, 5}));
  // A barrier orders the threads of a block only.
  x = {1, 2, 3, 4, 5};
  text.replace(text.find("thread_id"), 9, "block_id");
  const std::string found = Launch{.grid = grid(4, 1)}.array(x).finding(text);
  EXPECT_NE(found.find("blocks run in any order"), found.npos) << found;
}

TEST(ThreadInterpreter, AccessesOutOfBounds) {
  std::vector<float> x(5), o(7);
  const std::string found = Launch{.grid = grid(2, 4)}.array(x).array(o).number(7).finding(kTriple);
  EXPECT_EQ(found.find("test.pk:10:10: error: thread ("), 0u) << found;
  EXPECT_NE(found.find("of block (1, 0, 0) reads element"), found.npos) << found;
  EXPECT_NE(found.find("of `x`, which has those from 0 to 4"), found.npos) << found;
  std::vector<float> all(7), small(3);
  EXPECT_NE(Launch{.grid = grid(2, 4)}.array(all).array(small).number(7).finding(kTriple).find(
                "of `o`, which has those from 0 to 2"),
            std::string::npos);
}

TEST(ThreadInterpreter, ReachBelowThePointer) {
  std::vector<float> x{1, 2, 3}, o(1);
  const std::string text = R"(kernel @f(%x: ptr<global, f32>, %o: ptr<global, f32>, %i: i64) {
  %t = thread_id 0 : i64
  %v = load %x[%i]
  store %v, %o[%t]
}
)";
  Launch l{.grid = grid(1, 1)};
  l.array(x).array(o).number(-2);
  l.params[0] += 2 * sizeof(float);
  l.reach[0] = {-2, 1};
  l.run(text);
  EXPECT_EQ(o[0], 1);
  l.params[2] = static_cast<uint64_t>(int64_t{-3});
  EXPECT_NE(l.finding(text).find("element -3"), std::string::npos);
}

TEST(ThreadInterpreter, SharedAndLocalMemoryBeginUndefined) {
  for (const std::string memory :
       {"shared 4 : ptr<shared, f32>", "alloc %four : ptr<local, f32>"}) {
    std::vector<float> o(4);
    const std::string found =
        Launch{.grid = grid(1, 4)}.array(o).finding(R"(kernel @f(%o: ptr<global, f32>) {
  %four = constant 4 : i64
  %m = )" + memory + R"(
  %t = thread_id 0 : i64
  %v = load %m[%t]
  store %v, %o[%t]
}
)");
    EXPECT_NE(found.find("of `m`, which nobody has written"), found.npos) << found;
  }
}

TEST(ThreadInterpreter, DynamicSharedMemoryIsOneForAllTypes) {
  // What was written as f32 reads as its bits.
  const std::string text = R"(kernel @f(%o: ptr<global, i32>) {
  %f = shared 0 : ptr<shared, f32>
  %i = shared 0 : ptr<shared, i32>
  %t = thread_id 0 : i64
  %x = cast %t : f32
  store %x, %f[%t]
  %v = load %i[%t]
  store %v, %o[%t]
}
)";
  std::vector<int32_t> o(4);
  Launch l{.grid = grid(1, 4)};
  l.grid.shared_bytes = 16;
  l.array(o).run(text);
  EXPECT_EQ(o, (std::vector<int32_t>{0, 0x3f800000, 0x40000000, 0x40400000}));
  l.grid.shared_bytes = 12;
  EXPECT_NE(l.finding(text).find("element 3 of `f`, which has those from 0 to 2"),
            std::string::npos);
}

TEST(ThreadInterpreter, BarriersThatSomeThreadsDoNotReach) {
  std::vector<int32_t> x(4);
  Launch l{.grid = grid(1, 4)};
  l.array(x);
  const std::string branch = R"(kernel @f(%x: ptr<global, i32>) {
  %t = thread_id 0 : i64
  %two = constant 2 : i64
  %low = lt %t, %two
  if %low {
    barrier
  }@
}
)";
  std::string text = branch;
  text.replace(text.find('@', 10), 1, "");
  std::string found = l.finding(text);
  EXPECT_EQ(found.find("test.pk:7:5: error: thread ("), 0u) << found;
  EXPECT_NE(found.find("waits at this barrier, and thread ("), found.npos);
  EXPECT_NE(found.find(") of block (0, 0, 0) has ended"), found.npos) << found;
  text = branch;
  text.replace(text.find('@', 10), 1, " else {\n    barrier\n  }");
  found = l.finding(text);
  EXPECT_NE(found.find("waits at another one at line"), found.npos) << found;
}

TEST(ThreadInterpreter, BarriersInLoops) {
  // A tree sum of 8 elements.
  const std::string text = R"(kernel @sum(%x: ptr<global, i64>, %o: ptr<global, i64>) {
  %s = shared 8 : ptr<shared, i64>
  %t = thread_id 0 : i64
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %four = constant 4 : i64
  %v = load %x[%t]
  store %v, %s[%t]
  barrier
  %rest = while with %half = %four {
    %more = gt %half, %zero
    yield %more
  } do %h {
    %active = lt %t, %h
    if %active {
      %other = add %t, %h
      %a = load %s[%t]
      %b = load %s[%other]
      %c = add %a, %b
      store %c, %s[%t]
    }
    barrier
    %next = shr %h, %one
    yield %next
  }
  %first = eq %t, %zero
  if %first {
    %sum = load %s[%zero]
    store %sum, %o[%zero]
  }
}
)";
  for (uint64_t seed = 0; seed < 10; ++seed) {
    std::vector<int64_t> x{1, 2, 3, 4, 5, 6, 7, 8}, o(1);
    Launch{.grid = grid(1, 8)}.array(x).array(o).run(text, seed);
    EXPECT_EQ(o[0], 36);
  }
}

TEST(ThreadInterpreter, BarriersThatCount) {
  const std::string text = R"(kernel @f(%o: ptr<global, i64>) {
  %t = thread_id 0 : i64
  %two = constant 2 : i64
  %high = ge %t, %two
  %n = barrier_count %high
  %and = barrier_and %high
  %or = barrier_or %high
  %a = cast %and : i64
  %b = cast %or : i64
  %ten = constant 10 : i64
  %n10 = mul %n, %ten
  %na = add %n10, %a
  %na10 = mul %na, %ten
  %all = add %na10, %b
  store %all, %o[%t]
}
)";
  std::vector<int64_t> o(5);
  Launch{.grid = grid(1, 5)}.array(o).run(text);
  EXPECT_EQ(o, (std::vector<int64_t>(5, 301)));
}

struct AtomicCase {
  std::string op;
  int32_t before, operand, after;  // of 4 threads with operand + thread
};

class Atomics : public testing::TestWithParam<AtomicCase> {};

TEST_P(Atomics, AllThreadsCount) {
  const AtomicCase& c = GetParam();
  std::vector<int32_t> x{c.before}, old(4, -99);
  Launch{.grid = grid(2, 2)}.array(x).array(old).number(c.operand).run(
      R"(kernel @f(%x: ptr<global, i32>, %old: ptr<global, i32>, %n: i64) {
  %t = thread_id 0 : i64
  %b = block_id 0 : i64
  %two = constant 2 : i64
  %first = mul %b, %two
  %i = add %first, %t
  %wide = add %n, %i
  %v = cast %wide : i32
  %zero = constant 0 : i64
  %was = )" +
          c.op + R"( %x[%zero], %v
  store %was, %old[%i]
}
)",
      7);
  EXPECT_EQ(x[0], c.after) << c.op;
  EXPECT_NE(std::ranges::find(old, c.before), old.end()) << c.op;
}

INSTANTIATE_TEST_SUITE_P(
    All, Atomics,
    testing::Values(AtomicCase{"atomic_add", 5, 10, 5 + 10 + 11 + 12 + 13},
                    AtomicCase{"atomic_minimum", 0, -3, -3}, AtomicCase{"atomic_maximum", 0, -3, 0},
                    AtomicCase{"atomic_maximum", 0, 6, 9}, AtomicCase{"atomic_fmin", 7, 4, 4},
                    AtomicCase{"atomic_fmax", 7, 4, 7}, AtomicCase{"atomic_and", 15, 12, 12},
                    AtomicCase{"atomic_or", 16, 0, 19}, AtomicCase{"atomic_xor", 0, 4, 0}));

TEST(ThreadInterpreter, AtomicIncAndDecWrapAtTheirOperand) {
  const auto after = [](const std::string& op, uint32_t before, int64_t limit, int64_t threads) {
    std::vector<uint32_t> x{before};
    Launch{.grid = grid(1, threads)}.array(x).number(limit).run(
        R"(kernel @f(%x: ptr<global, u32>, %n: i64) {
  %t = thread_id 0 : i64
  %v = cast %n : u32
  %zero = constant 0 : i64
  %was = )" +
        op + R"( %x[%zero], %v
}
)");
    return x[0];
  };
  EXPECT_EQ(after("atomic_inc", 0, 2, 4), 1u);  // 1, 2, 0, 1
  EXPECT_EQ(after("atomic_inc", 9, 2, 1), 0u);
  EXPECT_EQ(after("atomic_dec", 1, 5, 3), 4u);  // 0, 5, 4
  EXPECT_EQ(after("atomic_dec", 9, 5, 1), 5u);
}

TEST(ThreadInterpreter, AtomicCompareAndSwapTakesOneWinner) {
  std::vector<int64_t> lock{-1}, won(8);
  Launch{.grid = grid(1, 8)}.array(lock).array(won).run(
      R"(kernel @f(%x: ptr<global, i64>, %won: ptr<global, i64>) {
  %t = thread_id 0 : i64
  %zero = constant 0 : i64
  %free = constant -1 : i64
  %was = atomic_cas %x[%zero], %free, %t
  %mine = eq %was, %free
  %n = cast %mine : i64
  store %n, %won[%t]
}
)",
      3);
  EXPECT_EQ(std::ranges::count(won, 1), 1);
  EXPECT_EQ(won[static_cast<size_t>(lock[0])], 1);
}

TEST(ThreadInterpreter, AnAtomicAndAPlainWriteRace) {
  std::vector<float> x{0};
  const std::string found = Launch{.grid = grid(1, 4)}.array(x).finding(
      R"(kernel @f(%x: ptr<global, f32>) {
  %t = thread_id 0 : i64
  %zero = constant 0 : i64
  %v = cast %t : f32
  %first = eq %t, %zero
  %five = constant 5.0 : f32
  if %first {
    store %five, %x[%zero]
  } else {
    %was = atomic_add %x[%zero], %v
  }
}
)");
  EXPECT_NE(found.find("a race"), found.npos) << found;
}

TEST(ThreadInterpreter, TheSeedDecidesTheOrder) {
  // Threads take tickets; equal seeds give equal orders, some seeds different ones.
  const auto tickets = [](uint64_t seed) {
    std::vector<int64_t> counter{0}, o(8);
    Launch{.grid = grid(2, 4)}.array(counter).array(o).run(
        R"(kernel @f(%c: ptr<global, i64>, %o: ptr<global, i64>) {
  %t = thread_id 0 : i64
  %b = block_id 0 : i64
  %four = constant 4 : i64
  %first = mul %b, %four
  %i = add %first, %t
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %ticket = atomic_add %c[%zero], %one
  store %ticket, %o[%i]
}
)",
        seed);
    return o;
  };
  EXPECT_EQ(tickets(1), tickets(1));
  bool differ = false;
  for (uint64_t seed = 2; seed < 10; ++seed) differ |= tickets(seed) != tickets(1);
  EXPECT_TRUE(differ);
}

TEST(ThreadInterpreter, BackendsRefuseKernelsOfThreads) {
  for (const char* name : {"ref", "cpu", "c"}) {
    const Backend* backend = driver::find_backend(name);
    if (backend == nullptr) continue;
    try {
      driver::lower_for(*backend, ir::parse("picokernel 1\n" + kTriple, "test.pk", true).at(0));
      ADD_FAILURE() << name;
    } catch (const CompileError& e) {
      EXPECT_EQ(std::string(e.what()).find("test.pk:3:8: error: backend " + std::string(name) +
                                           " runs no kernels of threads"),
                0u)
          << e.what();
    }
  }
}

}  // namespace
}  // namespace picokernel::backend
