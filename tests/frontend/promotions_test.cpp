// Result types of every ufunc for all pairs of types, against what NumPy gives (promotions.txt).
#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include <gtest/gtest.h>

#include "frontend/tracer.h"

namespace picokernel::frontend {
namespace {

// Operands in the order of make_promotions.py, which leaves bfloat16 out: NumPy does not know it.
constexpr DType kTypes[] = {DType::b1,  DType::i8,  DType::i16, DType::i32, DType::i64,
                            DType::u8,  DType::u16, DType::u32, DType::u64, DType::f16,
                            DType::f32, DType::f64, DType::c64, DType::c128};
constexpr size_t kPythonInt = std::size(kTypes), kPythonFloat = kPythonInt + 1,
                 kPythonComplex = kPythonInt + 2;

std::string describe(size_t operand) {
  if (operand == kPythonInt) return "Python int";
  if (operand == kPythonFloat) return "Python float";
  if (operand == kPythonComplex) return "Python complex";
  return std::string(numpy_name(kTypes[operand]));
}

// A Python number is a literal of the trace or, as an argument, known at run time only.
enum class Numbers : uint8_t { literal, argument };

ArgSpec spec(size_t operand) {
  if (operand == kPythonInt)
    return {.kind = ArgSpec::Kind::scalar, .dtype = DType::i64, .weak = true, .name = "k"};
  if (operand == kPythonFloat)
    return {.kind = ArgSpec::Kind::scalar, .dtype = DType::f64, .weak = true, .name = "s"};
  if (operand == kPythonComplex) return {.dtype = DType::c128, .weak = true, .name = "z"};
  return {.dtype = kTypes[operand], .name = "x", .shape = {5}};
}

char result_letter(const std::string& ufunc, const std::vector<size_t>& operands, Numbers numbers) {
  std::vector<ArgSpec> specs;
  for (const size_t o : operands) specs.push_back(spec(o));
  Tracer tracer("f", specs, {});
  std::vector<Value> values;
  for (size_t i = 0; i < operands.size(); ++i) {
    values.push_back(tracer.argument(i));
    if (numbers == Numbers::argument) continue;
    if (operands[i] == kPythonInt)
      values.back() = {.kind = Value::Kind::literal, .weak = true, .literal = int64_t{3}};
    if (operands[i] == kPythonFloat)
      values.back() = {.kind = Value::Kind::literal, .weak = true, .literal = 3.5};
    if (operands[i] == kPythonComplex)
      values.back() = {
          .kind = Value::Kind::literal, .weak = true, .literal = std::complex<double>(0, 3.5)};
  }
  if (ufunc == "where") {
    const std::vector<Value> compared{values[0], values[1]};
    values.insert(values.begin(), tracer.apply("equal", compared, {}));
  }
  if (ufunc == "clip") values.push_back(values[1]);
  try {
    const Value result = tracer.apply(ufunc, values, {});
    EXPECT_FALSE(result.weak) << ufunc;
    const DType dtype = tracer.dtype(result);
    tracer.finish(std::span(&result, 1), {});  // verifies
    return "0123456789abcd"[std::ranges::find(kTypes, dtype) - kTypes];
  } catch (const CompileError& e) {
    EXPECT_GE(e.diagnostics().at(0).notes.size(), 2u) << e.what();
    return '-';
  }
}

TEST(Promotions, AreNumPys) {
  std::ifstream file(PK_SOURCE_DIR "/tests/frontend/promotions.txt");
  ASSERT_TRUE(file) << "promotions.txt is missing";
  size_t checked = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string ufunc, row;
    words >> ufunc;
    for (size_t first = 0; words >> row; ++first)
      for (size_t second = 0; second < row.size(); ++second) {
        if (row[second] == '.') continue;
        const bool unary = Tracer::arity(ufunc) == 1;
        const std::vector<size_t> operands =
            unary ? std::vector{second} : std::vector{first, second};
        for (const Numbers numbers : {Numbers::literal, Numbers::argument}) {
          ++checked;
          EXPECT_EQ(result_letter(ufunc, operands, numbers), row[second])
              << ufunc << " of " << describe(operands[0])
              << (unary ? "" : " and " + describe(operands.back()));
        }
      }
  }
  EXPECT_GT(checked, 10000u);
}

}  // namespace
}  // namespace picokernel::frontend
