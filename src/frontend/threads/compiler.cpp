// Builds until types have settled; parameters and variables.
#include "frontend/threads/compiler.h"

#include <algorithm>
#include <numeric>

#include "ir/verifier.h"
#include "support/check.h"

namespace picokernel::frontend::threads {

using ir::Opcode;
using ir::ValueId;

namespace {

constexpr int64_t kMaxSize = int64_t{1} << 47;

}  // namespace

Thing of(Value number) { return {.kind = Thing::Kind::number, .number = number}; }

bool Join::add(PromotedType type) {
  const std::optional<PromotedType> before = types.empty() ? std::nullopt : std::optional(common());
  const auto same = std::ranges::find(types, type.weak, &PromotedType::weak);
  if (same == types.end())
    types.push_back(type);
  else
    *same = common_type(std::array{*same, type});
  return before != common();
}

// First with variables of Python numbers alone as weak as these, so that `s = 0.0` sums float32 in
// float32; what stays weak becomes int64 or float64, and the rest follows. Types only ever widen.
ir::Module compile(const Program& program, std::span<const Argument> arguments,
                   const Options& options, std::vector<Site>* sites) {
  Joins joins;
  while (true) {
    Compiler compiler(program, arguments, options, joins);
    try {
      ir::Module made = compiler.run();
      bool weak = false;
      if (!compiler.widened())
        for (auto& [name, join] : joins)
          if (const PromotedType t = join.common(); t.weak) weak = join.add({t.dtype, false});
      if (!compiler.widened() && !weak) {
        ir::verify_or_throw(made, "the front end of threads");
        if (sites != nullptr) *sites = std::move(compiler.sites());
        return made;
      }
    } catch (const CompileError&) {
      // With the types at the end there may be none.
      if (!compiler.widened()) throw;
    }
  }
}

Compiler::Compiler(const Program& program, std::span<const Argument> arguments,
                   const Options& options, Joins& joins)
    : program_(program),
      arguments_(arguments),
      options_(options),
      joins_(joins),
      state_(program.at(0).name, {}),
      b_(state_.b),
      ranges_(state_.m) {
  for (const Function& f : program) {
    Function checked = f;
    checked.body = with_checks(f.body, options.guards, functions_.empty());
    functions_.push_back(structure_exits(program, checked));
  }
}

ir::Module Compiler::run() {
  const Function& kernel = functions_[0];
  state_.m.level = ir::Level::kernel;
  state_.m.floats = options_.floats;
  state_.at(kernel.where);
  refuse_values(program_[0].body, kernel.name);
  Scope scope{.function = kernel, .prefix = "", .names = {}};
  scope_ = &scope;
  calling_.push_back(0);
  parameters(kernel);
  statements(kernel.body, {});
  state_.at(kernel.where);
  b_.return_values({});
  state_.m.checks = {};
  return std::move(state_.m);
}

void Compiler::refuse_values(std::span<const Node> statements, const std::string& kernel) {
  for (const Node& s : statements) {
    if (s.is("Return") && !s[0].is("Nothing"))
      error(s, "the kernel `" + kernel + "` returns a value",
            {"kernels return nothing: they store into their arguments",
             "hint: store it, as in out[i] = value, or make this a function for kernels: "
             "@simt.jit(device=True)"});
    for (const Node& field : s.fields)
      if (field.is("Block")) refuse_values(field.fields, kernel);
  }
}

Thing Compiler::array_parameter(const std::string& name, const Argument& argument) {
  if (is_complex(argument.dtype))
    state_.compile_error(
        "argument '" + name + "' is an array of " + std::string(numpy_name(argument.dtype)),
        {"kernels of threads take arrays of bool, integers and floats",
         "hint: pass its parts: z.real and z.imag"});
  Thing t{.kind = Thing::Kind::array};
  const size_t rank = argument.rank;
  t.array.pointer = b_.param({.kind = ir::TypeKind::ptr, .dtype = argument.dtype}, name);
  for (size_t d = 0; d < rank; ++d) {
    t.array.shape.push_back(b_.param({.dtype = DType::i64}, name + "_size" + std::to_string(d)));
    ranges_.know(t.array.shape.back(), {0, kMaxSize});
  }
  t.array.strides.resize(rank);
  t.array.axes.resize(rank);
  std::iota(t.array.axes.begin(), t.array.axes.end(), size_t{0});
  if (!argument.contiguous)
    for (size_t d = 0; d < rank; ++d)
      t.array.strides[d] = b_.param({.dtype = DType::i64}, name + "_stride" + std::to_string(d));
  return t;
}

void Compiler::parameters(const Function& kernel) {
  PK_CHECK(arguments_.size() == kernel.parameters.size());
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Argument& a = arguments_[i];
    const std::string& name = kernel.parameters[i];
    if (a.kind == Argument::Kind::array)
      scope_->names[name] = array_parameter(name, a);
    else
      scope_->names[name] = of({.weak = a.weak, .id = b_.param({.dtype = a.dtype}, name)});
  }
  if (options_.guards)
    report_ = b_.param({.kind = ir::TypeKind::ptr, .dtype = DType::i64}, "report");
  // Products of sizes, behind all parameters.
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].kind != Argument::Kind::array || !arguments_[i].contiguous) continue;
    Array& a = scope_->names[kernel.parameters[i]].array;
    for (size_t d = a.shape.size(); d-- > 1;)
      a.strides[d - 1] =
          a.strides[d].valid() ? b_.value(Opcode::mul, {a.strides[d], a.shape[d]}) : a.shape[d];
  }
  parameters_ = scope_->names;
  const std::set<std::string> assigned = assigned_names(kernel.body);
  const Node where{.kind = "Name", .where = kernel.where};
  for (const std::string& name : kernel.parameters)
    if (assigned.contains(name)) assign(name, Thing(scope_->names[name]), where);
}

