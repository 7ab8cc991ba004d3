// Flags and branches instead of return, break and continue.
#include <algorithm>
#include <functional>

#include "frontend/threads/tree.h"

namespace picokernel::frontend::threads {
namespace {

// A function's or a loop's body: what its statements may leave.
struct Context {
  std::string on;       // the flag: the rest of the body still runs
  std::string go;       // of a loop: further turns follow; empty: a function's body
  bool leaves = false;  // some statement ends the loop
};

class Structurer {
 public:
  explicit Structurer(const Program& program) : program_(program) {}

  Function run(const Function& f) {
    contexts_.push_back({.on = ".live"});
    std::vector<Node> body = block(f.body);
    if (tested_.contains(".live")) body.insert(body.begin(), assignment(".live", yes(f.where)));
    prune(body);
    return {.name = f.name, .where = f.where, .parameters = f.parameters, .body = std::move(body)};
  }

 private:
  static Node yes(const Location& where) { return truth(true, where); }
  static bool is_loop(const Node& s) { return s.is("For") || s.is("While"); }
  static bool is_exit(const Node& s) { return s.is("Return") || s.is("Break") || s.is("Continue"); }

  // A path through the statement ends early for the innermost context: by a return, or by an exit
  // from that context's loop.
  static bool may_exit(const Node& s, bool inside_of_loop = false) {
    if (s.is("Return")) return true;
    if (is_exit(s)) return !inside_of_loop;
    const bool inner = inside_of_loop || is_loop(s);
    for (size_t i = 0; i < s.fields.size(); ++i) {
      if (!s[i].is("Block")) continue;
      // The else of a loop is outside of it.
      const bool otherwise = is_loop(s) && i + 1 == s.fields.size();
      for (const Node& inside : s[i].fields)
        if (may_exit(inside, otherwise ? inside_of_loop : inner)) return true;
    }
    return false;
  }
  static bool always_exits(const std::vector<Node>& statements) {
    return std::ranges::any_of(statements, [](const Node& s) {
      if (!s.is("If")) return is_exit(s);
      const Branch b(s);
      return always_exits(b.body) && always_exits(b.otherwise);
    });
  }

  bool has_barrier(const Node& n) const {
    if (n.is("Object")) return n.text.starts_with("simt.syncthreads");
    if (n.is("Function")) {
      const auto number = static_cast<size_t>(std::get<int64_t>(n.literal));
      if (std::ranges::find(asked_, number) != asked_.end()) return false;  // it calls itself
      asked_.push_back(number);
      const bool found = has_barrier(program_.at(number).body);
      asked_.pop_back();
      return found;
    }
    return has_barrier(n.fields);
  }
  bool has_barrier(const std::vector<Node>& nodes) const {
    return std::ranges::any_of(nodes, [&](const Node& n) { return has_barrier(n); });
  }

  std::vector<Node> block(std::span<const Node> statements) {
    std::vector<Node> out;
    for (size_t i = 0; i < statements.size(); ++i) {
      const Node& s = statements[i];
      if (is_exit(s)) {
        exit(s, out);
        return out;
      }
      const std::span<const Node> rest = statements.subspan(i + 1);
      if (s.is("If")) {
        if (branches(s, rest, out)) return out;
      } else if (is_loop(s)) {
        if (loop(s, rest, out)) return out;
      } else {
        out.push_back(s);
      }
    }
    return out;
  }

  void exit(const Node& s, std::vector<Node>& out) {
    const auto clear = [&](const std::string& flag) {
      out.push_back(assignment(flag, truth(false, s.where)));
    };
    if (s.is("Return") && !s[0].is("Nothing")) out.push_back(assignment(".result", s[0]));
    for (size_t i = contexts_.size(); i-- > 0;) {
      Context& c = contexts_[i];
      clear(c.on);
      if (c.go.empty() || s.is("Continue")) break;
      clear(c.go);
      c.leaves = true;
      if (s.is("Break")) break;
    }
  }

