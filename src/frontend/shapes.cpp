// Broadcasting over symbolic sizes: the sizes of this call decide, and what they decided becomes a
// fact of the trace.
#include "frontend/state.h"
#include "ir/rewriter.h"
#include "support/check.h"

namespace picokernel::frontend {

std::vector<SizeId> Tracer::State::shape(const Value& v) const {
  return v.kind == Value::Kind::literal ? std::vector<SizeId>{} : m.type(v.id).shape;
}

std::string Tracer::State::spell_shape(const Value& v) const {
  const std::vector<SizeId> sizes = shape(v);
  std::string text;
  for (const SizeId s : sizes)
    text += (text.empty() ? "" : ",") + std::to_string(m.sizes.eval(s, symbol_sizes));
  return "(" + text + (sizes.size() == 1 ? ",)" : ")");
}

// The two sizes become one symbol everywhere: equal symbols in the parameters' types are what a
// call is checked against. False if this call's sizes differ.
bool Tracer::State::unify(SizeId x, SizeId y) {
  if (m.sizes.eval(x, symbol_sizes) != m.sizes.eval(y, symbol_sizes)) return false;
  const SizeNode& a = m.sizes[x];
  const SizeNode& b = m.sizes[y];
  PK_CHECK(a.kind == SizeKind::symbol && b.kind == SizeKind::symbol,
           "sizes of arrays are symbols or 1");
  const auto kept = static_cast<uint32_t>(std::min(a.constant, b.constant));
  const auto gone = static_cast<uint32_t>(std::max(a.constant, b.constant));
  m = ir::substitute_sizes(
      m, [&](SizeTable& sizes, uint32_t s) { return sizes.symbol(s == gone ? kept : s); },
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
