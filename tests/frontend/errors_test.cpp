// One bad trace per message: what is wrong with the types seen, what is allowed, one hint, the
// user's line.
#include <gtest/gtest.h>

#include "frontend/trace_cases.h"

namespace picokernel::frontend::testing {
namespace {

const ArgSpec kX = array(DType::f32, "x", {3, 4});
const ArgSpec kI = array(DType::i32, "i", {3, 4});
const ArgSpec kU8 = array(DType::u8, "u", {3, 4});
const ArgSpec kB = array(DType::b1, "b", {3, 4});

// The one diagnostic that the body ends in. It is an E, at line 2 of k.py, the line of the first
// use.
template <class E, class Body>
Diagnostic failure(std::vector<ArgSpec> args, Body body) {
  Trace t(std::move(args));
  try {
    body(t);
  } catch (const E& e) {
    EXPECT_EQ(e.diagnostics().size(), 1u);
    const Diagnostic& d = e.diagnostics().at(0);
    EXPECT_EQ(to_string(d.location), "k.py:2:5");
    EXPECT_EQ(d.severity, Severity::error);
    EXPECT_TRUE(!d.notes.empty() && d.notes.back().starts_with("hint: ")) << e.what();
    return d;
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(TraceErrors, UnknownUfunc) {
  const Diagnostic d = failure<CompileError>({kX}, [](Trace& t) { t.call("sqr", t[0]); });
  EXPECT_EQ(d.message, "`sqr` cannot be traced");
  EXPECT_EQ(d.notes.at(1), "hint: did you mean `sqrt`?");
  const Diagnostic far = failure<CompileError>({kX}, [](Trace& t) { t.call("linalg_svd", t[0]); });
  EXPECT_EQ(far.notes.at(1), "hint: compose it from these");
}

TEST(TraceErrors, NumberOfOperands) {
  const Diagnostic d = failure<CompileError>({kX}, [](Trace& t) { t.call("add", t[0]); });
  EXPECT_EQ(d.message, "`add` takes 2 operands, not 1");
}

TEST(TraceErrors, ShapesThatDoNotBroadcast) {
  const Diagnostic d = failure<LaunchError>({kX, array(DType::f32, "y", {5})},
                                            [](Trace& t) { t.call("add", t[0], t[1]); });
  EXPECT_EQ(d.message, "`add`: shapes (3,4) and (5,) do not broadcast");
  EXPECT_EQ(d.notes.at(0), "arguments: x (3,4), y (5,)");
}

TEST(TraceErrors, TypesWithoutALoop) {
  Diagnostic d =
      failure<CompileError>({kX, kI}, [](Trace& t) { t.call("bitwise_and", t[0], t[1]); });
  EXPECT_EQ(d.message, "`bitwise_and` of float32 and int32");
  d = failure<CompileError>({kB}, [](Trace& t) { t.call("subtract", t[0], literal(true)); });
  EXPECT_EQ(d.message, "`subtract` of bool and Python bool");
  EXPECT_EQ(d.notes.at(1), "hint: write a ^ b (logical_xor) for booleans");
  d = failure<CompileError>({kB}, [](Trace& t) { t.call("negative", t[0]); });
  EXPECT_EQ(d.notes.at(1), "hint: write ~a (logical_not) for booleans");
}

TEST(TraceErrors, PythonNumbersThatDoNotFit) {
  Diagnostic d =
      failure<CompileError>({kU8}, [](Trace& t) { t.call("add", t[0], literal(int64_t{300})); });
  EXPECT_EQ(d.message, "the Python number 300 does not fit uint8, the type of what it meets");
  EXPECT_EQ(d.notes.at(0), "uint8 holds 0 to 255");
  failure<CompileError>({kU8}, [](Trace& t) { t.call("maximum", t[0], literal(int64_t{-1})); });
  failure<CompileError>({kU8}, [](Trace& t) { t.store(t[0], literal(256.5)); });
  failure<CompileError>({kI}, [](Trace& t) { t.cast(literal(uint64_t{1} << 63), DType::i32); });
  failure<CompileError>(
      {kU8}, [](Trace& t) { t.call("clip", t[0], literal(int64_t{300}), literal(int64_t{400})); });
}

TEST(TraceErrors, NegativePowersOfIntegers) {
  const Diagnostic d =
      failure<CompileError>({kI}, [](Trace& t) { t.call("power", t[0], literal(int64_t{-2})); });
  EXPECT_EQ(d.message, "integers cannot be raised to a negative integer power: int32 ** -2");
  EXPECT_EQ(d.notes.at(1), "hint: write -2.0 for a float64 result");
}

TEST(TraceErrors, Stores) {
  Diagnostic d = failure<LaunchError>({kX, array(DType::f32, "y", {4, 4})},
                                      [](Trace& t) { t.store(t[0], t[1]); });
  EXPECT_EQ(d.message, "shape (4,4) of the value does not broadcast to shape (3,4) of the target");
  d = failure<LaunchError>({array(DType::f32, "o", {3, 1}), kX},
                           [](Trace& t) { t.store_out(t[0], t[1]); });
  EXPECT_EQ(d.message, "shape (3,4) of the value does not broadcast to shape (3,1) of out=");
  d = failure<LaunchError>({array(DType::f32, "o", {1}), array(DType::f32, "x", {1, 1})},
                           [](Trace& t) { t.store_out(t[0], t[1]); });
  EXPECT_EQ(d.message, "shape (1,1) of the result does not fit shape (1,) of out=");
  d = failure<CompileError>({kI, kX}, [](Trace& t) { t.store_out(t[0], t[1]); });
  EXPECT_EQ(d.message, "out= of type int32 cannot take a result of type float32");
}

TEST(TraceErrors, KernelThatComputesNothing) {
  const Diagnostic d = failure<CompileError>({kX}, [](Trace& t) { t.finish(); });
  EXPECT_EQ(d.message,
            "kernel `f` computes nothing: it stores into no argument, and returns nothing or its "
            "arguments as they are");
}

}  // namespace
}  // namespace picokernel::frontend::testing
