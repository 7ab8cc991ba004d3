// Statements and blocks. How expressions are spelt is in expressions.cpp.
#include "backend/c_like/printer.h"

#include <algorithm>
#include <utility>

#include "backend/c_like/literals.h"
#include "support/check.h"

namespace picokernel::backend::c_like {

using ir::BlockId;
using ir::Op;
using ir::Opcode;
using ir::OpId;
using ir::TypeKind;
using ir::ValueId;

std::string fill(std::string_view pattern, std::initializer_list<std::string_view> with) {
  std::string text;
  for (size_t i = 0; i < pattern.size(); ++i)
    if (pattern[i] == '$')
      text += with.begin()[pattern[++i] - '0'];
    else
      text += pattern[i];
  return text;
}

std::string function_name(const ir::Module& m) {
  const std::string name = identifier(m.name);
  return "pk_" + (name.empty() ? "kernel" : name);
}

Printer::Printer(const ir::Module& m, const Dialect& dialect)
    : m_(m),
      dialect_(dialect),
      texts_(m.values.size()),
      uses_(m.values.size()),
      stays_(m.values.size()),
      mutable_(m.values.size()),
      blocks_(m.values.size()) {
  PK_CHECK(m.level == ir::Level::kernel, "lower a graph first");
  names_.reserve(function_name(m));
  names_.reserve(dialect.reserved);
  marks_lines_ = is_of_threads(m);
  count_uses(ir::Module::body(), nullptr);
  several_types_ = !dialect.load_bits.empty() && sees_several_types();
  for (const ValueId v : m.params()) name(v);
}

void Printer::count_uses(BlockId id, const Op* owner) {
  for (const ValueId v : m_.blocks[id].params) blocks_[v.value] = id;
  for (const OpId at : m_.blocks[id].ops) {
    const Op& op = m_.ops[at];
    const bool loop =
        owner != nullptr && owner->opcode != Opcode::if_ && id == owner->regions.back();
    for (const ValueId v : op.operands) {
      ++uses_[v.value];
      if (blocks_[v.value] != id) stays_[v.value] = true;
      // All values of a turn are known before the first is handed on.
      if (op.opcode == Opcode::yield && loop && op.operands.size() > 1) stays_[v.value] = true;
      // Loads alone leave a pointer as it is.
      if (op.opcode != Opcode::load) mutable_[v.value] = true;
    }
    for (const BlockId region : op.regions) count_uses(region, &op);
    for (const ValueId v : op.results) blocks_[v.value] = id;
    allocates_ |= op.opcode == Opcode::alloc && dialect_.threads == nullptr;
  }
}

// Is something written through one type and seen through another? Bytes may be seen by all, the
// signed and the unsigned type of one size by each other.
bool Printer::sees_several_types() const {
  const auto seen_as = [](DType t) {
    return is_float(t) && !is_half(t) ? t : static_cast<DType>(size_of(t));
  };
  std::vector<DType> seen;
  bool stored = false;
  walk(m_, [&](OpId id) {
    const Op& op = m_.ops[id];
    if (op.opcode != Opcode::load && op.opcode != Opcode::store) return;
    const ValueId pointer = op.operands[op.opcode == Opcode::store];
    const DType t = m_.type(pointer).dtype;
    const Op* def = m_.def(pointer);
    if (size_of(t) == 1 || (def != nullptr && def->opcode == Opcode::alloc)) return;
    stored |= op.opcode == Opcode::store;
    seen.push_back(seen_as(t));
  });
  return stored && std::ranges::any_of(seen, [&](DType t) { return t != seen[0]; });
}

std::string Printer::element_pointer(const ir::Type& t, bool constant) const {
  return std::string(dialect_.spaces[static_cast<size_t>(t.space)]) + (constant ? "const " : "") +
         std::string(dialect_.elements[static_cast<size_t>(t.dtype)]) + " " +
         std::string(dialect_.pointer);
}

std::string Printer::declared(ValueId v) const {
  const ir::Type& t = m_.type(v);
  if (t.kind == TypeKind::ptr) return element_pointer(t, !mutable_[v.value]);
  return std::string(dialect_.values[static_cast<size_t>(t.dtype)]) + " ";
}

const std::string& Printer::name(ValueId v, std::string_view wish) {
  const std::string& own = m_.values[v].name;
  texts_[v.value] = {.text = names_.unique(own.empty() ? wish : own)};
  return texts_[v.value].text;
}

// Is there shared memory of the launch's size?
bool uses_dynamic(const ir::Module& m) {
  bool found = false;
  walk(m,
       [&](OpId id) { found |= m.ops[id].opcode == Opcode::shared && m.ops[id].attribute == 0; });
  return found;
}

std::string Printer::signature() {
  std::string text = (allocates_ ? "int " : std::string(dialect_.function)) + function_name(m_);
  std::string params;
  for (const ValueId v : m_.params()) {
    const bool pointer = m_.type(v).kind == TypeKind::ptr;
    params += params.empty() ? "" : ", ";
    if (pointer && !dialect_.memory_parameters.empty())
      params += fill(dialect_.memory_parameters, {texts_[v.value].text});
    else if (is_bool(m_.type(v).dtype) && !pointer && !dialect_.bool_parameter.empty())
      params += std::string(dialect_.bool_parameter) + " " + texts_[v.value].text;
    else
      params += declared(v) + texts_[v.value].text;
  }
  if (uses_dynamic(m_) && !dialect_.threads->dynamic_parameter.empty())
    params += (params.empty() ? "" : ", ") + std::string(dialect_.threads->dynamic_parameter);
  return text + "(" + (params.empty() ? "void" : params) + ")";
}

std::string Printer::function() {
  if (allocates_) names_.reserve("status"), names_.reserve("done");
  open(signature() + " {");
  for (const ValueId v : m_.params())
    if (uses_[v.value] == 0 && dialect_.memory_parameters.empty())
      line("(void)" + texts_[v.value].text + ";");
    else if (m_.type(v).kind == TypeKind::ptr && !dialect_.memory_pointer.empty())
      line(declared(v) + texts_[v.value].text + " = (" + declared(v) + ")" +
           fill(dialect_.memory_pointer, {texts_[v.value].text}) + ";");
  declare_votes();
  if (allocates_) line("int status = -1;");
  walk(m_, [&](OpId id) {
    const Op& op = m_.ops[id];
    if (op.opcode != Opcode::alloc || !allocates_) return;
    mutable_[op.results[0].value] = true;
    line(declared(op.results[0]) + name(op.results[0], "memory") + " = 0;");
  });
  block(ir::Module::body());
  if (allocates_) {
    line("status = 0;");
    out_ += "done:\n";
    free_memory(ir::Module::body(), false);
    line("return status;");
  }
  close();
  return helper_text_ + out_;
}

void Printer::line(const std::string& text) {
  out_.append(static_cast<size_t>(2 * indent_), ' ') += text + "\n";
}
void Printer::open(const std::string& text) {
  line(text);
  ++indent_;
}
void Printer::close(const std::string& text) {
  --indent_;
  line(text);
}

void Printer::block(BlockId id) {
  for (const OpId op : m_.blocks[id].ops) statement(op);
  if (id != ir::Module::body()) free_memory(id, true);
}

void Printer::statement(OpId id) {
  const Op& op = m_.ops[id];
  if (dialect_.threads != nullptr) mark_line(op);
  if (info(op.opcode).elementwise()) return elementwise(op);
  if (op.opcode == Opcode::constant) return constant(op);
  if (op.opcode == Opcode::load) return load(op);
  if (op.opcode == Opcode::store) return store(op);
  if (dialect_.threads != nullptr && of_threads(op)) return;
  if (op.opcode == Opcode::alloc) return alloc(op);
  if (op.opcode == Opcode::parallel) return parallel(op);
  if (op.opcode == Opcode::for_) return for_loop(op);
  if (op.opcode == Opcode::while_) return while_loop(op);
  if (op.opcode == Opcode::if_) return branch(op);
  // What a region yields is handed on by the op that owns it.
  PK_CHECK(op.opcode == Opcode::yield || (op.opcode == Opcode::return_ && op.operands.empty()),
           info(op.opcode).name);
}

void Printer::constant(const Op& op) {
  const ValueId v = op.results[0];
  if (has_literal(op.scalar())) return;  // spelt where it is used
  const DType bits = size_of(op.scalar().dtype) == 4 ? DType::u32 : DType::u64;
  const std::string from = names_.unique("");
  line("const " + std::string(dialect_.values[static_cast<size_t>(bits)]) + " " + from + " = " +
       literal({bits, op.attribute}, dialect_, true) + ";");
  line(declared(v) + name(v) + ";");
  line(fill(dialect_.bitcast,
            {texts_[v.value].text, from, dialect_.values[static_cast<size_t>(op.scalar().dtype)]}));
}

void Printer::load(const Op& op) {
  const ValueId v = op.results[0];
  if (uses_[v.value] == 0) return;
  const DType t = m_.type(v).dtype;
  const bool several = several_types_ && size_of(t) > 1;
  const std::string pointer = at(op.operands[0], Text::atom),
                    offset = at(op.operands[1], several ? Text::unary : Text::binary);
  if (several) {
    line(declared(v) + name(v) + ";");
    line(fill(dialect_.load_bits, {texts_[v.value].text, pointer, offset}));
    return;
  }
  line("const " + declared(v) + name(v) + " = " + pointer + "[" + offset + "]" +
       (is_bool(t) ? " != 0;" : ";"));
}

void Printer::store(const Op& op) {
  const DType t = m_.type(op.operands[0]).dtype;
  const bool several = several_types_ && size_of(t) > 1;
  const std::string pointer = at(op.operands[1], Text::atom),
                    offset = at(op.operands[2], several ? Text::unary : Text::binary);
  if (several)
    line(fill(dialect_.store_bits, {variable(op.operands[0]), pointer, offset}));
  else
    line(pointer + "[" + offset + "] = " + at(op.operands[0], Text::binary) + ";");
}

void Printer::alloc(const Op& op) {
  const std::string memory = texts_[op.results[0].value].text;
  line(fill(dialect_.alloc, {memory, variable(op.operands[0])}));
  line("if (!" + memory + ") goto done;");
}

// Memory is the region's that allocates it: the backend's check sees to it that no pointer leaves.
void Printer::free_memory(BlockId id, bool again) {
  for (const OpId at : m_.blocks[id].ops) {
    const Op& op = m_.ops[at];
    if (!again)
      for (const BlockId region : op.regions) free_memory(region, false);
    if (op.opcode != Opcode::alloc || !allocates_) continue;
    const std::string& memory = texts_[op.results[0].value].text;
    line(fill(dialect_.free, {memory}));
    if (again) line(memory + " = 0;");
  }
}

void Printer::parallel(const Op& op) {
  const ir::ParallelView view{op};
  const std::vector<ValueId>& params = m_.blocks[view.body()].params;
  for (size_t d = 0; d < params.size(); ++d) {
    const std::string extent = at(view.extents()[d], Text::unary);
    const size_t distance = std::min(params.size() - 1 - d, dialect_.parallel.size() - 1);
    open(fill(dialect_.parallel[distance], {name(params[d], "i" + std::to_string(d)), extent}));
  }
  block(view.body());
  for (size_t d = 0; d < params.size(); ++d) close();
}

// One variable is the result and the parameter of all regions.
void Printer::declare_carried(const Op& op, std::span<const ValueId> inits,
                              std::initializer_list<std::span<const ValueId>> params) {
  if (op.results.empty()) return;
  const std::vector<ValueId>& yielded = m_.ops[m_.blocks[op.regions.back()].ops.back()].operands;
  for (size_t i = 0; i < op.results.size(); ++i) {
    const ValueId v = op.results[i];
    mutable_[v.value] = true;
    std::string_view wish;
    uint32_t uses = uses_[v.value];
    for (const std::span<const ValueId> list : params) {
      wish = m_.values[list[i]].name;
      uses += uses_[list[i].value];
      if (yielded[i] == list[i]) --uses;  // handed on as it is
    }
    line(declared(v) + name(v, wish) + " = " + at(inits[i], Text::binary) + ";");
    if (uses == 0) line("(void)" + texts_[v.value].text + ";");
    for (const std::span<const ValueId> list : params) texts_[list[i].value] = texts_[v.value];
  }
}

void Printer::hand_on(BlockId region, std::span<const ValueId> results) {
  if (results.empty()) return;
  const Op& yield = m_.ops[m_.blocks[region].ops.back()];
  std::vector<std::string> from;
  for (size_t i = 0; i < results.size(); ++i) {
    std::string text = at(yield.operands[i], Text::binary);
    for (size_t k = 0; k < i; ++k) {  // assigned before it is read
      if (texts_[results[k].value].text != text) continue;
      std::string copy = names_.unique("");
      line("const " + declared(results[i]) + copy + " = " + text + ";");
      text = std::move(copy);
      break;
    }
    from.push_back(std::move(text));
  }
  for (size_t i = 0; i < results.size(); ++i)
    if (const std::string& to = texts_[results[i].value].text; to != from[i])
      line(to + " = " + from[i] + ";");
}

void Printer::for_loop(const Op& op) {
  const ir::ForView view{op};
  const std::span<const ValueId> params = m_.blocks[view.body()].params;
  declare_carried(op, view.inits(), {params.subspan(1)});
  const std::string from = at(view.from(), Text::binary), to = at(view.to(), Text::unary),
                    i = name(params[0], "i");
  open("for (" + declared(params[0]) + i + " = " + from + "; " + i + " < " + to + "; ++" + i +
       ") {");
  block(view.body());
  hand_on(view.body(), op.results);
  close();
}

// The end of the loop is decided where its turns end, which PoCL asks for where barriers lie on the
// way: elsewhere its threads part.
void Printer::meeting_loop(const Op& op) {
  const ir::WhileView view{op};
  declare_carried(op, view.inits(),
                  {m_.blocks[view.condition()].params, m_.blocks[view.body()].params});
  const std::string type(dialect_.values[static_cast<size_t>(DType::b1)]);
  const std::string goes_on = names_.unique("goes_on");
  const ValueId decided = m_.ops[m_.blocks[view.condition()].ops.back()].operands[0];
  line(type + " " + goes_on + ";");
  const auto decide = [&] {
    block(view.condition());
    line(goes_on + " = " + at(decided, Text::binary) + ";");
    line(std::string(dialect_.threads->barrier));
  };
  decide();
  open("while (" + goes_on + ") {");
  block(view.body());
  hand_on(view.body(), op.results);
  decide();
  close();
}

void Printer::while_loop(const Op& op) {
  const ir::WhileView view{op};
  if (std::ranges::any_of(m_.blocks[view.condition()].ops,
                          [&](OpId id) { return ir::info(m_.ops[id].opcode).barrier(); }))
    return meeting_loop(op);
  declare_carried(op, view.inits(),
                  {m_.blocks[view.condition()].params, m_.blocks[view.body()].params});
  // The condition is an expression, or statements and an expression.
  std::string before = std::exchange(out_, {});
  ++indent_;
  block(view.condition());
  const Op& yield = m_.ops[m_.blocks[view.condition()].ops.back()];
  const std::string condition = at(yield.operands[0], Text::binary);
  --indent_;
  const std::string statements = std::exchange(out_, std::move(before));
  if (statements.empty()) {
    open("while (" + condition + ") {");
  } else {
    open("for (;;) {");
    out_ += statements;
    line("if (!" + at(yield.operands[0], Text::atom) + ") break;");
  }
  block(view.body());
  hand_on(view.body(), op.results);
  close();
}

void Printer::branch(const Op& op) {
  const ir::IfView view{op};
  for (const ValueId v : op.results) {
    mutable_[v.value] = true;
    line(declared(v) + name(v) + ";");
    if (uses_[v.value] == 0) line("(void)" + texts_[v.value].text + ";");
  }
  open("if (" + at(view.condition(), Text::binary) + ") {");
  block(view.then_block());
  hand_on(view.then_block(), op.results);
  const std::vector<OpId>& otherwise = m_.blocks[view.else_block()].ops;
  if (!otherwise.empty()) {
    close("} else {");
    ++indent_;
    block(view.else_block());
    hand_on(view.else_block(), op.results);
  }
  close();
}

}  // namespace picokernel::backend::c_like
