// Flags and branches instead of return, break and continue.
#include <algorithm>
#include <functional>

#include "frontend/threads/divergence.h"
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
  Structurer(const Program& program, const Function& f)
      : program_(program), divergence_(program, f) {}

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

  bool has_barrier(std::span<const Node> nodes) const {
    return threads::has_barrier(program_, nodes);
  }
  bool has_barrier(const Node& n) const { return has_barrier(std::span(&n, 1)); }

  [[noreturn]] static void fail(const Location& where, std::string message,
                                std::vector<std::string> notes) {
    throw CompileError(
        Diagnostic{.location = where, .message = std::move(message), .notes = std::move(notes)});
  }
  // A branch or loop that depends on the thread.
  void require_uniform(const Node& s, const Node& test, std::string_view what) const {
    const bool inside = has_barrier(std::span(s.fields).subspan(s.is("If")));
    if (const auto source = divergence_.source(test); source && inside)
      fail(s.where,
           "a barrier is in " + std::string(what) + " that depends on the thread, through " +
               *source,
           {"all threads of a block have to reach the same barriers",
            "hint: take the barrier out of it, or make the condition the same for all threads"});
  }
  // Exits from a turn of a loop, in front of a barrier of that turn.
  void require_uniform_exit(const Node& s, std::span<const Node> rest) const {
    if (contexts_.back().go.empty() || !has_barrier(rest) || !leaves_turn(s)) return;
    if (const auto source = divergence_.source(s[0]))
      fail(s.where,
           "a turn ends here, in front of a barrier, depending on the thread, through " + *source,
           {"all threads of a block have to reach the same barriers",
            "hint: put what follows into branches, and the barrier outside of these"});
  }
  static bool leaves_turn(const Node& s) {
    if (s.is("Break") || s.is("Continue")) return true;
    return !is_loop(s) && std::ranges::any_of(s.fields, [](const Node& field) {
      return field.is("Block") && std::ranges::any_of(field.fields, leaves_turn);
    });
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
      } else if (is_loop(s) && may_exit(s) && has_barrier(s)) {
        guarded_loop(s, out);
        guard(rest, out);
        return out;
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
    require_uniform(s, b.test, "a branch");
    require_uniform_exit(s, rest);
    const bool nests = !has_barrier(rest);
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
    require_uniform(s, s[s.is("For")], "a loop");
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

  // ---- Behind an exit

  // Statements that run unless the context was left. No barrier is in a guard: threads that have
  // left still reach it.
  void guard(std::span<const Node> rest, std::vector<Node>& out) {
    std::vector<Node> stretch;
    const auto flush = [&] {
      if (stretch.empty()) return;
      const Location where = stretch[0].where;
      out.push_back(if_on(block(std::exchange(stretch, {})), where));
    };
    for (const Node& s : rest) {
      if (!has_barrier(s)) {
        stretch.push_back(s);
        continue;
      }
      flush();
      if (s.is("If"))
        guarded_branch(s, out);
      else if (is_loop(s))
        guarded_loop(s, out);
      else
        guarded_barrier(s, out);
    }
    flush();
  }

  Node if_on(std::vector<Node> body, const Location& where) {
    const std::string on = contexts_.back().on;
    tested_.insert(on);
    return branch(name(on, where), std::move(body), {}, where);
  }
  // What a thread that has left gives instead of evaluating the expression.
  std::string kept(const Node& expression, Node otherwise, std::vector<Node>& out) {
    const std::string variable = ".kept" + std::to_string(++kept_);
    tested_.insert(variable);
    keep(variable, expression, std::move(otherwise), out);
    return variable;
  }
  void keep(const std::string& variable, const Node& expression, Node otherwise,
            std::vector<Node>& out) {
    out.push_back(assignment(variable, std::move(otherwise)));
    out.push_back(if_on({assignment(variable, expression)}, expression.where));
  }
  // True for all threads where it is for any.
  static Node any(const std::string& variable, const Location& where) {
    return {.kind = "Call",
            .where = where,
            .fields = {{.kind = "Object", .where = where, .text = "simt.syncthreads_or"},
                       threads::block({name(variable, where)}),
                       threads::block({})}};
  }

  [[noreturn]] static void refuse_part(const Node& s) {
    fail(s.where, "a barrier behind a `return` is part of another statement",
         {"threads that have returned pass it, too",
          "hint: write the barrier as a statement of its own, in the kernel itself"});
  }

  void guarded_barrier(const Node& s, std::vector<Node>& out) {
    const bool assigned = s.is("Assign");
    const Node& value = s.fields.back();
    const bool plain = (assigned || s.is("Expr")) && value.is("Call") && value[0].is("Object");
    if (!plain) refuse_part(s);
    Node made = s;
    Node& call = made.fields.back();
    for (Node& operand : call.fields[1].fields) {
      const bool all = value[0].text == "simt.syncthreads_and";
      operand = name(kept(operand, truth(all, operand.where), out), operand.where);
    }
    out.push_back(std::move(made));
  }

  void guarded_branch(const Node& s, std::vector<Node>& out) {
    const Branch b(s);
    require_uniform(s, b.test, "a branch");
    if (has_barrier(b.test)) refuse_part(s);
    const std::string taken = kept(b.test, truth(false, s.where), out);
    std::vector<Node> body, otherwise;
    guard(b.body, body);
    guard(b.otherwise, otherwise);
    out.push_back(branch(any(taken, s.where), std::move(body), std::move(otherwise), s.where));
  }

  // Turns until no thread of the block takes part.
  void guarded_loop(const Node& s, std::vector<Node>& out) {
    require_uniform(s, s[s.is("For")], "a loop");
    if (!s.fields.back().fields.empty())
      fail(s.where, "a loop with a barrier and an `else` stands behind a `return`",
           {"hint: put what follows the loop into an `if`"});
    if (has_barrier(s[s.is("For")])) refuse_part(s);
    const std::string number = std::to_string(++loops_);
    std::vector<Node> body = s[s.fields.size() - 2].fields;
    Node test = s[0];
    if (s.is("For")) test = counted(s, body, out);
    const std::string go = ".go" + number, on = ".on" + number;
    const std::string turns = kept(test, truth(false, s.where), out);
    contexts_.push_back({.on = on, .go = go});
    tested_.insert({on, go});
    std::vector<Node> turn{assignment(on, name(turns, s.where)), assignment(go, yes(s.where))};
    guard(body, turn);
    contexts_.pop_back();
    // The next turn, of threads that have not left.
    std::vector<Node> next;
    keep(turns, test, truth(false, s.where), next);
    turn.push_back(assignment(turns, truth(false, s.where)));
    turn.push_back(branch(name(go, s.where), {next.back()}, {}, s.where));
    out.push_back(
        {.kind = "While",
         .where = s.where,
         .fields = {any(turns, s.where), threads::block(std::move(turn)), threads::block({})}});
  }

  // A loop over range as one over a condition: what it counts, and the condition.
  Node counted(const Node& s, std::vector<Node>& body, std::vector<Node>& out) {
    const Node& range = s[1];
    if (!range.is("Call") || range[0].text != "builtins.range") return range;  // reported there
    const std::vector<Node>& bounds = range[1].fields;
    const auto integer = [&](int64_t v) {
      return Node{.kind = "Number", .where = s.where, .text = "int", .literal = v};
    };
    const auto operation = [&](const char* kind, const std::string& x, const char* op, Node y) {
      const bool compares = kind == std::string_view("Compare");
      const Node sign{.kind = "Text", .text = op};
      return Node{.kind = kind,
                  .where = s.where,
                  .fields = {name(x, s.where), compares ? threads::block({sign}) : sign,
                             compares ? threads::block({std::move(y)}) : std::move(y)}};
    };
    const std::string index = kept(bounds.size() < 2 ? integer(0) : bounds[0], integer(0), out);
    const std::string stop = kept(bounds[bounds.size() < 2 ? 0 : 1], integer(0), out);
    const Node& step = bounds.size() < 3 ? integer(1) : bounds[2];
    const std::string by = kept(step, integer(1), out);
    const Node next{
        .kind = "AugAssign",
        .where = s.where,
        .fields = {name(index, s.where), {.kind = "Text", .text = "Add"}, name(by, s.where)}};
    std::vector<Node> begin{{.kind = "Assign",
                             .where = s.where,
                             .fields = {threads::block({s[0]}), name(index, s.where)}},
                            next};
    body.insert(body.begin(), begin.begin(), begin.end());
    const auto both = [&](const char* op, Node x, Node y) {
      return Node{
          .kind = "BoolOp",
          .where = s.where,
          .fields = {{.kind = "Text", .text = op}, threads::block({std::move(x), std::move(y)})}};
    };
    const auto inside = [&](const char* sign, const char* toward) {
      return both("And", operation("Compare", by, sign, integer(0)),
                  operation("Compare", index, toward, name(stop, s.where)));
    };
    return both("Or", inside("Gt", "Lt"), inside("Lt", "Gt"));
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
  const Divergence divergence_;
  std::vector<Context> contexts_;
  std::set<std::string> tested_;
  int loops_ = 0, kept_ = 0;
};

}  // namespace

Function structure_exits(const Program& program, const Function& function) {
  return Structurer(program, function).run(function);
}

}  // namespace picokernel::frontend::threads
