// Kernels of threads from C++: what the builder writes is the tree that Python hands over, so that
// both mean the same.
#include <algorithm>
#include <array>
#include <atomic>
#include <limits>

#include <picokernel/simt.h>

#include "driver/backends.h"
#include "driver/cpp_call.h"
#include "driver/cpp_trace.h"
#include "driver/signature.h"
#include "driver/thread_kernel.h"
#include "ir/text.h"

namespace picokernel::simt::detail {

using frontend::threads::Node;

struct Tree {
  Node node;
  uint64_t kernel = 0;  // whose code it is part of; 0: a number
};

namespace {

// The kernel that this thread writes: statements go to the innermost region.
struct Recording {
  std::vector<std::vector<Node>> regions{{}};
  std::vector<std::string> parameters;
  uint64_t number = next();
  int variables = 0;

  static uint64_t next() {
    static std::atomic<uint64_t> last = 0;
    return ++last;
  }
  std::string new_name() {
    std::string name;
    do {
      name = "v" + std::to_string(++variables);
    } while (std::ranges::find(parameters, name) != parameters.end());
    return name;
  }
};

thread_local Recording* recording = nullptr;

class RecordingScope {
 public:
  explicit RecordingScope(Recording& r) : outer_(std::exchange(recording, &r)) {}
  ~RecordingScope() { recording = outer_; }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 private:
  Recording* outer_;
};

Location place(const SourceLocation& where) { return picokernel::detail::to_location(where); }

Recording& current(const Location& where) {
  if (recording == nullptr)
    throw CompileError(Diagnostic{
        .location = where,
        .message = "this writes the code of a kernel of threads, and none is being written",
        .notes = {"hint: it belongs into the function given to simt::kernel"}});
  return *recording;
}

const Node& node(const TreePtr& tree, const Location& where) {
  if (tree == nullptr)
    throw CompileError(Diagnostic{.location = where,
                                  .message = "an expression is used twice",
                                  .notes = {"hint: name it, as in simt::Value v = x[i]"}});
  if (tree->kernel != 0 && tree->kernel != current(where).number)
    throw CompileError(
        Diagnostic{.location = where,
                   .message = "a value of another kernel is used",
                   .notes = {"hint: pass numbers as arguments, or compute them in this kernel"}});
  return tree->node;
}

TreePtr tree(Node n, const Location& where) {
  return std::make_shared<const Tree>(Tree{std::move(n), current(where).number});
}

Node text(std::string_view words) { return {.kind = "Text", .text = std::string(words)}; }
Node object(std::string name, const Location& at) {
  return {.kind = "Object", .where = at, .text = std::move(name)};
}
Node list(std::vector<Node> nodes) { return frontend::threads::block(std::move(nodes)); }
Node nothing() { return {.kind = "Nothing"}; }
Node whole(int64_t value, const Location& at) {
  return {.kind = "Number", .where = at, .text = "int", .literal = value};
}
Node call(Node callee, std::vector<Node> arguments, const Location& at) {
  return {.kind = "Call",
          .where = at,
          .fields = {std::move(callee), list(std::move(arguments)), list({})}};
}
void write(Node statement, const Location& at) {
  current(at).regions.back().push_back(std::move(statement));
}

// What `body` writes.
template <class F>
std::vector<Node> region(const F& body, const Location& at) {
  Recording& r = current(at);
  const size_t depth = r.regions.size();
  r.regions.emplace_back();
  try {
    body();
  } catch (...) {
    r.regions.resize(depth);
    throw;
  }
  std::vector<Node> written = std::move(r.regions.back());
  r.regions.pop_back();
  return written;
}

}  // namespace

// ---- Expressions

TreePtr weak(Number number, SourceLocation where) {
  const char* const kinds[] = {"bool", "int", "int", "float"};
  Node n{.kind = "Number", .where = place(where), .text = kinds[number.index()]};
  std::visit([&](auto value) { n.literal = value; }, number);
  // As Python's integers: those that fit are signed.
  if (const auto* large = std::get_if<uint64_t>(&n.literal); large != nullptr && *large >> 63 == 0)
    n.literal = static_cast<int64_t>(*large);
  return std::make_shared<const Tree>(Tree{std::move(n)});
}

TreePtr binary(const char* op, TreePtr a, TreePtr b, SourceLocation where) {
  const Location at = place(where);
  return tree({.kind = "BinOp", .where = at, .fields = {node(a, at), text(op), node(b, at)}}, at);
}
TreePtr unary(const char* op, TreePtr a, SourceLocation where) {
  const Location at = place(where);
  return tree({.kind = "UnaryOp", .where = at, .fields = {text(op), node(a, at)}}, at);
}
TreePtr compare(const char* op, TreePtr a, TreePtr b, SourceLocation where) {
  const Location at = place(where);
  return tree({.kind = "Compare",
               .where = at,
               .fields = {node(a, at), list({text(op)}), list({node(b, at)})}},
              at);
}
TreePtr both(const char* op, TreePtr a, TreePtr b, SourceLocation where) {
  const Location at = place(where);
  return tree(
      {.kind = "BoolOp", .where = at, .fields = {text(op), list({node(a, at), node(b, at)})}}, at);
}
TreePtr choice(TreePtr condition, TreePtr yes, TreePtr no, SourceLocation where) {
  const Location at = place(where);
  return tree(
      {.kind = "IfExp", .where = at, .fields = {node(condition, at), node(yes, at), node(no, at)}},
      at);
}
TreePtr object(const char* name, SourceLocation where) {
  const Location at = place(where);
  return tree(object(std::string(name), at), at);
}
TreePtr call(const char* function, Trees arguments, SourceLocation where) {
  const Location at = place(where);
  std::vector<Node> given;
  for (const TreePtr& a : arguments) given.push_back(node(a, at));
  return tree(call(object(std::string(function), at), std::move(given), at), at);
}
TreePtr cast(DType dtype, TreePtr a, SourceLocation where) {
  const Location at = place(where);
  return tree(call(object("dtype." + std::string(numpy_name(dtype)), at), {node(a, at)}, at), at);
}
TreePtr size(TreePtr array, SourceLocation where) {
  const Location at = place(where);
  return tree({.kind = "Attribute", .where = at, .fields = {node(array, at), text("size")}}, at);
}
TreePtr shape(TreePtr array, size_t axis, SourceLocation where) {
  const Location at = place(where);
  Node sizes{.kind = "Attribute", .where = at, .fields = {node(array, at), text("shape")}};
  return tree({.kind = "Subscript",
               .where = at,
               .fields = {std::move(sizes), whole(static_cast<int64_t>(axis), at)}},
              at);
}
TreePtr element(TreePtr array, std::vector<TreePtr> indices, SourceLocation where) {
  const Location at = place(where);
  Node index{.kind = "Tuple", .where = at};
  for (const TreePtr& i : indices) index.fields.push_back(node(i, at));
  return tree({.kind = "Subscript", .where = at, .fields = {node(array, at), std::move(index)}},
              at);
}
TreePtr memory(const char* space, DType dtype, std::vector<int64_t> shape, SourceLocation where) {
  const Location at = place(where);
  Node sizes{.kind = "Tuple", .where = at};
  for (const int64_t n : shape) sizes.fields.push_back(whole(n, at));
  Node made = call(object("simt." + std::string(space) + ".array", at),
                   {std::move(sizes), object("dtype." + std::string(numpy_name(dtype)), at)}, at);
  return assign(tree(std::move(made), at), where);
}
TreePtr atomic(const char* name, TreePtr element, std::vector<TreePtr> values,
               SourceLocation where) {
  const Location at = place(where);
  std::vector<Node> arguments = node(element, at).fields;  // the array and the index
  for (const TreePtr& v : values) arguments.push_back(node(v, at));
  return tree(call(object("simt.atomic." + std::string(name), at), std::move(arguments), at), at);
}

// ---- Statements

TreePtr assign(TreePtr value, SourceLocation where) {
  const Location at = place(where);
  const std::string name = current(at).new_name();
  Node n = frontend::threads::assignment(name, node(value, at));
  n.where = at;
  write(std::move(n), at);
  return tree(frontend::threads::name(name, at), at);
}
void store(TreePtr target, TreePtr value, SourceLocation where) {
  const Location at = place(where);
  write({.kind = "Assign", .where = at, .fields = {list({node(target, at)}), node(value, at)}}, at);
}
void augment(TreePtr target, const char* op, TreePtr value, SourceLocation where) {
  const Location at = place(where);
  write({.kind = "AugAssign", .where = at, .fields = {node(target, at), text(op), node(value, at)}},
        at);
}
void statement(const char* kind, SourceLocation where) {
  const Location at = place(where);
  Node n{.kind = kind, .where = at};
  if (n.is("Return")) n.fields.push_back(nothing());
  write(std::move(n), at);
}
void run(TreePtr value, SourceLocation where) {
  const Location at = place(where);
  write({.kind = "Expr", .where = at, .fields = {node(value, at)}}, at);
}

void check(TreePtr condition, std::string message, SourceLocation where) {
  const Location at = place(where);
  write(
      {.kind = "Assert", .where = at, .text = std::move(message), .fields = {node(condition, at)}},
      at);
}

void branch(TreePtr condition, const Body& then, const Body& otherwise, SourceLocation where) {
  const Location at = place(where);
  std::vector<Node> yes = region(then, at), no;
  if (otherwise) no = region(otherwise, at);
  write(frontend::threads::branch(node(condition, at), std::move(yes), std::move(no), at), at);
}

void loop(TreePtr start, TreePtr stop, TreePtr step, const std::function<void(TreePtr)>& body,
          SourceLocation where) {
  const Location at = place(where);
  std::vector<Node> bounds{node(start, at), node(stop, at)};
  if (step != nullptr) bounds.push_back(node(step, at));
  const Node index = frontend::threads::name(current(at).new_name(), at);
  std::vector<Node> turn = region([&] { body(tree(index, at)); }, at);
  write({.kind = "For",
         .where = at,
         .fields = {index, call(object("builtins.range", at), std::move(bounds), at),
                    list(std::move(turn)), list({})}},
        at);
}

void repeat(const std::function<TreePtr()>& test, const Body& body, SourceLocation where) {
  const Location at = place(where);
  TreePtr condition;
  std::vector<Node> turn = region([&] { condition = test(); }, at);
  Node head = node(condition, at);
  if (!turn.empty()) {  // the test has statements: they run at each turn
    Node leave = frontend::threads::branch(
        {.kind = "UnaryOp", .where = at, .fields = {text("Not"), std::move(head)}},
        {{.kind = "Break", .where = at}}, {}, at);
    turn.push_back(std::move(leave));
    head = frontend::threads::truth(true, at);
  }
  for (Node& n : region(body, at)) turn.push_back(std::move(n));
  write(
      {.kind = "While", .where = at, .fields = {std::move(head), list(std::move(turn)), list({})}},
      at);
}

// ---- Kernels

struct AnyKernel::State {
  State(frontend::threads::Program program, std::vector<Parameter> of, const Options& options)
      : definition(program[0].where),
        parameters(std::move(of)),
        seed(options.seed),
        kernel(std::move(program), options.floats, options.check) {}

