// Statements: what they assign, and what regions hand on.
#include <algorithm>
#include <array>

#include "frontend/threads/compiler.h"
#include "support/check.h"

namespace picokernel::frontend::threads {

using ir::BlockId;
using ir::Opcode;
using ir::ValueId;

namespace {

// What is not of the language, and what to write instead.
struct Unsupported {
  std::string_view kind, what, hint;
};
constexpr Unsupported kStatements[] = {
    {"With", "`with`", "write its statements out"},
    {"Try", "`try`", "test for what may fail before it does: if i < x.size"},
    {"TryStar", "`try`", "test for what may fail before it does: if i < x.size"},
    {"Delete", "`del`", "leave it out: variables end with the function"},
    {"Import", "`import`", "import outside of the kernel"},
    {"ImportFrom", "`import`", "import outside of the kernel"},
    {"Global", "`global`", "pass an array, and store into it"},
    {"Nonlocal", "`nonlocal`", "pass an array, and store into it"},
    {"FunctionDef", "a function inside of it", "define it outside, with @simt.jit(device=True)"},
    {"ClassDef", "a class inside of it", "use arrays, a tuple or several variables"},
    {"Match", "`match`", "write if and elif"},
};

}  // namespace

void Compiler::statements(std::span<const Node> list, const std::set<std::string>& live_after) {
  for (size_t i = 0; i < list.size(); ++i)
    statement(list[i], live_before(list.subspan(i + 1), live_after));
}

void Compiler::statement(const Node& s, const std::set<std::string>& live_after) {
  if (s.is("Assign")) {
    const Thing value = expression(s[1]);
    for (const Node& target : s[0].fields) assign_target(target, value);
  } else if (s.is("AnnAssign")) {
    if (!s[1].is("Nothing")) assign_target(s[0], expression(s[1]));
  } else if (s.is("AugAssign")) {
    augmented(s);
  } else if (s.is("If")) {
    branch_statement(s, live_after);
  } else if (s.is("While")) {
    while_statement(s, live_after);
  } else if (s.is("For")) {
    for_statement(s, live_after);
  } else if (s.is("Raise")) {
    at(s);
    report({.where = s.where, .exception = s.text, .message = s[0].text}, {}, {});
  } else if (s.is("Expr")) {
    if (!s[0].is("Constant")) expression(s[0]);  // a text that documents
  } else if (!s.is("Pass")) {
    const auto known = std::ranges::find(kStatements, s.kind, &Unsupported::kind);
    const bool listed = known != std::end(kStatements);
    error(
        s,
        (listed ? std::string(known->what) : "`" + s.kind + "`") + " is not for kernels of threads",
        {"their statements: assignments, if, for over range, while, break, continue, return, calls",
         "hint: " + (listed ? std::string(known->hint) : "write it with these")});
  }
}

void Compiler::assign_target(const Node& target, const Thing& value) {
  if (target.is("Name")) return assign(target.text, value, target);
  if (target.is("Subscript")) {
    const Thing array = expression(target[0]);
    if (array.kind != Thing::Kind::array)
      error(target, "elements of " + describe(array) + " cannot be assigned",
            {"kernels store into arrays", "hint: assign the whole variable"});
    return store(array.array, indices(target[1]), value, target);
  }
  if (!target.is("Tuple"))
    error(target, "kernels cannot assign to this",
          {"they assign to variables and to elements of arrays", "hint: x[i] = value"});
  if (value.kind != Thing::Kind::tuple || value.items.size() != target.fields.size())
    error(
        target,
        "cannot unpack " + describe(value) +
            (value.kind == Thing::Kind::tuple ? " of " + std::to_string(value.items.size()) : "") +
            " into " + std::to_string(target.fields.size()) + " variables",
        {"tuples unpack into as many variables as they have items", "hint: i, j = simt.grid(2)"});
  for (size_t i = 0; i < value.items.size(); ++i) assign_target(target[i], value.items[i]);
}

// fields: target, operator, value
void Compiler::augmented(const Node& s) {
  const Node& target = s[0];
  if (target.is("Subscript")) {
    const Thing array = expression(target[0]);
    if (array.kind == Thing::Kind::array) {
      const Array at = at_index(array.array, indices(target[1]), target);
      const Thing before = element(at, {}, target);
      return store(at, {}, binary(s[1].text, before, expression(s[2]), s), target);
    }
  }
  const Thing before = expression(target);
  assign_target(target, binary(s[1].text, before, expression(s[2]), s));
}

// ---- What regions change

void Compiler::carried_of(const Thing& t, Carried at, std::vector<Carried>& list) {
  if (t.kind == Thing::Kind::number) list.push_back(at);
  if (t.kind != Thing::Kind::tuple) return;
  for (size_t i = 0; i < t.items.size(); ++i) {
    Carried item = at;
    item.path.push_back(i);
    item.variable += "." + std::to_string(i);
    carried_of(t.items[i], std::move(item), list);
  }
}

std::vector<Compiler::Carried> Compiler::carried(const std::set<std::string>& names) {
  std::vector<Carried> list;
  for (const std::string& name : names) {
    const std::string variable = scope_->prefix + name;
    auto known = scope_->names.find(name);
    if (known == scope_->names.end()) {
      const auto join = joins_.find(variable);
      if (join == joins_.end()) continue;
      const PromotedType type = join->second.common();
      known = scope_->names.emplace(name, of({.weak = type.weak, .id = zero(type)})).first;
    }
    carried_of(known->second, {.name = name, .path = {}, .variable = variable}, list);
  }
  return list;
}

Thing& Compiler::at(const Carried& c) {
  Thing* t = &scope_->names.at(c.name);
  for (const size_t i : c.path) t = &t->items.at(i);
  return *t;
}

std::vector<ValueId> Compiler::values_of(std::span<const Carried> list) {
  std::vector<ValueId> values;
  for (const Carried& c : list)
    values.push_back(b_.cast(at(c).number.id, joins_.at(c.variable).common().dtype));
  return values;
}

void Compiler::bind(std::span<const Carried> list, std::span<const ValueId> values) {
  for (size_t i = 0; i < list.size(); ++i) {
    at(list[i]).number = {.weak = joins_.at(list[i].variable).common().weak, .id = values[i]};
    std::string& name = state_.m.values[values[i]].name;
    if (name.empty() && list[i].path.empty() && !list[i].name.starts_with(".")) name = list[i].name;
  }
}

void Compiler::add_params(BlockId block, std::span<const Carried> list) {
  std::vector<ValueId> params;
  for (const Carried& c : list)
    params.push_back(b_.block_param(block, {.dtype = joins_.at(c.variable).common().dtype}));
  bind(list, params);
}

namespace {

bool same(const Thing& a, const Thing& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  if (a.kind == Thing::Kind::number) return true;
  for (size_t i = 0; i < a.items.size(); ++i)
    if (!same(a.items[i], b.items[i])) return false;
  return a.array.pointer == b.array.pointer && a.array.offset == b.array.offset &&
         a.dtype == b.dtype && a.name == b.name && a.function == b.function;
}

}  // namespace

void Compiler::require_same(const std::set<std::string>& names, const Names& before,
                            const Node& where) {
  for (const std::string& name : names) {
    const Names& names_now = scope_->names;
    const auto now = names_now.find(name), then = before.find(name);
    if (now == names_now.end() || then == before.end()) continue;
    if (!same(now->second, then->second))
      error(where,
            "`" + name + "` is " + describe(then->second) + " or another thing, " +
                describe(now->second) + ", depending on this",
            {"numbers may differ between branches and turns; which array, type or function a name "
             "means may not",
             "hint: use two names"});
  }
}

namespace {

std::set<std::string> both(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::set<std::string> all;
  std::ranges::set_intersection(a, b, std::inserter(all, all.end()));
  return all;
}

}  // namespace

void Compiler::branch_statement(const Node& s, const std::set<std::string>& live_after) {
  const Branch branch(s);
  const Value condition = truth(expression(branch.test), branch.test);
  if (const bool* known = std::get_if<bool>(&condition.literal);
      condition.kind == Value::Kind::literal)
    return statements(*known ? branch.body : branch.otherwise, live_after);
  const std::set<std::string> names = both(assigned_names(std::span(&s, 1)), live_after);
  const Names before = scope_->names;
  const std::array blocks{b_.new_block(), b_.new_block()};
  std::array<Names, 2> after;
  for (const size_t side : {0, 1}) {
    in_block(blocks[side], [&] {
      ranges_.enter(condition.id, side == 0);
      statements(side == 0 ? branch.body : branch.otherwise, live_after);
      ranges_.leave();
    });
    after[side] = std::exchange(scope_->names, before);
  }
  // A variable that one side leaves without a value is what it is on the other one.
  for (const std::string& name : names)
    for (const size_t side : {0, 1})
      if (const auto other = after[1 - side].find(name); other != after[1 - side].end())
        if (after[side].try_emplace(name, other->second).second)
          in_block(blocks[side], [&] {
            std::swap(scope_->names, after[side]);
            std::vector<Carried> list;
            carried_of(other->second, {.name = name, .path = {}, .variable = scope_->prefix + name},
                       list);
            for (const Carried& c : list) at(c).number.id = zero(joins_.at(c.variable).common());
            std::swap(scope_->names, after[side]);
          });
  scope_->names = after[1];
  require_same(names, after[0], s);
  at(s);
  std::vector<Carried> list = carried(names);
  for (const size_t side : {0, 1}) {
    scope_->names = after[side];
    in_block(blocks[side], [&] { yield(values_of(list)); });
  }
  std::vector<ir::Type> types;
  for (const Carried& c : list) types.push_back({.dtype = joins_.at(c.variable).common().dtype});
  at(s);
  const ir::OpId op =
      b_.op_with_regions(Opcode::if_, {condition.id}, {blocks[0], blocks[1]}, types);
  const std::vector<ValueId> results = state_.m.ops[op].results;
  scope_->names = before;
  for (const std::string& name : names)
    if (const auto made = after[0].find(name); made != after[0].end())
      scope_->names[name] = made->second;
  bind(list, results);
}

void Compiler::while_statement(const Node& s, const std::set<std::string>& live_after) {
  const WhileLoop loop(s);
  const std::set<std::string> live = live_before(std::span(&s, 1), live_after),
                              names = both(assigned_names(std::span(&s, 1)), live);
  const std::vector<Carried> list = carried(names);
  const std::vector<ValueId> inits = values_of(list);
  const Names before = scope_->names;
  const BlockId test = b_.new_block(), body = b_.new_block();
  in_block(test, [&] {
    add_params(test, list);
    yield({id(truth(expression(loop.test), loop.test))});
  });
  in_block(body, [&] {
    add_params(body, list);
    statements(loop.body, live);
    require_same(names, before, s);
    yield(values_of(list));
  });
  at(s);
  const ir::OpId op = b_.op_with_regions(Opcode::while_, inits, {test, body});
  const std::vector<ValueId> results = state_.m.ops[op].results;
  scope_->names = before;
  bind(list, results);
}

Compiler::Turns Compiler::turns_of_range(const Node& iterable) {
  const std::vector<Value> bounds = numbers(iterable);
  if (bounds.empty() || bounds.size() > 3)
    error(iterable, "`range` takes 1 to 3 numbers", {"hint: range(start, stop, step)"});
  const auto bound = [&](size_t i) { return as_i64(bounds[i], iterable, "a bound of range"); };
  Turns t;
  t.from = bounds.size() == 1 ? i64(0) : bound(0);
  t.to = bound(bounds.size() == 1 ? 0 : 1);
  t.step = bounds.size() == 3 ? bound(2) : i64(1);
  t.at = [](ValueId index) { return of({.id = index}); };
  return t;
}

// Items of an array along its first dimension, and of a tuple.
Compiler::Turns Compiler::turns_of_items(const Thing& t, const Node& where) {
  if (t.kind == Thing::Kind::array && !t.array.shape.empty() && t.array.shape[0].valid())
    return {i64(0), t.array.shape[0], i64(1), [this, t, where](ValueId index) {
              const Thing at = of({.id = index});
              return element(t.array, std::span(&at, 1), where);
            }};
  if (t.kind != Thing::Kind::tuple || t.items.empty())
    error(where, "kernels do not loop over " + describe(t),
          {"they loop over range(start, stop, step), arrays, tuples, enumerate(x) and zip(x, y)",
           "hint: for i in range(x.size), and x[i] in the body"});
  return {
      i64(0), i64(static_cast<int64_t>(t.items.size())), i64(1), [this, t, where](ValueId index) {
        Value item = number(t.items.back(), where, "an item");
        for (size_t i = t.items.size() - 1; i-- > 0;) {
          const Value is{.id = b_.value(Opcode::eq, {index, i64(static_cast<int64_t>(i))})};
          item = apply("where", std::array{is, number(t.items[i], where, "an item"), item}, where);
        }
        return of(item);
      }};
}

Compiler::Turns Compiler::turns_of(const Node& iterable) {
  const Thing callee = iterable.is("Call") ? expression(iterable[0]) : Thing{};
  if (callee.name == "builtins.range") return turns_of_range(iterable);
  if (callee.name != "builtins.enumerate" && callee.name != "builtins.zip")
    return turns_of_items(expression(iterable), iterable);
  const std::vector<Node>& given = Call(iterable).arguments;
  no_keywords(iterable, callee.name.substr(9));
  const bool counts = callee.name == "builtins.enumerate";
  if (given.empty() || (counts && given.size() > 2))
    error(iterable,
          "`" + callee.name.substr(9) + "` of " + std::to_string(given.size()) + " things",
          {"hint: for i, v in enumerate(x), for v, w in zip(x, y)"});
  std::vector<Turns> parts;
  for (size_t i = 0; i < (counts ? 1 : given.size()); ++i) {
    parts.push_back(turns_of(given[i]));
    if (constant({.id = parts[i].from}) != 0 || constant({.id = parts[i].step}) != 1)
      error(given[i], "this range does not count from 0 by 1",
            {"hint: compute the number in the body: start + i * step"});
  }
  ValueId count = parts[0].to;
  for (size_t i = 1; i < parts.size(); ++i) count = b_.value(Opcode::minimum, {count, parts[i].to});
  const ValueId first = counts && given.size() == 2
                            ? as_i64(number(given[1]), iterable, "where enumerate starts")
                            : ValueId{};
  return {i64(0), count, i64(1), [this, counts, first, parts](ValueId index) {
            Thing t{.kind = Thing::Kind::tuple};
            if (counts)
              t.items.push_back(
                  of({.id = first.valid() ? b_.value(Opcode::add, {index, first}) : index}));
            for (const Turns& part : parts) t.items.push_back(part.at(index));
            return t;
          }};
}

void Compiler::for_statement(const Node& s, const std::set<std::string>& live_after) {
  const ForLoop loop(s);
  const Turns turns = turns_of(loop.iterable);
  const ValueId from = turns.from, to = turns.to, step = turns.step;
  const std::optional<int64_t> known_step = constant({.id = step});
  if (known_step == 0)
    error(loop.iterable, "a step of 0 never ends", {"hint: `range` steps by any other integer"});

  const std::set<std::string> live = live_before(std::span(&s, 1), live_after),
                              names = both(assigned_names(std::span(&s, 1)), live);
  const std::vector<Carried> list = carried(names);
  std::vector<ValueId> inits = values_of(list);
  const Names before = scope_->names;
  const BlockId body = b_.new_block();
  const ValueId index = b_.block_param(body, {.dtype = DType::i64});
  const Range first = ranges_.of(from), last = ranges_.of(to);
  if (known_step && *known_step > 0 && last.high > std::numeric_limits<int64_t>::min())
    ranges_.know(index, {first.low, last.high - 1});
  if (known_step && *known_step < 0 && last.low < std::numeric_limits<int64_t>::max())
    ranges_.know(index, {last.low + 1, first.high});
  ir::OpId op;
  size_t first_result = 0;
  const auto turn = [&] {
    add_params(body, list);
    assign_target(loop.target, turns.at(index));
    statements(loop.body, live);
    require_same(names, before, s);
    return values_of(list);
  };
  if (s.text.empty()) {
    in_block(body, [&] { yield(turn()); });
    at(s);
    inits.insert(inits.begin(), {from, to, step});
    op = b_.op_with_regions(Opcode::for_, inits, {body});
  } else {
    // It goes on while the flag holds, too.
    const BlockId test = b_.new_block();
    const ValueId tested = b_.block_param(test, {.dtype = DType::i64});
    in_block(test, [&] {
      add_params(test, list);
      const auto inside = [&](int64_t sign) {
        const ValueId toward = b_.value(sign > 0 ? Opcode::lt : Opcode::gt, {tested, to});
        if (known_step) return toward;
        const ValueId zero = i64(0);
        return b_.value(Opcode::and_,
                        {b_.value(sign > 0 ? Opcode::gt : Opcode::lt, {step, zero}), toward});
      };
      ValueId more = inside(known_step.value_or(1));
      if (!known_step) more = b_.value(Opcode::or_, {more, inside(-1)});
      const ValueId go = scope_->names.at(s.text).number.id;
      yield({b_.value(Opcode::and_, {go, more})});
    });
    in_block(body, [&] {
      std::vector<ValueId> values = turn();
      values.insert(values.begin(), b_.value(Opcode::add, {index, step}));
      yield(std::move(values));
    });
    at(s);
    inits.insert(inits.begin(), from);
    op = b_.op_with_regions(Opcode::while_, inits, {test, body});
    first_result = 1;
  }
  const std::vector<ValueId> results = state_.m.ops[op].results;
  scope_->names = before;
  bind(list, std::span(results).subspan(first_result));
}

}  // namespace picokernel::frontend::threads
