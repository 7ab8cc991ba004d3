// The graphs that traces give, as text: traces.txt holds what is expected. PK_UPDATE_GOLDEN=1
// rewrites it.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "frontend/trace_cases.h"
#include "ir/text.h"

namespace picokernel::frontend::testing {
namespace {

struct Case {
  std::string name;
  std::vector<ArgSpec> args;
  std::function<std::vector<Value>(Trace&)> body;
};

const ArgSpec kX = array(DType::f32, "x", {5});
const ArgSpec kY = array(DType::f32, "y", {5});
const ArgSpec kI = array(DType::i32, "i", {5});
const ArgSpec kB = array(DType::b1, "b", {5});
const ArgSpec kU8 = array(DType::u8, "u", {5});
const ArgSpec kU64 = array(DType::u64, "u", {5});
const ArgSpec kI64 = array(DType::i64, "i", {5});

Case binary(std::string name, std::string_view ufunc, ArgSpec a, ArgSpec b) {
  return {std::move(name), {std::move(a), std::move(b)}, [ufunc](Trace& t) {
            return std::vector{t.call(ufunc, t[0], t[1])};
          }};
}
Case unary(std::string name, std::string_view ufunc, ArgSpec a) {
  return {std::move(name), {std::move(a)}, [ufunc](Trace& t) {
            return std::vector{t.call(ufunc, t[0])};
          }};
}
Case with_literal(std::string name, std::string_view ufunc, ArgSpec a, Literal value) {
  return {std::move(name), {std::move(a)}, [ufunc, value](Trace& t) {
            return std::vector{t.call(ufunc, t[0], literal(value))};
          }};
}

std::vector<Case> cases() {
  std::vector<Case> list{
      {"fma returns",
       {kX, kY, array(DType::f32, "z", {5})},
       [](Trace& t) { return std::vector{t.call("add", t.call("multiply", t[0], t[1]), t[2])}; }},
      {"fma stores",
       {kX, kY, array(DType::f32, "o", {5})},
       [](Trace& t) {
         t.store(t[2], t.call("add", t.call("multiply", t[0], t[1]), literal(1.0)));
         return std::vector<Value>{};
       }},
      binary("broadcast of a column and a row", "add", array(DType::f32, "x", {3, 1}),
             array(DType::f32, "y", {1, 4})),
      binary("broadcast over a missing dimension", "add", array(DType::f32, "x", {3, 4}),
             array(DType::f32, "y", {4})),
      {"sizes that meet become one",
       {array(DType::f32, "x", {4, 3}), array(DType::f32, "y", {3}),
        array(DType::f32, "z", {4, 1})},
       [](Trace& t) { return std::vector{t.call("add", t[2], t.call("add", t[0], t[1]))}; }},
      binary("sizes of 0 and 1", "add", array(DType::f32, "x", {0}), array(DType::f32, "y", {1})),
      unary("of a 0-d array", "sqrt", array(DType::f64, "x", {})),
      binary("mixed types", "add", kI, kX),
      binary("integer division", "true_divide", kI, kI64),
      binary("a Python float argument", "multiply", kX, python_float("s")),
      binary("a Python int argument", "add", kU8, python_int("k")),
      binary("a NumPy scalar argument", "multiply", kX, scalar(DType::f64, "s")),
      binary("Python numbers alone", "add", python_int("k"), python_float("s")),
      {"what is made of Python numbers is weak",
       {kX, python_float("s")},
       [](Trace& t) {
         return std::vector{t.call("multiply", t[0], t.call("add", t[1], literal(int64_t{1})))};
       }},
      {"functions of Python numbers are strong",
       {kX, python_float("s")},
       [](Trace& t) { return std::vector{t.call("multiply", t[0], t.call("sqrt", t[1]))}; }},
      {"a size is a Python int",
       {kX},
       [](Trace& t) { return std::vector{t.call("true_divide", t[0], t.size(t[0], 0))}; }},
      with_literal("int literal", "multiply", kX, int64_t{2}),
      with_literal("bool literal", "add", kI, true),
      with_literal("square", "power", kX, int64_t{2}),
      with_literal("square root", "power", kX, 0.5),
      with_literal("power -1", "power", kX, int64_t{-1}),
      with_literal("power 1 of an integer", "power", kI, int64_t{1}),
      with_literal("power 0 of an integer", "power", kI, int64_t{0}),
      with_literal("float power of an integer", "power", kI, -2.0),
      with_literal("square of bool", "power", kB, int64_t{2}),
      binary("integer to a run-time power", "power", kI, python_int("k")),
      binary("Python int to a run-time power", "power", python_int("k"), kI),
      binary("uint64 below int64", "less", kU64, kI64),
      binary("int64 unequal to uint64", "not_equal", kI64, kU64),
      with_literal("uint8 below 300", "less", kU8, int64_t{300}),
      with_literal("uint64 above -1", "greater", kU64, int64_t{-1}),
      with_literal("int64 equal to 2**63", "equal", kI64, uint64_t{1} << 63),
      binary("uint8 with a run-time Python int", "less", kU8, python_int("k")),
      binary("uint64 with a run-time Python int", "greater_equal", kU64, python_int("k")),
      binary("logical and of floats", "logical_and", kX, kI),
      unary("isnan of an integer", "isnan", kI),
      unary("floor of an integer", "floor", kI),
      unary("sign of a float", "sign", kX),
      unary("sign of an unsigned", "sign", kU8),
      unary("reciprocal of an integer", "reciprocal", kI),
      unary("invert of bool", "invert", kB),
      unary("degrees", "rad2deg", kX),
      {"where",
       {kX, kI},
       [](Trace& t) { return std::vector{t.call("where", t[0], t[1], literal(2.5))}; }},
      {"clip with bounds that bound nothing",
       {kU8},
       [](Trace& t) {
         return std::vector{t.call("clip", t[0], literal(int64_t{-1}), literal(int64_t{300}))};
       }},
      {"clip with a run-time bound",
       {kU8, python_int("k")},
       [](Trace& t) { return std::vector{t.call("clip", t[0], t[1])}; }},
      {"a read sees the stores before it",
       {kX},
       [](Trace& t) {
         const Value before = t.call("add", t[0], literal(1.0));
         t.store(t[0], before);
         return std::vector{t.call("multiply", t[0], t[0])};
       }},
      {"store casts and broadcasts",
       {array(DType::i32, "o", {3, 4}), array(DType::f64, "x", {4})},
       [](Trace& t) {
         t.store(t[0], t[1]);
         return std::vector<Value>{};
       }},
      {"store drops leading ones",
       {kX, array(DType::f32, "y", {1, 1, 5})},
       [](Trace& t) {
         t.store(t[0], t[1]);
         return std::vector<Value>{};
       }},
      {"store of a Python int argument",
       {kU8, python_int("k")},
       [](Trace& t) {
         t.store(t[0], t[1]);
         return std::vector<Value>{};
       }},
      {"out= casts within a kind",
       {kX, array(DType::f64, "y", {5})},
       [](Trace& t) {
         t.store_out(t[0], t.call("exp", t[1]));
         return std::vector<Value>{};
       }},
      {"several results, one a literal",
       {kX},
       [](Trace& t) { return std::vector{t[0], literal(int64_t{7}), t.cast(t[0], DType::b1)}; }},
  };
  return list;
}

constexpr const char* kGolden = PK_SOURCE_DIR "/tests/frontend/traces.txt";

// Sections `## name` with a text below.
std::map<std::string, std::string> read_golden() {
  std::map<std::string, std::string> texts;
  std::ifstream file(kGolden);
  std::string name;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## "))
      name = line.substr(3);
    else
      texts[name] += line + "\n";
  }
  return texts;
}

TEST(Tracer, GivesTheseGraphs) {
  const std::map<std::string, std::string> expected = read_golden();
  std::ostringstream all;
  size_t count = 0;
  for (const Case& c : cases()) {
    Trace trace(c.args);
    const std::vector<Value> results = c.body(trace);
    const std::string text = ir::print(trace.finish(results));
    const auto golden = expected.find(c.name);
    EXPECT_EQ(text, golden == expected.end() ? "" : golden->second) << c.name;
    EXPECT_EQ(ir::print(ir::parse(text, "traces.txt").at(0)), text) << c.name;
    all << "## " << c.name << "\n" << text;
    ++count;
  }
  if (std::getenv("PK_UPDATE_GOLDEN") != nullptr) std::ofstream(kGolden) << all.str();
  EXPECT_EQ(count, expected.size()) << "traces.txt has other cases";
}

TEST(Tracer, KeepsTheUsersLines) {
  Trace t({kX});
  const Value sum = t.call("add", t[0], literal(1.0));
  const ir::Module m = t.finish({t.call("sqrt", sum)});
  std::vector<uint32_t> lines;
  for (const ir::OpId id : m.blocks[ir::Module::body()].ops)
    lines.push_back(m.location(m.ops[id]).line);
  EXPECT_EQ(lines, (std::vector<uint32_t>{2, 2, 2, 3, 4}));  // read, constant, add, sqrt, return
}

TEST(Tracer, KnowsItsUfuncs) {
  EXPECT_EQ(Tracer::arity("where"), 3);
  EXPECT_EQ(Tracer::arity("abs"), 1);
  const auto names = Tracer::known_ufuncs();
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_TRUE(std::ranges::binary_search(names, std::string_view("divide")));  // an alias
  EXPECT_FALSE(std::ranges::binary_search(names, std::string_view("matmul")));
}

}  // namespace
}  // namespace picokernel::frontend::testing
