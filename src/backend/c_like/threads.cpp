// Threads of a grid: ids, shared memory, barriers and atomics.
#include <algorithm>
#include <array>

#include "backend/c_like/printer.h"
#include "support/check.h"

namespace picokernel::backend::c_like {

using ir::Op;
using ir::Opcode;
using ir::OpId;
using ir::TypeKind;
using ir::ValueId;

namespace {

// What the new value is, from x (what is there) and v (the operand); of integers $0 is the type,
// $1 the unsigned one of its size.
std::string_view combined(Opcode opcode, bool floating) {
  switch (opcode) {
    case Opcode::atomic_add:
      return floating ? "" : "($0)(($1)x + ($1)v)";
    case Opcode::atomic_minimum:
      return floating ? "x != x ? x : v != v ? v : x < v || (x == v && 1 / x < 0) ? x : v"
                      : "x < v ? x : v";
    case Opcode::atomic_maximum:
      return floating ? "x != x ? x : v != v ? v : x > v || (x == v && 1 / x > 0) ? x : v"
                      : "x > v ? x : v";
    case Opcode::atomic_fmin:
      return floating ? "x != x ? v : v != v ? x : x < v || (x == v && 1 / x < 0) ? x : v"
                      : "x < v ? x : v";
    case Opcode::atomic_fmax:
      return floating ? "x != x ? v : v != v ? x : x > v || (x == v && 1 / x > 0) ? x : v"
                      : "x > v ? x : v";
    case Opcode::atomic_and:
      return "x & v";
    case Opcode::atomic_or:
      return "x | v";
    case Opcode::atomic_xor:
      return "x ^ v";
    case Opcode::atomic_inc:
      return "($1)x >= ($1)v ? 0 : ($0)(($1)x + 1)";
    case Opcode::atomic_dec:
      return "x == 0 || ($1)x > ($1)v ? v : ($0)(($1)x - 1)";
    case Opcode::atomic_exchange:
      return "v";
    case Opcode::atomic_cas:
      return "";
    default:
      PK_UNREACHABLE(ir::info(opcode).name);
  }
}

bool is_vote(Opcode opcode) { return opcode > Opcode::barrier && opcode <= Opcode::barrier_or; }

}  // namespace

std::vector<Diagnostic> check_threads(const ir::Module& m, std::string_view backend) {
  std::vector<Diagnostic> found;
  ir::walk(m, [&](OpId id) {
    const Op& op = m.ops[id];
    const auto refuse = [&](const std::string& what, std::string hint) {
      found.push_back({.location = m.location(op),
                       .message = std::string(backend) + " does not run " + what,
                       .notes = {std::move(hint)}});
    };
    if (!found.empty()) return;
    if (ir::info(op.opcode).atomic() && size_of(m.type(op.operands[0]).dtype) < 4)
      refuse("atomics on " + std::string(numpy_name(m.type(op.operands[0]).dtype)),
             "they take integers and floats of 4 and 8 bytes");
    if (op.opcode == Opcode::alloc &&
        (m.def(op.operands[0]) == nullptr || m.def(op.operands[0])->opcode != Opcode::constant))
      refuse("local arrays whose size is no constant", "give a number");
  });
  return found;
}

// So that compilers and debuggers name the user's lines.
void Printer::mark_line(const Op& op) {
  const Location where = m_.location(op);
  const bool silent = op.opcode == Opcode::constant || ir::info(op.opcode).terminator();
  if (!marks_lines_ || !where.known() || silent || line_ == std::pair(where.file, where.line))
    return;
  line_ = {where.file, where.line};
  std::string file;
  for (const char c : where.file) {
    if (c == '\\' || c == '"') file += '\\';
    file += c;
  }
  out_ += "#line " + std::to_string(where.line) + " \"" + file + "\"\n";
}

bool Printer::of_threads(const Op& op) {
  const Threads& threads = *dialect_.threads;
  if (op.opcode >= Opcode::thread_id && op.opcode <= Opcode::grid_dim) {
    const ValueId v = op.results[0];
    const auto which = static_cast<size_t>(op.opcode) - static_cast<size_t>(Opcode::thread_id);
    const std::string axis(1, static_cast<char>('0' + op.attribute));
    const std::string letter(1, "xyz"[op.attribute]);
    if (uses_[v.value] != 0)
      line("const " + declared(v) + name(v) + " = " + fill(threads.ids[which], {axis, letter}) +
           ";");
  } else if (op.opcode == Opcode::shared) {
    shared(op);
  } else if (op.opcode == Opcode::alloc) {
    local_array(op);
  } else if (op.opcode == Opcode::barrier) {
    line(std::string(threads.barrier));
  } else if (is_vote(op.opcode)) {
    vote(op);
  } else if (ir::info(op.opcode).atomic()) {
    atomic(op);
  } else {
    return op.opcode == Opcode::check_index;
  }
  return true;
}

void Printer::shared(const Op& op) {
  const ValueId v = op.results[0];
  mutable_[v.value] = true;
  const std::string_view type = dialect_.elements[static_cast<size_t>(m_.type(v).dtype)];
  const std::string& made = name(v, "shared_memory");
  if (op.attribute == 0)
    line(fill(dialect_.threads->dynamic, {type, made}));
  else
    line(fill(dialect_.threads->shared, {type, made, std::to_string(op.attribute)}));
}

// An array of the thread's own. Its size is a constant: the backend's check sees to that.
void Printer::local_array(const Op& op) {
  const ValueId v = op.results[0];
  mutable_[v.value] = true;
  const Op* size = constant_of(op.operands[0]);
  PK_CHECK(size != nullptr, "a local array of unknown size");
  const auto count = std::max<int64_t>(size->scalar().as<int64_t>(), 1);
  line(std::string(dialect_.elements[static_cast<size_t>(m_.type(v).dtype)]) + " " +
       name(v, "local_memory") + "[" + std::to_string(count) + "];");
}

void Printer::declare_votes() {
  bool votes = false;
  walk(m_, [&](OpId id) { votes |= is_vote(m_.ops[id].opcode); });
  if (!votes) return;
  PK_CHECK(dialect_.threads != nullptr, "votes without threads");
  votes_ = names_.unique("votes");
  line(fill(dialect_.threads->shared,
            {dialect_.values[static_cast<size_t>(DType::i32)], votes_, "1"}));
}

// The first barrier: all have read the last vote. The second one: the counter is 0.
void Printer::vote(const Op& op) {
  const Threads& threads = *dialect_.threads;
  const ValueId v = op.results[0];
  const std::string mine = variable(op.operands[0]);
  line(std::string(threads.barrier));
  line("if (" + std::string(threads.first) + ") " + votes_ + "[0] = 0;");
  line(std::string(threads.barrier));
  const bool all = op.opcode == Opcode::barrier_and;
  line(fill(threads.vote, {all ? "!" + mine : mine, votes_}));
  line(std::string(threads.barrier));
  if (uses_[v.value] == 0) return;
  line("const " + declared(v) + name(v) + " = " + votes_ + "[0]" +
       (op.opcode == Opcode::barrier_count ? ";"
        : all                              ? " == 0;"
                                           : " != 0;"));
}

void Printer::atomic(const Op& op) {
  const ValueId v = op.results[0];
  const std::string pointer =
      at(op.operands[0], Text::atom) + " + " + at(op.operands[1], Text::unary);
  std::string operands;
  for (size_t i = 2; i < op.operands.size(); ++i)
    operands += ", " + at(op.operands[i], Text::binary);
  std::string call = helper(op) + "(" + pointer + operands + ");";
  if (uses_[v.value] != 0) call = "const " + declared(v) + name(v) + " = " + call;
  line(call);
}

std::string Printer::helper(const Op& op) {
  const Threads& threads = *dialect_.threads;
  const ir::Type& pointer = m_.type(op.operands[0]);
  const DType t = pointer.dtype;
  const bool wide = size_of(t) == 8, floating = is_float(t);
  const DType unsigned_type = wide ? DType::u64 : DType::u32;
  PK_CHECK(size_of(t) >= 4, "an atomic of fewer than 4 bytes");
  const bool spaces = !dialect_.spaces[0].empty();
  const bool own =
      pointer.space == ir::Space::local;  // of the thread alone: targets have none there
  static constexpr std::array<std::string_view, 3> kSpaces{"_global", "_shared", "_local"};
  const size_t space = static_cast<size_t>(pointer.space);
  const std::string made = "pk_" + std::string(ir::info(op.opcode).name) + "_" +
                           std::string(numpy_name(t)) +
                           std::string(spaces || own ? kSpaces[space] : "");
  if (std::ranges::find(helpers_, made) != helpers_.end()) return made;
  helpers_.push_back(made);

  const std::string type(dialect_.values[static_cast<size_t>(t)]);
  const std::string bits(dialect_.values[static_cast<size_t>(unsigned_type)]);
  const std::string memory = "volatile " + std::string(dialect_.spaces[space]);
  const bool cas = op.opcode == Opcode::atomic_cas;
  std::string text = std::string(threads.helper) + type + " " + made + "(" + memory + type +
                     " *p, " + type + " v" + (cas ? ", " + type + " w" : "") + ") {\n";
  const std::string_view native = wide ? threads.add64 : threads.add32;
  const std::string place = "(" + memory + bits + " *)p";
  const auto convert = [&](std::string_view to, std::string_view from, std::string_view as) {
    if (floating) return fill(dialect_.bitcast, {to, from, as});
    return std::string(to) + " = (" + std::string(as) + ")" + std::string(from) + ";";
  };
  if (op.opcode == Opcode::atomic_add && !floating && !native.empty() && !own) {
    text += "  return (" + type + ")" + fill(native, {place, "(" + bits + ")v"}) + ";\n}\n\n";
    helper_text_ += text;
    return made;
  }
  std::string value = fill(combined(op.opcode, floating), {type, bits});
  if (op.opcode == Opcode::atomic_add && floating) {
    const auto function = std::ranges::find(dialect_.functions, Opcode::add, &FunctionName::opcode);
    value = function == dialect_.functions.end()
                ? "x + v"
                : std::string(wide ? function->f64 : function->f32) + "(x, v)";
  }
  if (own) {
    text += "  const " + type + " x = *p;\n";
    if (cas)
      text += "  " + bits + " old, wanted;\n  " + convert("old", "x", bits) + "\n  " +
              convert("wanted", "v", bits) + "\n  if (old == wanted) *p = w;\n";
    else
      text += "  *p = " + value + ";\n";
    helper_text_ += text + "  return x;\n}\n\n";
    return made;
  }
  const std::string swap = wide ? std::string(threads.cas64) : std::string(threads.cas32);
  text += "  " + bits + " seen = *(" + memory + bits + " *)p, old, made;\n  " + type + " x;\n";
  if (cas) text += "  " + bits + " wanted;\n  " + convert("wanted", "v", bits) + "\n";
  text += "  do {\n    old = seen;\n    " + convert("x", "old", type) + "\n";
  text += cas ? "    const " + type + " y = old == wanted ? w : x;\n"
              : "    const " + type + " y = " + value + ";\n";
  text += "    " + convert("made", "y", bits) +
          "\n    seen = " + fill(swap, {place, "old", "made"}) +
          ";\n  } while (seen != old);\n  return x;\n}\n\n";
  helper_text_ += text;
  return made;
}

}  // namespace picokernel::backend::c_like
