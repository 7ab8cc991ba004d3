// What traced code computes: graphs of scalars, evaluated op by op. Expected values are NumPy's.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "frontend/trace_cases.h"
#include "ir/eval.h"

namespace picokernel::frontend::testing {
namespace {

using ir::Opcode;
using ir::Scalar;

ir::Scalar evaluate(const ir::Module& m, std::span<const Scalar> args) {
  std::vector<Scalar> values(m.values.size());
  for (size_t i = 0; i < args.size(); ++i) values[m.params()[i].value] = args[i];
  for (const ir::OpId id : m.blocks[ir::Module::body()].ops) {
    const ir::Op& op = m.ops[id];
    if (op.opcode == Opcode::return_) return values[op.operands[0].value];
    std::vector<Scalar> operands;
    for (const ir::ValueId v : op.operands) operands.push_back(values[v.value]);
    const ir::ValueId result = op.results[0];
    const DType dtype = m.type(result).dtype;
    if (op.opcode == Opcode::constant)
      values[result.value] = op.scalar();
    else if (op.opcode == Opcode::cast)
      values[result.value] = ir::cast(operands[0], dtype);
    else
      values[result.value] = ir::eval(op.opcode, operands, dtype);
  }
  ADD_FAILURE() << "no return";
  return {};
}

// A strong scalar of T's type, or a literal.
template <class T>
struct Strong {
  T value;
};
template <class T>
Strong(T) -> Strong<T>;

template <class... Operands>
Scalar compute(std::string_view ufunc, Operands... operands) {
  std::vector<ArgSpec> specs;
  std::vector<Scalar> args;
  const auto add = [&]<class T>(T operand) {
    if constexpr (!std::is_convertible_v<T, Literal>) {
      specs.push_back(scalar(dtype_of<decltype(operand.value)>, "x"));
      args.push_back(Scalar::of(operand.value));
    }
  };
  (add(operands), ...);
  Trace t(specs);
  size_t next = 0;
  const auto as_value = [&]<class T>(T operand) {
    if constexpr (std::is_convertible_v<T, Literal>)
      return literal(operand);
    else
      return t[next++];
  };
  const std::vector<Value> values{as_value(operands)...};
  return evaluate(t.finish({t.tracer().apply(ufunc, values, {})}), args);
}

template <class T, class... Operands>
void expect(T expected, std::string_view ufunc, Operands... operands) {
  const Scalar result = compute(ufunc, operands...);
  ASSERT_EQ(result.dtype, dtype_of<T>) << ufunc;
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(result.as<T>())) << ufunc;
      return;
    }
    EXPECT_EQ(std::signbit(result.as<T>()), std::signbit(expected)) << ufunc;
  }
  EXPECT_EQ(result.as<T>(), expected) << ufunc;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Values, Sign) {
  expect(1.0f, "sign", Strong{2.5f});
  expect(-1.0f, "sign", Strong{-2.5f});
  expect(0.0f, "sign", Strong{-0.0f});
  expect(kNan, "sign", Strong{kNan});
  expect(int32_t{-1}, "sign", Strong{int32_t{-7}});
  expect(uint8_t{1}, "sign", Strong{uint8_t{200}});
}

TEST(Values, SquareReciprocalAbsolute) {
  expect(int8_t{1}, "square", Strong{true});
  expect(0.25, "reciprocal", Strong{4.0});
  expect(-kInf, "reciprocal", Strong{-0.0f});
  expect(int32_t{0}, "reciprocal", Strong{int32_t{-2}});
  expect(int32_t{-1}, "reciprocal", Strong{int32_t{-1}});
  expect(true, "absolute", Strong{true});
  expect(uint8_t{200}, "absolute", Strong{uint8_t{200}});
  expect(int8_t{-128}, "absolute", Strong{int8_t{-128}});
}

TEST(Values, Heaviside) {
  expect(0.0f, "heaviside", Strong{-1.5f}, 0.5);
  expect(0.5f, "heaviside", Strong{0.0f}, 0.5);
  expect(1.0f, "heaviside", Strong{kInf}, 0.5);
  expect(kNan, "heaviside", Strong{kNan}, 0.5);
}

TEST(Values, Clip) {
  expect(2.0f, "clip", Strong{5.0f}, int64_t{0}, int64_t{2});
  expect(kNan, "clip", Strong{kNan}, int64_t{0}, int64_t{2});
  expect(uint8_t{200}, "clip", Strong{uint8_t{200}}, int64_t{-1}, int64_t{300});
  expect(uint8_t{100}, "clip", Strong{uint8_t{200}}, int64_t{-1}, int64_t{100});
  expect(int64_t{1}, "clip", Strong{true}, int64_t{0}, int64_t{1});
}

TEST(Values, Power) {
  expect(6.25f, "power", Strong{2.5f}, int64_t{2});
  expect(1.5, "power", Strong{2.25}, 0.5);
  expect(0.25f, "power", Strong{4.0f}, int64_t{-1});
  expect(1.0f, "power", Strong{kNan}, int64_t{0});
  expect(int32_t{1870418611}, "power", Strong{int32_t{3}}, Strong{int32_t{21}});
  expect(int8_t{0}, "power", Strong{int8_t{16}}, int64_t{2});
  expect(0.25, "power", Strong{int32_t{2}}, -2.0);
  expect(int64_t{1}, "power", Strong{int64_t{0}}, int64_t{0});
}

