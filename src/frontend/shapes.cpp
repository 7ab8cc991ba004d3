// Broadcasting over symbolic sizes: the sizes of this call decide, and what they decided becomes a
// fact of the trace.
#include "frontend/state.h"
#include "ir/rewriter.h"
#include "support/check.h"

namespace picokernel::frontend {

std::vector<SizeId> Tracer::State::shape(const Value& v) const {
  if (v.kind == Value::Kind::literal) return {};
  std::vector<SizeId> sizes = m.type(v.id).shape;
  if (v.complex && v.kind == Value::Kind::ref) sizes.pop_back();  // of pairs
  return sizes;
}

std::string Tracer::State::spell_shape(const Value& v) const {
  const std::vector<SizeId> sizes = shape(v);
  std::string text;
  for (const SizeId s : sizes)
    text += (text.empty() ? "" : ",") + std::to_string(m.sizes.eval(s, symbol_sizes));
  return "(" + text + (sizes.size() == 1 ? ",)" : ")");
}

uint32_t Tracer::State::last_symbol(SizeId size) const {
  const SizeNode& node = m.sizes[size];
  if (node.kind == SizeKind::symbol) return static_cast<uint32_t>(node.constant);
  uint32_t last = 0;
  for (const auto& [term, coefficient] : node.terms)
    if (!m.sizes.as_constant(term)) last = std::max(last, last_symbol(term));
  return last;
}

// The two sizes become one everywhere: a symbol of one of them gives way to the expression that
// makes them equal, and the parameters' types are what a call is checked against. False if this
// call's sizes differ.
bool Tracer::State::unify(SizeId x, SizeId y) {
  if (m.sizes.eval(x, symbol_sizes) != m.sizes.eval(y, symbol_sizes)) return false;
  const SizeId difference = m.sizes.sub(x, y);
  // Every symbol is the size of some parameter's dimension. The latest one goes, so the others stay
  // so.
  std::optional<uint32_t> gone;
  int64_t sign = 1;
  const SizeNode node = m.sizes[difference];
  const auto consider = [&](SizeId term, int64_t coefficient) {
    const SizeNode& t = m.sizes[term];
    if (t.kind != SizeKind::symbol || (coefficient != 1 && coefficient != -1)) return;
    const auto number = static_cast<uint32_t>(t.constant);
    if (gone && number < *gone) return;
    gone = number;
    sign = coefficient;
  };
  if (node.kind == SizeKind::sum)
    for (const auto& [term, coefficient] : node.terms) consider(term, coefficient);
  else
    consider(difference, 1);
  SizeId value = {};
  if (gone) {  // difference = sign * gone + rest = 0
    const SizeId symbol = m.sizes.symbol(*gone);
    const SizeId rest = m.sizes.sub(difference, m.sizes.mul(m.sizes.constant(sign), symbol));
    value = m.sizes.mul(m.sizes.constant(-sign), rest);
  } else {
    const SizeNode a = m.sizes[x], b = m.sizes[y];
    const bool alike =
        a.kind == SizeKind::floordiv && b.kind == SizeKind::floordiv && a.terms[1] == b.terms[1];
    if (alike && m.sizes.eval(a.terms[0].first, symbol_sizes) ==
                     m.sizes.eval(b.terms[0].first, symbol_sizes))
      return unify(a.terms[0].first, b.terms[0].first);  // equal quotients of equal sizes
    // No expression says it: the trace is for this very size.
    gone = last_symbol(difference);
    value = m.sizes.constant(symbol_sizes[*gone]);
  }
  const SizeTable old = m.sizes;
  m = ir::substitute_sizes(
      m,
      [&](SizeTable& sizes, uint32_t s) {
        return s == *gone ? sizes.import(old, value, {}) : sizes.symbol(s);
      },
      m.symbol_names);
  return true;
}

// True: sizes became equal, so SizeIds in hand are void. False: nothing to do. Nothing: they cannot
// be equal.
std::optional<bool> Tracer::State::join(SizeId x, SizeId y) {
  if (x == y) return false;
  if (!unify(x, y)) return std::nullopt;
  return true;
}

void Tracer::State::broadcast(std::string_view ufunc, std::span<const Value> operands) {
  for (bool again = true; again;) {
    again = false;
    std::vector<SizeId> joined;  // from the last dimension
    for (size_t i = 0; i < operands.size() && !again; ++i) {
      const std::vector<SizeId> sizes = shape(operands[i]);
      if (joined.size() < sizes.size()) joined.resize(sizes.size());
      for (size_t d = 0; d < sizes.size() && !again; ++d) {
        const SizeId size = sizes[sizes.size() - 1 - d];
        SizeId& known = joined[d];
        if (!known.valid() || m.sizes.is_one(known)) {
          known = size;
        } else if (!m.sizes.is_one(size)) {
          const std::optional<bool> unified = join(known, size);
          if (!unified) {
            std::string shapes;
            for (const Value& v : operands)
              if (v.kind != Value::Kind::literal)
                shapes += (shapes.empty() ? "" : " and ") + spell_shape(v);
            launch_error("`" + std::string(ufunc) + "`: shapes " + shapes + " do not broadcast",
                         "hint: sizes must be equal or 1, counted from the last dimension");
          }
          again = *unified;
        }
      }
    }
  }
}

bool Tracer::State::broadcast_to(const Value& v, const Value& target) {
  for (bool again = true; again;) {
    again = false;
    const std::vector<SizeId> from = shape(v), to = shape(target);
    for (size_t d = 0; d < from.size() && !again; ++d) {
      const SizeId size = from[from.size() - 1 - d];
      if (m.sizes.is_one(size)) continue;
      if (d >= to.size() || m.sizes.is_one(to[to.size() - 1 - d])) return false;
      const std::optional<bool> unified = join(to[to.size() - 1 - d], size);
      if (!unified) return false;
      again = *unified;
    }
  }
  return true;
}

void Tracer::State::renumber_symbols() {
  std::vector<std::optional<uint32_t>> number(m.sizes.symbol_count());
  uint32_t next = 0;
  for (const ir::ValueId p : m.params())
    for (const SizeId s : m.type(p).shape)
      if (const SizeNode& node = m.sizes[s]; node.kind == SizeKind::symbol)
        if (auto& n = number[static_cast<size_t>(node.constant)]; !n) n = next++;
  // Symbols that gave way to another one are in no type any more.
  m = ir::substitute_sizes(m,
                           [&](SizeTable& sizes, uint32_t s) {
                             return number[s] ? sizes.symbol(*number[s]) : sizes.constant(0);
                           },
                           {});
}

}  // namespace picokernel::frontend