  static std::vector<Node> joined(std::span<const Node> a, std::span<const Node> b) {
    std::vector<Node> all(a.begin(), a.end());
    all.insert(all.end(), b.begin(), b.end());
    return all;
  }

  // True: `rest` is done, too.
  bool branches(const Node& s, std::span<const Node> rest, std::vector<Node>& out) {
    const Branch b(s);
    const bool nests = std::ranges::none_of(rest, [&](const Node& r) { return has_barrier(r); });
    const bool body_leaves = always_exits(b.body), other_leaves = always_exits(b.otherwise);
    const auto put = [&](std::span<const Node> body, std::span<const Node> otherwise) {
      std::vector<Node> yes_side = block(body);
      out.push_back(branch(b.test, std::move(yes_side), block(otherwise), s.where));
    };
    if (body_leaves && other_leaves) {
      put(b.body, b.otherwise);
      return true;
    }
    if (nests && body_leaves) {
      put(b.body, joined(b.otherwise, rest));
      return true;
    }
    if (nests && other_leaves) {
      put(joined(b.body, rest), b.otherwise);
      return true;
    }
    put(b.body, b.otherwise);
    if (!may_exit(s)) return false;
    guard(rest, out);
    return true;
  }

  bool loop(const Node& s, std::span<const Node> rest, std::vector<Node>& out) {
    const std::string number = std::to_string(++loops_);
    contexts_.push_back({.on = ".on" + number, .go = ".go" + number});
    const size_t last = s.fields.size() - 1, body_at = last - 1;
    Node made = s;
    std::vector<Node>& body = made.fields[body_at].fields;
    body = block(s[body_at].fields);
    const Context c = contexts_.back();
    contexts_.pop_back();
    if (tested_.contains(c.on)) body.insert(body.begin(), assignment(c.on, yes(s.where)));
    std::vector<Node> otherwise = std::exchange(made.fields[last].fields, {});
    if (c.leaves) {
      tested_.insert(c.go);
      out.push_back(assignment(c.go, yes(s.where)));
      if (s.is("For")) {
        made.text = c.go;
      } else {
        made.fields[0] = {.kind = "BoolOp",
                          .where = s[0].where,
                          .fields = {{.kind = "Text", .text = "And"},
                                     threads::block({name(c.go, s.where), s[0]})}};
      }
      if (!otherwise.empty())
        otherwise = {branch(name(c.go, s.where), std::move(otherwise), {}, s.where)};
    }
    out.push_back(std::move(made));
    if (otherwise.empty() && !may_exit(s)) return false;
    // The else is a statement behind the loop.
    if (!may_exit(s)) {
      std::vector<Node> behind = block(joined(otherwise, rest));
      std::ranges::move(behind, std::back_inserter(out));
    } else {
      guard(joined(otherwise, rest), out);
    }
    return true;
  }

  // Statements that run unless the context was left.
  void guard(std::span<const Node> rest, std::vector<Node>& out) {
    if (rest.empty()) return;
    const std::string on = contexts_.back().on;
    tested_.insert(on);
    const Location where = rest[0].where;
    out.push_back(branch(name(on, where), block(rest), {}, where));
  }

  // Flags that nothing tests.
  void prune(std::vector<Node>& statements) const {
    std::erase_if(statements, [&](const Node& s) {
      if (!s.is("Assign")) return false;
      const Node& target = s[0][0];
      const std::string& n = target.text;
      return target.is("Name") && n.starts_with(".") && n != ".result" && !tested_.contains(n);
    });
    for (Node& s : statements)
      for (Node& field : s.fields)
        if (field.is("Block")) prune(field.fields);
  }

  const Program& program_;
  std::vector<Context> contexts_;
  std::set<std::string> tested_;
  mutable std::vector<size_t> asked_;
  int loops_ = 0;
};

}  // namespace

Function structure_exits(const Program& program, const Function& function) {
  return Structurer(program).run(function);
}

}  // namespace picokernel::frontend::threads
