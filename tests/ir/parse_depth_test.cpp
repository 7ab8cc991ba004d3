// Text that nests deeply is refused, not parsed until the stack overflows.
#include <string>

#include <gtest/gtest.h>

#include "ir/text.h"

namespace picokernel::ir {
namespace {

std::string repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// The parameter's size in `depth` pairs of what opens and closes.
std::string size_in(const std::string& open, const std::string& close, int depth) {
  return "graph @f(%x: ref f32[" + repeat(open, depth) + "n" + repeat(close, depth) +
         "]) {\n  return\n}\n";
}

// The body and depth - 1 ifs in it.
std::string regions(int depth) {
  return "kernel @f(%c: bool) {\n" + repeat("if %c {\n", depth - 1) + repeat("}\n", depth - 1) +
         "return\n}\n";
}

void expect_refused(const std::string& text, uint32_t line, uint32_t column) {
  try {
    parse(text, "deep.pk", true);
  } catch (const CompileError& e) {
    EXPECT_EQ(e.diagnostics().at(0).message, "nested too deeply: the limit is 200");
    EXPECT_EQ(e.diagnostics().at(0).location.line, line);
    EXPECT_EQ(e.diagnostics().at(0).location.column, column);
    return;
  }
  ADD_FAILURE() << "no error";
}

TEST(ParseDepth, Sizes) {
  const auto column = static_cast<uint32_t>(std::string("graph @f(%x: ref f32[").size()) + 1;
  EXPECT_NO_THROW(parse(size_in("(", ")", 200), "deep.pk"));
  expect_refused(size_in("(", ")", 201), 1, column + 200);
  expect_refused(size_in("(", ")", 1000000), 1, column + 200);
  expect_refused(size_in("-", "", 1000000), 1, column + 200);
  expect_refused(size_in("min(", ", m)", 100000), 1, column + 4 * 200);
  // One after the other they do not nest.
  EXPECT_NO_THROW(parse(size_in("(n) + ", "", 1000), "deep.pk"));
}

TEST(ParseDepth, Regions) {
  EXPECT_NO_THROW(parse(regions(200), "deep.pk"));
  expect_refused(regions(201), 201, 7);
  expect_refused(regions(100000), 201, 7);
}

}  // namespace
}  // namespace picokernel::ir