TEST(Values, UnsignedAndPythonIntegers) {
  const uint64_t big = 1721142608025344941u;
  expect(uint64_t{big + 5000}, "add", Strong{big}, int64_t{5000});
  expect(false, "greater_equal", Strong{big}, Strong{big + 49});
  expect(true, "greater", Strong{uint64_t{1} << 63}, Strong{int64_t{-1}});
  expect(true, "less", Strong{int64_t{-1}}, Strong{uint64_t{0}});
  expect(false, "equal", Strong{~uint64_t{0}}, Strong{int64_t{-1}});
  expect(true, "not_equal", Strong{~uint64_t{0}}, Strong{int8_t{-1}});
  expect(true, "greater", Strong{uint64_t{3}}, int64_t{-1});
  expect(false, "equal", Strong{uint8_t{251}}, int64_t{-5});
  expect(true, "less_equal", Strong{int64_t{5}}, uint64_t{1} << 63);
  expect(true, "greater", int64_t{300}, Strong{uint8_t{255}});
  expect(false, "less", int64_t{300}, Strong{uint8_t{255}});
  expect(false, "equal", Strong{true}, int64_t{2});
  expect(uint8_t{44}, "where", Strong{false}, Strong{uint8_t{1}}, int64_t{300});
}

TEST(Values, BoolsAndTests) {
  expect(true, "add", Strong{true}, Strong{true});
  expect(int64_t{2}, "add", Strong{true}, int64_t{1});
  expect(int8_t{2}, "left_shift", Strong{true}, Strong{true});
  expect(false, "invert", Strong{true});
  expect(false, "logical_and", Strong{2.0f}, Strong{int32_t{0}});
  expect(true, "logical_not", Strong{0.0f});
  expect(false, "isnan", Strong{int32_t{3}});
  expect(true, "isfinite", Strong{true});
  expect(true, "signbit", Strong{int8_t{-3}});
  expect(true, "signbit", Strong{-0.0f});
  expect(false, "signbit", Strong{~uint64_t{0}});
}

TEST(Values, BitsOfFloats) {
  expect(1.0f + 0x1p-23f, "nextafter", Strong{1.0f}, int64_t{2});
  expect(-0x1p-149f, "nextafter", Strong{0.0f}, Strong{-kInf});
  expect(kNan, "nextafter", Strong{1.0f}, Strong{kNan});
  expect(kInf, "nextafter", Strong{std::numeric_limits<float>::max()}, Strong{kInf});
  expect(-0x1p-52, "spacing", Strong{-1.0});
  expect(0x1p-149f, "spacing", Strong{-0.0f});
  expect(kNan, "spacing", Strong{kInf});
  expect(0.75, "frexp_mantissa", Strong{0x1.8p-1070});
  expect(int32_t{-1069}, "frexp_exponent", Strong{0x1.8p-1070});
  expect(int32_t{0}, "frexp_exponent", Strong{-kInf});
  expect(-0.25f, "modf_fraction", Strong{-3.25f});
  expect(-0.0f, "modf_fraction", Strong{-kInf});
  expect(-3.0f, "modf_whole", Strong{-3.25f});
}

// Rounded once, though three factors are multiplied.
TEST(Values, Ldexp) {
  expect(24.0f, "ldexp", Strong{3.0f}, int64_t{3});
  expect(0x1.8p-1073, "ldexp", Strong{1.5}, Strong{int64_t{-1073}});
  expect(0x1p-1074, "ldexp", Strong{0x1.0000000000001p-1}, Strong{int32_t{-1074}});
  expect(0.0, "ldexp", Strong{0x1p-1}, Strong{int32_t{-1074}});
  expect(0x1p1023, "ldexp", Strong{0x1p-1074}, Strong{int16_t{2097}});
  expect(-kInf, "ldexp", Strong{-1.0f}, Strong{int64_t{1} << 40});
}

TEST(Values, Divisors) {
  expect(int8_t{-128}, "gcd", Strong{int8_t{-128}}, Strong{int8_t{0}});
  expect(int32_t{12}, "lcm", Strong{int32_t{-4}}, int64_t{6});
  expect(int32_t{0}, "lcm", Strong{int32_t{0}}, int64_t{0});
  expect(int32_t{-1}, "fmod", Strong{int32_t{-9}}, Strong{int32_t{4}});
  expect(int32_t{1}, "fmod", Strong{int32_t{9}}, Strong{int32_t{-4}});
  expect(uint8_t{7}, "bitwise_count", Strong{int16_t{-127}});
  expect(uint8_t{1}, "bitwise_count", Strong{true});
}

TEST(Values, Division) {
  expect(int32_t{-3}, "floor_divide", Strong{int32_t{-9}}, Strong{int32_t{4}});
  expect(int32_t{3}, "remainder", Strong{int32_t{-9}}, Strong{int32_t{4}});
  expect(-3.0f, "floor_divide", Strong{-8.0f}, Strong{3.0f});
  expect(0.75, "true_divide", Strong{int8_t{3}}, Strong{int8_t{4}});
}

}  // namespace
}  // namespace picokernel::frontend::testing