void Compiler::error(const Node& n, std::string message, std::vector<std::string> notes) {
  at(n);
  state_.compile_error(std::move(message), std::move(notes));
}

Thing Compiler::settled(const std::string& variable, const Thing& value, const Node& where) {
  Thing t = value;
  if (t.kind == Thing::Kind::tuple)
    for (size_t i = 0; i < t.items.size(); ++i)
      t.items[i] = settled(variable + "." + std::to_string(i), value.items[i], where);
  if (t.kind != Thing::Kind::number) return t;
  at(where);
  Join& join = joins_[variable];
  widened_ |= join.add(state_.type(value.number));
  const PromotedType type = join.common();
  t.number = {.weak = type.weak, .id = state_.convert(value.number, type.dtype)};
  return t;
}

void Compiler::assign(const std::string& name, const Thing& value, const Node& where) {
  Thing& t = scope_->names[name];
  t = settled(scope_->prefix + name, value, where);
  const ValueId shown = t.kind == Thing::Kind::number  ? t.number.id
                        : t.kind == Thing::Kind::array ? t.array.pointer
                                                       : ValueId{};
  if (!shown.valid() || name.starts_with(".")) return;
  if (std::string& known = state_.m.values[shown].name; known.empty()) known = name;
}

std::string Compiler::describe(const Thing& t) const {
  switch (t.kind) {
    case Thing::Kind::nothing:
      return "None";
    case Thing::Kind::number:
      return frontend::describe(state_.type(t.number));
    case Thing::Kind::tuple:
      return "a tuple";
    case Thing::Kind::slice:
      return "a slice";
    case Thing::Kind::array:
      return "an array of " + std::string(numpy_name(state_.m.type(t.array.pointer).dtype));
    case Thing::Kind::dtype:
      return "the type " + std::string(numpy_name(t.dtype));
    case Thing::Kind::object:
      return "`" + t.name + "`";
    case Thing::Kind::function:
      return "the function `" + program_[t.function].name + "`";
  }
  PK_UNREACHABLE();
}

}  // namespace picokernel::frontend::threads
