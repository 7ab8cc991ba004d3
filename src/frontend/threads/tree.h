// The syntax tree of a kernel's function. Kinds and fields are those of Python's ast module,
// without contexts, annotations and comments: what a node means is decided here, in C++.
#pragma once

#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "frontend/tracer.h"

namespace picokernel::frontend::threads {

// Beside classes of ast:
//   Block    several nodes
//   Nothing  a field that is not there
//   Text     an operator, a keyword's or an attribute's name
//   Number   a number: of Python (weak) or of NumPy, whose type is `dtype`
//   Object   what a global, closure variable or builtin means: "numpy.sqrt", "simt.grid", ...
//   Function a function of the program, by its number
//   Raise    its text is the exception's class, its field the message
//   Assert   its text is the message
//   Captured an array from outside: a parameter of the kernel, by name
struct Node {
  std::string kind;
  Location where = {};
  std::string text = {};  // of names, texts and objects; of a Number: its type; of a For: a flag
  Literal literal = false;
  std::vector<Node> fields = {};

  bool is(std::string_view k) const { return kind == k; }
  const Node& operator[](size_t i) const { return fields.at(i); }
};

struct Function {
  std::string name;
  Location where = {};
  std::vector<std::string> parameters = {};
  std::vector<Node> body = {};
  size_t captured = 0;  // of a kernel: how many of its last parameters are arrays from outside
};

// The kernel is function 0; others are what it calls.
using Program = std::vector<Function>;

// Fields by name.
struct ForLoop {
  const Node& target;
  const Node& iterable;
  const std::vector<Node>&body, &otherwise;
  explicit ForLoop(const Node& n)
      : target(n[0]), iterable(n[1]), body(n[2].fields), otherwise(n[3].fields) {}
};
struct WhileLoop {
  const Node& test;
  const std::vector<Node>&body, &otherwise;
  explicit WhileLoop(const Node& n) : test(n[0]), body(n[1].fields), otherwise(n[2].fields) {}
};
struct Branch {
  const Node& test;
  const std::vector<Node>&body, &otherwise;
  explicit Branch(const Node& n) : test(n[0]), body(n[1].fields), otherwise(n[2].fields) {}
};
struct Call {
  const Node& callee;
  const std::vector<Node>&arguments, &keywords;
  explicit Call(const Node& n) : callee(n[0]), arguments(n[1].fields), keywords(n[2].fields) {}
};

/// A name that no Python name equals starts with a dot.
Node name(std::string text, const Location& where);
Node block(std::vector<Node> nodes);
Node truth(bool value, const Location& where);
Node assignment(const std::string& to, Node value);
Node branch(Node test, std::vector<Node> body, std::vector<Node> otherwise, const Location& where);

/// Names that the statements assign, in regions too.
std::set<std::string> assigned_names(std::span<const Node> statements);

/// Names whose values on entry the statements may read, where `after` are those read behind them.
/// Of statements without exits.
std::set<std::string> live_before(std::span<const Node> statements, std::set<std::string> after);

/// The same statements with assertions as branches that raise, and a return behind what a kernel
/// raises; without assertions, and CompileError for `raise`, unless the kernel is guarded.
std::vector<Node> with_checks(std::span<const Node> statements, bool guarded, bool kernel);

/// The same function without return, break and continue. The function's value is assigned to
/// ".result". What follows an exit goes into the other branch where one side leaves and nothing
/// else has to run behind it; else flags say what still runs.
Function structure_exits(const Program& program, const Function& function);

}  // namespace picokernel::frontend::threads
