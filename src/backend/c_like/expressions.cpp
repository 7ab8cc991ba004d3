// Elementwise ops as expressions.
#include <algorithm>

#include "backend/c_like/literals.h"
#include "backend/c_like/printer.h"
#include "ir/eval.h"
#include "support/check.h"

namespace picokernel::backend::c_like {
namespace {

using ir::Op;
using ir::Opcode;
using ir::Scalar;
using ir::ValueId;

constexpr uint8_t kMaxDepth = 3;  // of expressions that stand where they are used

struct Symbol {
  Opcode opcode;
  std::string_view of_numbers, of_bools;
};
constexpr Symbol kSymbols[] = {
    {Opcode::add, "+", "|"},  {Opcode::sub, "-", ""},      {Opcode::mul, "*", "&"},
    {Opcode::div, "/", ""},   {Opcode::floordiv, "/", ""}, {Opcode::mod, "%", ""},
    {Opcode::eq, "==", "=="}, {Opcode::ne, "!=", "!="},    {Opcode::lt, "<", "<"},
    {Opcode::le, "<=", "<="}, {Opcode::gt, ">", ">"},      {Opcode::ge, ">=", ">="},
    {Opcode::and_, "&", "&"}, {Opcode::or_, "|", "|"},     {Opcode::xor_, "^", "!="},
    {Opcode::shl, "<<", ""},  {Opcode::shr, ">>", ""},
};

const Symbol* symbol_of(Opcode opcode) {
  const auto found = std::ranges::find(kSymbols, opcode, &Symbol::opcode);
  return found == std::end(kSymbols) ? nullptr : found;
}

bool is_narrow(DType t) { return is_integer(t) && size_of(t) < 4; }

// The least and the largest value of its type: compilers warn of comparisons with such a literal.
bool is_limit(Scalar s) {
  return ir::visit(s.dtype, [&]<class T>(T*) {
    if constexpr (std::is_integral_v<T>)
      return s == Scalar::of(std::numeric_limits<T>::min()) ||
             s == Scalar::of(std::numeric_limits<T>::max());
    return false;
  });
}

}  // namespace

const Op* Printer::constant_of(ValueId v) const {
  const Op* op = m_.def(v);
  return op != nullptr && op->opcode == Opcode::constant && texts_[v.value].text.empty() ? op
                                                                                         : nullptr;
}

std::string Printer::at(ValueId v, Text::Level most) const {
  Text text = texts_[v.value];
  if (const Op* op = constant_of(v)) {
    text.text = literal(op->scalar(), dialect_, false);
    text.level = text.text[0] == '-' ? Text::unary : Text::atom;
  }
  PK_CHECK(!text.text.empty(), "a value is used before it is printed");
  return text.level > most ? "(" + text.text + ")" : text.text;
}

std::string Printer::variable(ValueId v) {
  if (m_.def(v) != nullptr && (constant_of(v) != nullptr || texts_[v.value].level != Text::atom)) {
    const std::string value = at(v, Text::binary), made = names_.unique("");
    line("const " + declared(v) + made + " = " + value + ";");
    return made;
  }
  return texts_[v.value].text;
}

// Literals are ints where they fit. That is their operation's type too only beside another operand,
// and not to the left of a shift.
std::string Printer::operand(const Op& op, size_t i, Text::Level most) {
  const ValueId v = op.operands[i];
  const Op* constant = constant_of(v);
  if (constant == nullptr) {
    // Compilers warn where a conversion decides a comparison; they do not look into variables.
    const bool compared = info(op.opcode).rule == ir::Rule::compare;
    const bool converted = m_.def(v) != nullptr && m_.def(v)->opcode == Opcode::cast;
    return compared && converted ? variable(v) : at(v, most);
  }
  const size_t first = op.opcode == Opcode::select ? 1 : 0;
  const auto literals = std::span(op.operands).subspan(std::min(i, first));
  const bool alone = std::ranges::all_of(literals, [&](ValueId o) { return constant_of(o); });
  const bool shifted = i == 0 && (op.opcode == Opcode::shl || op.opcode == Opcode::shr);
  const bool ordered = info(op.opcode).rule == ir::Rule::compare && op.opcode != Opcode::eq &&
                       op.opcode != Opcode::ne;
  if (ordered && is_limit(constant->scalar())) return variable(v);
  const std::string text = literal(constant->scalar(), dialect_, alone || shifted);
  return most == Text::atom && text[0] == '-' ? "(" + text + ")" : text;
}

Printer::Text Printer::expression(const Op& op) {
  const DType to = m_.type(op.results[0]).dtype, from = m_.type(op.operands.back()).dtype;
  const std::string_view type = dialect_.values[static_cast<size_t>(to)];
  Text made;
  for (const ValueId v : op.operands)
    made.depth = std::max<uint8_t>(made.depth, texts_[v.value].depth + 1);
  const auto narrowed = [&](std::string text, Text::Level level) {
    made.text = is_narrow(to) ? "(" + std::string(type) + ")(" + text + ")" : std::move(text);
    made.level = is_narrow(to) ? Text::unary : level;
    return made;
  };
  if (op.opcode == Opcode::cast || op.opcode == Opcode::bitcast) {
    if (is_bool(to)) {
      const std::string zero = literal(ir::cast(Scalar::of(0), from), dialect_, false);
      made.text = operand(op, 0, Text::unary) + " != " + zero;
      made.level = Text::binary;
    } else {
      made.text = "(" + std::string(type) + ")" + operand(op, 0, Text::unary);
      made.level = Text::unary;
    }
    return made;
  }
  if (op.opcode == Opcode::neg) return narrowed("-" + operand(op, 0, Text::atom), Text::unary);
  if (op.opcode == Opcode::not_) {
    if (!is_bool(to)) return narrowed("~" + operand(op, 0, Text::atom), Text::unary);
    // Beside a comparison it needs parentheses.
    made.text = "!" + operand(op, 0, Text::atom);
    made.level = Text::binary;
    return made;
  }
  if (op.opcode == Opcode::select) {
    made.text = operand(op, 0, Text::unary) + " ? " + operand(op, 1, Text::unary) + " : " +
                operand(op, 2, Text::unary);
    made.level = Text::binary;
    return made;
  }
  if (const Op* last = constant_of(op.operands.back());
      last != nullptr && op.opcode == Opcode::add && is_unsigned(to)) {
    // x + (2^64 - 1) is x - 1.
    const Scalar less = ir::cast(Scalar::of(uint64_t{0} - last->attribute), to);
    if (less.bits < last->attribute) {
      made.text = operand(op, 0, Text::unary) + " - " + literal(less, dialect_, false);
      made.level = Text::binary;
      return made;
    }
  }
  const auto function = std::ranges::find(dialect_.functions, op.opcode, &FunctionName::opcode);
  if (function != dialect_.functions.end() && is_float(to)) {
    for (size_t i = 0; i < op.operands.size(); ++i)
      made.text += (i == 0 ? "" : ", ") + operand(op, i, Text::binary);
    made.text =
        std::string(to == DType::f32 ? function->f32 : function->f64) + "(" + made.text + ")";
    return made;
  }
  const Symbol* const symbol = symbol_of(op.opcode);
  PK_CHECK(symbol != nullptr, info(op.opcode).name);
  const std::string_view sign = is_bool(from) ? symbol->of_bools : symbol->of_numbers;
  const std::string left = operand(op, 0, Text::unary), right = operand(op, 1, Text::unary);
  return narrowed(left + " " + std::string(sign) + " " + right, Text::binary);
}

bool Printer::stands_inline(const Op& op, const Text& text) const {
  const ValueId v = op.results[0];
  if (is_float(m_.type(v).dtype) || stays_[v.value] || text.depth > kMaxDepth) return false;
  return uses_[v.value] == 1 || (op.opcode == Opcode::cast && text.depth == 1);
}

void Printer::elementwise(const Op& op) {
  const ValueId v = op.results[0];
  if (uses_[v.value] == 0) return;
  if (op.opcode == Opcode::bitcast) return bitcast(op);
  Text text = expression(op);
  if (stands_inline(op, text)) {
    texts_[v.value] = std::move(text);
    return;
  }
  line("const " + declared(v) + name(v) + " = " + text.text + ";");
}

void Printer::bitcast(const Op& op) {
  const ValueId v = op.results[0], from = op.operands[0];
  const std::string_view to = dialect_.values[static_cast<size_t>(m_.type(v).dtype)];
  const auto is_bits = [&](ValueId x) {
    return is_integer(m_.type(x).dtype) || is_half(m_.type(x).dtype);
  };
  if (is_bits(v) && is_bits(from)) {
    const bool same = declared(v) == declared(from);
    if (same && constant_of(from) == nullptr && texts_[from.value].level == Text::atom)
      texts_[v.value] = texts_[from.value];
    else
      line("const " + declared(v) + name(v) + " = " +
           (same ? at(from, Text::binary) : expression(op).text) + ";");
    return;
  }
  const std::string bits = variable(from);
  line(declared(v) + name(v) + ";");
  line(fill(dialect_.bitcast, {texts_[v.value].text, bits, to}));
}

}  // namespace picokernel::backend::c_like
