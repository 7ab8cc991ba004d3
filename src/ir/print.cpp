// The IR as text.
#include <charconv>
#include <cmath>
#include <set>

#include "ir/text.h"
#include "support/check.h"

namespace picokernel::ir {
namespace {

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

template <class T>
std::string shortest(T value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

// Every bit pattern prints so that it reads back: the quiet NaN as nan, other NaNs by their bits.
template <class T>
std::string print_float(Scalar s) {
  using A = Arithmetic<T>;
  const A value = static_cast<A>(s.as<T>());
  if (!std::isnan(value)) return shortest(value);
  if (s == Scalar::of(T(std::numeric_limits<A>::quiet_NaN()))) return "nan";
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(s.bits));
  return buffer;
}

std::string print_scalar(Scalar s) {
  return visit(s.dtype, [&]<class T>(T*) -> std::string {
    if constexpr (std::is_same_v<T, bool>)
      return s.bits != 0 ? "true" : "false";
    else if constexpr (is_floating_type<T>)
      return print_float<T>(s);
    else
      return std::to_string(s.as<T>());
  });
}

class Printer {
 public:
  Printer(const Module& m, PrintOptions options) : m_(m), options_(options) {
    if (options_.names) symbol_names_ = unique_symbol_names();
    number();
  }

  std::string function() {
    out_ += m_.level == Level::kernel ? "kernel @" : "graph @";
    out_ += options_.names ? m_.name : "f";
    out_ += params(m_.params());
    if (!m_.results.empty()) {
      out_ += " -> (";
      for (size_t i = 0; i < m_.results.size(); ++i)
        out_ += (i ? ", " : "") + type(m_.types[m_.results[i]]);
      out_ += ")";
    }
    for (const Guard& g : m_.guards)
      out_ += std::string(&g == m_.guards.data() ? " where " : ", ") + size(g.left) +
              relation(g.relation) + size(g.right);
    for (const RangeCheck& r : m_.range_checks)
      out_ += std::string(&r == m_.range_checks.data() ? " in " : ", ") +
              value(m_.params()[r.param]) + ": " + std::string(text_name(r.dtype));
    if (m_.floats.accuracy == Accuracy::fast) out_ += " accuracy fast";
    if (m_.floats.fastmath) out_ += " fastmath";
    out_ += " ";
    region(Module::body(), 0);
    out_ += "\n";
    return std::move(out_);
  }

  std::string one_op(OpId id) {
    line(id, 0, false);
    return std::move(out_);
  }

  std::string type(const Type& t) const {
    std::string text = t.kind == TypeKind::ref ? "ref " : "";
    if (t.kind == TypeKind::ptr) {
      static constexpr const char* kSpaces[] = {"global", "shared", "local"};
      return "ptr<" + std::string(kSpaces[static_cast<size_t>(t.space)]) + ", " +
             std::string(text_name(t.dtype)) + ">";
    }
    text += text_name(t.dtype);
    if (t.is_scalar()) return text;
    text += "[";
    for (size_t i = 0; i < t.shape.size(); ++i) text += (i ? ", " : "") + size(t.shape[i]);
    return text + "]";
  }

  std::string size(SizeId id) const { return m_.sizes.to_string(id, symbol_names_); }

 private:
  static std::string relation(Relation r) {
    switch (r) {
      case Relation::eq:
        return " == ";
      case Relation::ne:
        return " != ";
      case Relation::ge:
        return " >= ";
    }
    PK_UNREACHABLE();
  }

  // Two symbols must not print alike, whatever a front end called them.
  std::vector<std::string> unique_symbol_names() const {
    std::vector<std::string> names = m_.symbol_names;
    names.resize(m_.sizes.symbol_count());
    std::set<std::string> seen;
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i].empty()) seen.insert("n" + std::to_string(i));
    for (std::string& name : names)
      if (!name.empty() && !seen.insert(name).second) name.clear();
    return names;
  }

  void number() {
    names_.resize(m_.values.size());
    size_t next = 0;
    const auto give = [&](ValueId v) {
      std::string name = options_.names ? m_.values[v].name : "";
      while (!name.empty() && !seen_.insert(name).second) name += "_";
      names_[v.value] = name.empty() ? std::to_string(next++) : name;
    };
    if (m_.blocks.size() != 0) number(Module::body(), give);
  }
  template <class Give>
  void number(BlockId block, Give&& give) {
    for (const ValueId v : m_.blocks[block].params) give(v);
    for (const OpId id : m_.blocks[block].ops) {
      for (const BlockId r : m_.ops[id].regions) number(r, give);
      for (const ValueId v : m_.ops[id].results) give(v);
    }
  }

