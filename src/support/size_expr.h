// Sizes of arrays as expressions over symbols: hash-consed, kept in a normal form, evaluated at
// launch without the IR.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/index.h"

namespace picokernel {

using SizeId = Index<struct SizeTag>;

// A sum `constant + Σ coefficient · term` of terms that are themselves no sums, or one of the
// non-linear terms.
enum class SizeKind : uint8_t { sum, symbol, product, minimum, maximum, floordiv };

struct SizeNode {
  SizeKind kind = SizeKind::sum;
  int64_t constant = 0;  // sum: the constant; symbol: its number
  std::vector<std::pair<SizeId, int64_t>>
      terms;  // sum: (term, coefficient), in order of structure; others: operands
  friend auto operator<=>(const SizeNode&, const SizeNode&) = default;
};

class SizeTable {
 public:
  SizeId constant(int64_t value);
  SizeId symbol(uint32_t number);
  SizeId add(SizeId a, SizeId b) { return linear(a, b, 1); }
  SizeId sub(SizeId a, SizeId b) { return linear(a, b, -1); }
  SizeId mul(SizeId a, SizeId b);
  SizeId minimum(SizeId a, SizeId b);
  SizeId maximum(SizeId a, SizeId b);
  /// Rounds towards minus infinity. A zero divisor gives 0.
  SizeId floordiv(SizeId a, SizeId b);

  const SizeNode& operator[](SizeId id) const { return nodes_[id.value]; }
  std::optional<int64_t> as_constant(SizeId id) const;
  bool is_one(SizeId id) const { return as_constant(id) == 1; }
  /// The number of symbols used: one past the largest.
  uint32_t symbol_count() const { return symbol_count_; }

  int64_t eval(SizeId id, std::span<const int64_t> symbols) const;
  /// Copies `id` of another table into this one; symbol s becomes replacement[s].
  SizeId import(const SizeTable& from, SizeId id, std::span<const SizeId> replacement);
  /// `names` gives a name per symbol; missing ones print as n<number>.
  std::string to_string(SizeId id, std::span<const std::string> names = {}) const;

 private:
  SizeId intern(SizeNode node);
  SizeId linear(SizeId a, SizeId b, int64_t factor_of_b);
  SizeId binary(SizeKind kind, SizeId a, SizeId b);
  /// An order that depends on structure alone, never on when a node was made: texts stay canonical.
  bool before(SizeId a, SizeId b) const;

  std::vector<SizeNode> nodes_;
  std::map<SizeNode, SizeId> interned_;
  uint32_t symbol_count_ = 0;
};

/// Floor division with the design's rule for zero: x // 0 == 0.
constexpr int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  const int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

}  // namespace picokernel
