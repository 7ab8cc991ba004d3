// The normal form of size expressions.
#include "support/size_expr.h"

#include <algorithm>

#include "support/check.h"

namespace picokernel {

SizeId SizeTable::intern(SizeNode node) {
  const auto [it, added] = interned_.try_emplace(node, SizeId(nodes_.size()));
  if (added) nodes_.push_back(std::move(node));
  return it->second;
}

SizeId SizeTable::constant(int64_t value) {
  return intern({.kind = SizeKind::sum, .constant = value, .terms = {}});
}

SizeId SizeTable::symbol(uint32_t number) {
  symbol_count_ = std::max(symbol_count_, number + 1);
  return intern({.kind = SizeKind::symbol, .constant = number, .terms = {}});
}

std::optional<int64_t> SizeTable::as_constant(SizeId id) const {
  const SizeNode& n = (*this)[id];
  if (n.kind == SizeKind::sum && n.terms.empty()) return n.constant;
  return std::nullopt;
}

bool SizeTable::before(SizeId a, SizeId b) const {
  if (a == b) return false;
  const SizeNode &x = (*this)[a], &y = (*this)[b];
  const bool x_symbol = x.kind == SizeKind::symbol, y_symbol = y.kind == SizeKind::symbol;
  if (x_symbol != y_symbol) return x_symbol;
  if (x.kind != y.kind) return x.kind < y.kind;
  if (x.constant != y.constant) return x.constant < y.constant;
  for (size_t i = 0; i < std::min(x.terms.size(), y.terms.size()); ++i) {
    if (x.terms[i].first != y.terms[i].first) return before(x.terms[i].first, y.terms[i].first);
    if (x.terms[i].second != y.terms[i].second) return x.terms[i].second < y.terms[i].second;
  }
  return x.terms.size() < y.terms.size();
}

SizeId SizeTable::linear(SizeId a, SizeId b, int64_t factor_of_b) {
  SizeNode sum;
  std::map<SizeId, int64_t> terms;
  const auto accumulate = [&](SizeId id, int64_t factor) {
    const SizeNode& n = (*this)[id];
    if (n.kind != SizeKind::sum) {
      terms[id] += factor;
      return;
    }
    sum.constant += factor * n.constant;
    for (const auto& [term, coefficient] : n.terms) terms[term] += factor * coefficient;
  };
  accumulate(a, 1);
  accumulate(b, factor_of_b);
  for (const auto& [term, coefficient] : terms)
    if (coefficient != 0) sum.terms.emplace_back(term, coefficient);
  std::ranges::sort(sum.terms,
                    [&](const auto& x, const auto& y) { return before(x.first, y.first); });
  if (sum.constant == 0 && sum.terms.size() == 1 && sum.terms[0].second == 1)
    return sum.terms[0].first;
  return intern(std::move(sum));
}

SizeId SizeTable::mul(SizeId a, SizeId b) {
  if (as_constant(a)) std::swap(a, b);
  if (const auto factor = as_constant(b)) {
    SizeId zero = constant(0);
    return linear(zero, a, *factor);
  }
  SizeNode product{.kind = SizeKind::product, .constant = 0, .terms = {}};
  for (const SizeId id : {a, b}) {
    const SizeNode& n = (*this)[id];
    if (n.kind == SizeKind::product)
      product.terms.insert(product.terms.end(), n.terms.begin(), n.terms.end());
    else
      product.terms.emplace_back(id, 1);
  }
  std::ranges::sort(product.terms,
                    [&](const auto& x, const auto& y) { return before(x.first, y.first); });
  return intern(std::move(product));
}

SizeId SizeTable::binary(SizeKind kind, SizeId a, SizeId b) {
  return intern({.kind = kind, .constant = 0, .terms = {{a, 1}, {b, 1}}});
}

SizeId SizeTable::minimum(SizeId a, SizeId b) {
  const auto x = as_constant(a), y = as_constant(b);
  if (a == b || (x && y)) return x && y && *y < *x ? b : a;
  return before(b, a) ? binary(SizeKind::minimum, b, a) : binary(SizeKind::minimum, a, b);
}

SizeId SizeTable::maximum(SizeId a, SizeId b) {
  const auto x = as_constant(a), y = as_constant(b);
  if (a == b || (x && y)) return x && y && *y > *x ? b : a;
  return before(b, a) ? binary(SizeKind::maximum, b, a) : binary(SizeKind::maximum, a, b);
}

SizeId SizeTable::floordiv(SizeId a, SizeId b) {
  const auto x = as_constant(a), y = as_constant(b);
  if (x && y) return constant(floor_div(*x, *y));
  if (y == 1) return a;
  return binary(SizeKind::floordiv, a, b);
}

int64_t SizeTable::eval(SizeId id, std::span<const int64_t> symbols) const {
  const SizeNode& n = (*this)[id];
  const auto operand = [&](size_t i) { return eval(n.terms[i].first, symbols); };
  switch (n.kind) {
    case SizeKind::symbol:
      return symbols[static_cast<size_t>(n.constant)];
    case SizeKind::sum: {
      int64_t sum = n.constant;
      for (const auto& [term, coefficient] : n.terms) sum += coefficient * eval(term, symbols);
      return sum;
    }
    case SizeKind::product: {
      int64_t product = 1;
      for (const auto& [term, unused] : n.terms) product *= eval(term, symbols);
      return product;
    }
    case SizeKind::minimum:
      return std::min(operand(0), operand(1));
    case SizeKind::maximum:
      return std::max(operand(0), operand(1));
    case SizeKind::floordiv:
      return floor_div(operand(0), operand(1));
  }
  PK_UNREACHABLE();
}

SizeId SizeTable::import(const SizeTable& from, SizeId id, std::span<const SizeId> replacement) {
  const SizeNode& n = from[id];
  const auto operand = [&](size_t i) { return import(from, n.terms[i].first, replacement); };
  switch (n.kind) {
    case SizeKind::symbol: {
      const auto number = static_cast<size_t>(n.constant);
      return number < replacement.size() ? replacement[number]
                                         : symbol(static_cast<uint32_t>(number));
    }
    case SizeKind::sum: {
      SizeId sum = constant(n.constant);
      for (size_t i = 0; i < n.terms.size(); ++i) sum = linear(sum, operand(i), n.terms[i].second);
      return sum;
    }
    case SizeKind::product: {
      SizeId product = constant(1);
      for (size_t i = 0; i < n.terms.size(); ++i) product = mul(product, operand(i));
      return product;
    }
    case SizeKind::minimum: {
      const SizeId a = operand(0);
      return minimum(a, operand(1));
    }
    case SizeKind::maximum: {
      const SizeId a = operand(0);
      return maximum(a, operand(1));
    }
    case SizeKind::floordiv: {
      const SizeId a = operand(0);
      return floordiv(a, operand(1));
    }
  }
  PK_UNREACHABLE();
}

std::string SizeTable::to_string(SizeId id, std::span<const std::string> names) const {
  const SizeNode& n = (*this)[id];
  const auto atom = [&](SizeId x) {
    const SizeNode& m = (*this)[x];
    const bool bare = m.kind != SizeKind::sum && m.kind != SizeKind::product;
    return bare || as_constant(x) ? to_string(x, names) : "(" + to_string(x, names) + ")";
  };
  switch (n.kind) {
    case SizeKind::symbol: {
      const auto number = static_cast<size_t>(n.constant);
      return number < names.size() && !names[number].empty() ? names[number]
                                                             : "n" + std::to_string(number);
    }
    case SizeKind::sum: {
      std::string text;
      for (const auto& [term, coefficient] : n.terms) {
        const int64_t magnitude = coefficient < 0 ? -coefficient : coefficient;
        text += text.empty() ? (coefficient < 0 ? "-" : "") : (coefficient < 0 ? " - " : " + ");
        if (magnitude != 1) text += std::to_string(magnitude) + "*";
        text += magnitude != 1 ? atom(term) : to_string(term, names);
      }
      if (text.empty()) return std::to_string(n.constant);
      if (n.constant > 0) text += " + " + std::to_string(n.constant);
      if (n.constant < 0) text += " - " + std::to_string(-n.constant);
      return text;
    }
    case SizeKind::product: {
      std::string text;
      for (const auto& [term, unused] : n.terms) text += (text.empty() ? "" : "*") + atom(term);
      return text;
    }
    case SizeKind::minimum:
    case SizeKind::maximum:
    case SizeKind::floordiv:
      return std::string(n.kind == SizeKind::minimum   ? "min("
                         : n.kind == SizeKind::maximum ? "max("
                                                       : "floordiv(") +
             to_string(n.terms[0].first, names) + ", " + to_string(n.terms[1].first, names) + ")";
  }
  PK_UNREACHABLE();
}

}  // namespace picokernel