  std::string value(ValueId v) const { return "%" + names_[v.value]; }
  std::string list(std::span<const ValueId> values) const {
    std::string text;
    for (size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + value(values[i]);
    return text;
  }
  std::string params(std::span<const ValueId> values) const {
    std::string text = "(";
    for (size_t i = 0; i < values.size(); ++i)
      text += (i ? ", " : "") + value(values[i]) + ": " + type(m_.type(values[i]));
    return text + ")";
  }
  std::string carried(std::span<const ValueId> params, std::span<const ValueId> inits) const {
    std::string text;
    for (size_t i = 0; i < inits.size(); ++i)
      text += (i ? ", " : " with ") + value(params[i]) + " = " + value(inits[i]);
    return text;
  }
  std::string map(const IndexMap& map) const {
    std::string text = "[";
    for (const DimMap& d : map.dims) {
      if (&d != map.dims.data()) text += ", ";
      if (d.source == DimMap::kNewAxis)
        text += "new : " + size(d.extent);
      else
        text += std::to_string(d.source) + " : " + size(d.start) + " : " + std::to_string(d.step) +
                " : " + size(d.extent);
    }
    for (const DimPick& p : map.picks)
      text += std::string(&p == map.picks.data() ? " pick " : ", ") + std::to_string(p.source) +
              " : " + size(p.index);
    return text + "]";
  }

  void region(BlockId block, int depth) {
    out_ += "{\n";
    for (const OpId id : m_.blocks[block].ops) line(id, depth + 1, true);
    out_.append(static_cast<size_t>(2 * depth), ' ');
    out_ += "}";
  }

  void line(OpId id, int depth, bool with_regions) {
    const Op& op = m_.ops[id];
    out_.append(static_cast<size_t>(2 * depth), ' ');
    if (!op.results.empty()) out_ += list(op.results) + " = ";
    out_ += info(op.opcode).name;
    const auto body = [&](size_t i) {
      out_ += " ";
      if (with_regions)
        region(op.regions[i], depth);
      else
        out_ += "{ ... }";
    };
    if (op.opcode == Opcode::parallel) {
      out_ += " " + list(m_.blocks[op.regions[0]].params) + " in " + list(op.operands);
      body(0);
    } else if (op.opcode == Opcode::for_) {
      const ForView f{op};
      const std::span<const ValueId> p = m_.blocks[f.body()].params;
      out_ += " " + value(p[0]) + " = " + value(f.from()) + " to " + value(f.to()) + " step " +
              value(f.step()) + carried(p.subspan(1), f.inits());
      body(0);
    } else if (op.opcode == Opcode::while_) {
      const WhileView w{op};
      out_ += carried(m_.blocks[w.condition()].params, w.inits());
      body(0);
      const std::span<const ValueId> p = m_.blocks[w.body()].params;
      out_ += std::string(" do") + (p.empty() ? "" : " ") + list(p);
      body(1);
    } else if (op.opcode == Opcode::if_) {
      out_ += " " + value(op.operands[0]);
      for (size_t i = 0; i < op.results.size(); ++i)
        out_ += (i ? ", " : " : ") + type(m_.type(op.results[i]));
      body(0);
      if (!m_.blocks[op.regions[1]].ops.empty()) {
        out_ += " else";
        body(1);
      }
    } else {
      simple(op);
    }
    const Location where = options_.locations ? m_.location(op) : Location{};
    if (where.known()) {
      out_ += " loc(" + quote(where.file) + ":" + std::to_string(where.line) + ":" +
              std::to_string(where.column);
      if (where.end_column != 0) out_ += "-" + std::to_string(where.end_column);
      out_ += ")";
    }
    if (depth > 0) out_ += "\n";
  }

  void simple(const Op& op) {
    if (op.opcode == Opcode::load) {
      out_ += " " + value(op.operands[0]) + "[" + value(op.operands[1]) + "]";
    } else if (op.opcode == Opcode::store) {
      out_ += " " + value(op.operands[0]) + ", " + value(op.operands[1]) + "[" +
              value(op.operands[2]) + "]";
      if (op.flag()) out_ += " nontemporal";
    } else if (info(op.opcode).atomic()) {
      out_ += " " + value(op.operands[0]) + "[" + value(op.operands[1]) + "], " +
              list(std::span(op.operands).subspan(2));
    } else if (!op.operands.empty()) {
      out_ += " " + list(op.operands);
    }
    switch (info(op.opcode).attribute) {
      case Attribute::scalar:
        out_ += " " + print_scalar(op.scalar());
        break;
      case Attribute::size:
        out_ += " " + size(op.size());
        break;
      case Attribute::map:
        out_ += " " + map(m_.maps[op.map()]);
        break;
      case Attribute::number:
        out_ += " " + std::to_string(op.attribute);
        break;
      case Attribute::none:
      case Attribute::flag:
        break;
    }
    if (info(op.opcode).rule == Rule::explicit_) {
      Type stated = m_.type(op.results[0]);
      if (op.opcode == Opcode::cast || op.opcode == Opcode::bitcast) stated.shape.clear();
      out_ += " : " + type(stated);
    }
  }

  const Module& m_;
  PrintOptions options_;
  std::vector<std::string> names_;         // by value
  std::vector<std::string> symbol_names_;  // by symbol
  std::set<std::string> seen_;
  std::string out_;
};

}  // namespace

std::string print(const Module& m, PrintOptions options) { return Printer(m, options).function(); }
std::string print_op(const Module& m, OpId op) { return Printer(m, {}).one_op(op); }
std::string to_string(const Module& m, TypeId type) { return Printer(m, {}).type(m.types[type]); }
std::string to_string(const Module& m, SizeId size) { return Printer(m, {}).size(size); }

}  // namespace picokernel::ir