  Location definition;
  std::vector<Parameter> parameters;
  uint64_t seed;
  driver::ThreadKernel kernel;
};

AnyKernel::AnyKernel(const Function& function, std::vector<Parameter> parameters,
                     const Options& options, SourceLocation definition)
    : backend_(options.backend) {
  const Location where = place(definition);
  if (!backend_.empty()) driver::live_backend(backend_, where, true);
  Recording r;
  r.parameters =
      driver::parameter_names(options.name, options.parameters, parameters.size(), where);
  const RecordingScope scope(r);
  std::vector<TreePtr> trees;
  for (const std::string& name : r.parameters)
    trees.push_back(tree(frontend::threads::name(name, where), where));
  function(trees);
  frontend::threads::Program program{{.name = options.name,
                                      .where = where,
                                      .parameters = r.parameters,
                                      .body = std::move(r.regions[0])}};
  state_ = std::make_shared<const State>(std::move(program), std::move(parameters), options);
}

AnyKernel AnyKernel::on(std::string_view backend) const {
  AnyKernel other = *this;
  other.backend_ = driver::live_backend(backend, state_->definition, true).name;
  return other;
}

void AnyKernel::launch(const Grid& grid, std::span<const picokernel::detail::Argument> args) const {
  const auto fail = [&](std::string message, std::vector<std::string> notes) {
    throw LaunchError(Diagnostic{.location = state_->definition,
                                 .message = "kernel '" + state_->kernel.name() + "' " + message,
                                 .notes = std::move(notes)});
  };
  std::vector<driver::Arg> list;
  for (size_t i = 0; i < args.size(); ++i) {
    const Parameter& p = state_->parameters[i];
    const driver::Arg a = list.emplace_back(driver::to_arg(args[i]));
    if (p.array && (a.dtype != p.dtype || a.rank != p.rank))
      fail(
          "gets " + driver::describe(a) + " for '" + state_->kernel.parameters()[i] + "'",
          {"it takes an array of " + std::string(numpy_name(p.dtype)) + " with " +
               std::to_string(p.rank) + (p.rank == 1 ? " dimension" : " dimensions"),
           "hint: parameters are simt::Array<T, N>; pk::ArrayView(data, {rows, columns}) has two"});
  }
  const std::array dimensions{grid.blocks.x,  grid.blocks.y,  grid.blocks.z,
                              grid.threads.x, grid.threads.y, grid.threads.z};
  for (size_t i = 0; i < dimensions.size(); ++i)
    if (dimensions[i] < (i < 3 ? 0 : 1) || dimensions[i] > std::numeric_limits<int32_t>::max())
      fail("is launched with " + std::to_string(dimensions[i]) + (i < 3 ? " blocks" : " threads") +
               " along " + "xyz" [i % 3],
           { "blocks are 0 or more, threads of a block 1 or more" });
  const runtime::Grid launched{{grid.blocks.x, grid.blocks.y, grid.blocks.z},
                               {grid.threads.x, grid.threads.y, grid.threads.z},
                               grid.shared_bytes};
  state_->kernel.launch(list, launched, driver::live_backend(backend_, state_->definition, true),
                        state_->seed);
}

namespace {

// Contiguous arrays of the parameters' types, without memory.
struct Usual {
  explicit Usual(std::span<const Parameter> parameters) {
    for (const Parameter& p : parameters)
      list.push_back({.kind = p.array ? driver::Arg::Kind::array : driver::Arg::Kind::scalar,
                      .dtype = p.dtype,
                      .rank = static_cast<uint8_t>(p.rank),
                      .shape = sizes.data(),
                      .strides = strides.data()});
  }
  std::vector<int64_t> sizes = std::vector<int64_t>(ArrayView::kMaxRank, 1),
                       strides = std::vector<int64_t>(ArrayView::kMaxRank, 0);
  std::vector<driver::Arg> list;
};

}  // namespace

std::string AnyKernel::ir(std::string_view backend) const {
  const Usual usual(state_->parameters);
  const backend::Backend* const emitter =
      backend.empty() ? nullptr : &driver::known_backend(backend, state_->definition);
  return ir::print(state_->kernel.module(usual.list, emitter));
}

std::string AnyKernel::source(std::string_view backend) const {
  const Usual usual(state_->parameters);
  return state_->kernel.source(usual.list, driver::known_backend(backend, state_->definition));
}

}  // namespace picokernel::simt::detail

namespace picokernel::simt {

namespace {

// Items of the tuple that simt.grid(3) gives; of the first axis, simt.grid(1).
Dim3 axes(const char* function, const SourceLocation& where) {
  const auto axis = [&](int64_t i) {
    const detail::TreePtr all = detail::call(function, {detail::weak(i + 1, where)}, where);
    return Value::of(i == 0 ? all : detail::element(all, {detail::weak(i, where)}, where));
  };
  return {axis(0), axis(1), axis(2)};
}

}  // namespace

Dim3 grid(SourceLocation where) { return axes("simt.grid", where); }
Dim3 gridsize(SourceLocation where) { return axes("simt.gridsize", where); }

}  // namespace picokernel::simt
