// The normal form of sizes.
#include "support/size_expr.h"

#include <gtest/gtest.h>

namespace picokernel {
namespace {

TEST(SizeExpr, NormalFormDoesNotDependOnHowASumWasMade) {
  SizeTable t;
  const SizeId n = t.symbol(0), m = t.symbol(1), one = t.constant(1);
  EXPECT_EQ(t.add(t.add(n, m), one), t.add(m, t.add(one, n)));
  EXPECT_EQ(t.sub(t.add(n, one), one), n);
  EXPECT_EQ(t.sub(n, n), t.constant(0));
  EXPECT_EQ(t.mul(t.constant(2), t.add(n, one)), t.add(t.add(n, n), t.constant(2)));
  EXPECT_EQ(t.mul(n, m), t.mul(m, n));
  EXPECT_EQ(t.mul(t.mul(n, m), n), t.mul(t.mul(n, n), m));
  EXPECT_EQ(t.minimum(n, m), t.minimum(m, n));
  EXPECT_EQ(t.maximum(n, n), n);
  EXPECT_EQ(t.floordiv(n, one), n);
}

TEST(SizeExpr, TextIsTheSameInTablesThatMetTheSymbolsInAnotherOrder) {
  SizeTable a, b;
  const SizeId n = a.symbol(0), m = a.symbol(1);
  const SizeId bm = b.symbol(1), bn = b.symbol(0);
  EXPECT_EQ(a.to_string(a.add(n, m)), "n0 + n1");
  EXPECT_EQ(b.to_string(b.add(bm, bn)), "n0 + n1");
  EXPECT_EQ(a.to_string(a.sub(a.mul(n, m), a.constant(3))), "n0*n1 - 3");
  EXPECT_EQ(a.to_string(a.sub(a.constant(0), n)), "-n0");
}

TEST(SizeExpr, EvaluatesAndImports) {
  SizeTable t;
  const SizeId n = t.symbol(0), m = t.symbol(1);
  const SizeId e = t.sub(t.mul(t.maximum(n, m), t.constant(2)), t.floordiv(n, t.constant(3)));
  const int64_t sizes[] = {-7, 4};
  EXPECT_EQ(t.eval(e, sizes), 8 + 3);
  SizeTable other;
  const SizeId swapped[] = {other.symbol(1), other.symbol(0)};
  const int64_t back[] = {4, -7};
  EXPECT_EQ(other.eval(other.import(t, e, swapped), back), 8 + 3);
}

TEST(SizeExpr, FloorDivision) {
  EXPECT_EQ(floor_div(-7, 2), -4);
  EXPECT_EQ(floor_div(7, -2), -4);
  EXPECT_EQ(floor_div(7, 0), 0);
  EXPECT_EQ(floor_div(INT64_MIN, -1), INT64_MIN);
}

}  // namespace
}  // namespace picokernel
