// Making nodes; which names statements assign and read.
#include "frontend/threads/tree.h"

namespace picokernel::frontend::threads {

Node name(std::string text, const Location& where) {
  return {.kind = "Name", .where = where, .text = std::move(text)};
}
Node block(std::vector<Node> nodes) { return {.kind = "Block", .fields = std::move(nodes)}; }
Node truth(bool value, const Location& where) {
  return {.kind = "Number", .where = where, .text = "bool", .literal = value};
}
Node assignment(const std::string& to, Node value) {
  const Location where = value.where;
  return {.kind = "Assign", .where = where, .fields = {block({name(to, where)}), std::move(value)}};
}
Node branch(Node test, std::vector<Node> body, std::vector<Node> otherwise, const Location& where) {
  return {.kind = "If",
          .where = where,
          .fields = {std::move(test), block(std::move(body)), block(std::move(otherwise))}};
}

namespace {

void add_targets(const Node& target, std::set<std::string>& names) {
  if (target.is("Name")) names.insert(target.text);
  if (target.is("Tuple") || target.is("Block"))
    for (const Node& item : target.fields) add_targets(item, names);
}

void add_reads(const Node& n, std::set<std::string>& names) {
  if (n.is("Name")) names.insert(n.text);
  for (const Node& field : n.fields) add_reads(field, names);
}

// What a target reads: the array and the index of an element.
void add_target_reads(const Node& target, std::set<std::string>& names) {
  if (target.is("Name")) return;
  if (!target.is("Tuple") && !target.is("Block")) return add_reads(target, names);
  for (const Node& item : target.fields) add_target_reads(item, names);
}

void erase(std::set<std::string>& names, const std::set<std::string>& some) {
  for (const std::string& n : some) names.erase(n);
}

// Names live where a loop's turn begins: until another turn adds none.
template <class Turn>
std::set<std::string> live_in_loop(std::set<std::string> live, Turn turn) {
  while (true) {
    std::set<std::string> more = turn(live);
    more.insert(live.begin(), live.end());
    if (more == live) return live;
    live = std::move(more);
  }
}

}  // namespace

std::set<std::string> assigned_names(std::span<const Node> statements) {
  std::set<std::string> names;
  for (const Node& s : statements) {
    if (s.is("Assign") || s.is("AugAssign") || s.is("AnnAssign") || s.is("For"))
      add_targets(s[0], names);
    for (const Node& field : s.fields)
      if (field.is("Block")) names.merge(assigned_names(field.fields));
  }
  return names;
}

std::set<std::string> live_before(std::span<const Node> statements, std::set<std::string> after) {
  std::set<std::string> live = std::move(after);
  for (size_t i = statements.size(); i-- > 0;) {
    const Node& s = statements[i];
    if (s.is("Assign") || s.is("AnnAssign")) {
      std::set<std::string> targets;
      add_targets(s[0], targets);
      erase(live, targets);
      add_target_reads(s[0], live);
      add_reads(s[1], live);
    } else if (s.is("If")) {
      const Branch b(s);
      std::set<std::string> other = live_before(b.otherwise, live);
      live = live_before(b.body, std::move(live));
      live.merge(other);
      add_reads(b.test, live);
    } else if (s.is("While")) {
      const WhileLoop w(s);
      add_reads(w.test, live);
      live = live_in_loop(std::move(live), [&](const auto& l) { return live_before(w.body, l); });
    } else if (s.is("For")) {
      const ForLoop f(s);
      std::set<std::string> targets;
      add_targets(f.target, targets);
      if (!s.text.empty()) live.insert(s.text);
      live = live_in_loop(std::move(live), [&](const auto& l) {
        std::set<std::string> turn = live_before(f.body, l);
        erase(turn, targets);
        return turn;
      });
      add_reads(f.iterable, live);
    } else {
      add_reads(s, live);  // AugAssign reads its target, too
    }
  }
  return live;
}

}  // namespace picokernel::frontend::threads
