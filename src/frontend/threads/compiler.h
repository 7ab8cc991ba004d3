// The state of compiling one kernel: scopes, variables, and the module under construction.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "frontend/state.h"
#include "frontend/threads/ranges.h"
#include "frontend/threads/threads.h"

namespace picokernel::frontend::threads {

// Memory with an index: an argument, shared or local memory, or part of one.
struct Array {
  ir::ValueId pointer = {}, offset = {};  // offset: invalid: 0
  std::vector<ir::ValueId> shape;         // invalid: not known, as of dynamic shared memory
  std::vector<ir::ValueId> strides;       // invalid: 1
  std::vector<size_t> axes;               // which ones of the whole array they are
  ir::ValueId inside = {};                // all indices so far are in bounds; invalid: not asked
};

// What an expression gives.
struct Thing {
  enum class Kind : uint8_t {
    nothing,  // None
    number,   // a scalar
    tuple,    // `items`
    slice,    // `items`: start, stop and step, or nothing
    array,
    dtype,     // a type, to convert to
    object,    // a function or name of Python's, by what it means
    function,  // of the program
  };
  Kind kind = Kind::nothing;
  Value number = {};
  std::vector<Thing> items = {};
  Array array = {};
  DType dtype = DType::f32;
  std::string name = {};  // object
  size_t function = 0;
};

// The types that a variable was assigned so far. A variable has one type, their common one; numbers
// of Python alone make it weak while types are still found, and int64 or float64 then.
struct Join {
  std::vector<PromotedType> types;  // the common strong one, the common weak one
  bool add(PromotedType type);      // true: the common type is another one now
  PromotedType common() const { return common_type(types); }
};
using Joins = std::map<std::string, Join>;

// A function is built again and again until the types of variables have settled: `joins` is what
// the builds before have found, and what this one adds to.
class Compiler {
 public:
  Compiler(const Program& program, std::span<const Argument> arguments, const Options& options,
           Joins& joins);
  ir::Module run();
  /// This build has found wider types: it has to be done again.
  bool widened() const { return widened_; }
  std::vector<Site>& sites() { return sites_; }

 private:
  using ValueId = ir::ValueId;
  using Names = std::map<std::string, Thing>;

  // A call of a function in progress.
  struct Scope {
    const Function& function;
    std::string prefix;  // of its variables among joins
    Names names;
  };

  // compiler.cpp: parameters, variables, errors
  void parameters(const Function& kernel);
  Thing array_parameter(const std::string& name, const Argument& argument);
  void refuse_values(std::span<const Node> statements, const std::string& kernel);
  void at(const Node& n) { state_.at(n.where); }
  [[noreturn]] void error(const Node& n, std::string message, std::vector<std::string> notes);
  void assign(const std::string& name, const Thing& value, const Node& where);
  Thing settled(const std::string& variable, const Thing& value, const Node& where);
  ValueId zero(PromotedType type) {
    return state_.convert({.kind = Value::Kind::literal}, type.dtype);
  }
  std::string describe(const Thing& t) const;

  // statements.cpp
  void statements(std::span<const Node> list, const std::set<std::string>& live_after);
  void statement(const Node& s, const std::set<std::string>& live_after);
  void assign_target(const Node& target, const Thing& value);
  void augmented(const Node& s);
  void branch_statement(const Node& s, const std::set<std::string>& live_after);
  void while_statement(const Node& s, const std::set<std::string>& live_after);
  void for_statement(const Node& s, const std::set<std::string>& live_after);

  // What a for loop goes over: range(from, to, step), and what the target is at each of these.
  struct Turns {
    ValueId from, to, step;
    std::function<Thing(ValueId)> at;
  };
  Turns turns_of(const Node& iterable);
  Turns turns_of_range(const Node& iterable);
  Turns turns_of_items(const Thing& t, const Node& where);

  // A number that a region changes: of a variable, or in a tuple of one.
  struct Carried {
    std::string name;
    std::vector<size_t> path;  // in tuples
    std::string variable;      // among joins
  };
  /// Numbers of these names; what has no value yet is 0 from now on. Others stay what they are.
  std::vector<Carried> carried(const std::set<std::string>& names);
  void carried_of(const Thing& t, Carried at, std::vector<Carried>& list);
  Thing& at(const Carried& c);
  std::vector<ValueId> values_of(std::span<const Carried> list);
  void bind(std::span<const Carried> list, std::span<const ValueId> values);
  void add_params(ir::BlockId block, std::span<const Carried> list);
  /// All but numbers is as it was `before`.
  void require_same(const std::set<std::string>& names, const Names& before, const Node& where);
  void yield(std::vector<ValueId> values) {
    if (!values.empty()) b_.op(ir::Opcode::yield, std::move(values));
  }
  /// Runs `body` at the end of another block.
  template <class F>
  void in_block(ir::BlockId block, F body) {
    const ir::BlockId outer = b_.insertion_block();
    b_.set_insertion_block(block);
    body();
    b_.set_insertion_block(outer);
  }

  // expressions.cpp
  Thing expression(const Node& n);
  Value number(const Node& n);
  Value number(const Thing& t, const Node& where, std::string_view what);
  Value apply(std::string_view ufunc, std::span<const Value> operands, const Node& where) {
    at(where);
    return state_.apply(*find_ufunc(ufunc), operands);
  }
  Thing binary(std::string_view op, const Thing& x, const Thing& y, const Node& where);
  Thing unary(const Node& n);
  Thing comparison(const Node& n);
  Thing boolean(const Node& n);
  Thing conditional(const Node& n);
  Thing attribute(const Node& n);
  Thing name(const Node& n);
  /// As a condition: a literal bool where it is known.
  Value truth(const Thing& t, const Node& where);
  ValueId id(const Value& v);  // of a value of its own type
  ValueId as_i64(const Value& v, const Node& where, std::string_view what);
  std::optional<int64_t> constant(const Value& v) const;
  /// One of two sides, of which only the one asked for is evaluated.
  Value choose(const Value& condition, const std::function<Value()>& yes,
               const std::function<Value()>& no, const Node& where);

  // arrays.cpp
  Thing element(const Array& a, std::span<const Thing> indices, const Node& where);
  void store(const Array& a, std::span<const Thing> indices, const Thing& value, const Node& where);
  Array at_index(const Array& a, std::span<const Thing> indices, const Node& where);
  ValueId in_bounds(const Array& a, size_t d, const Value& index, const Node& where);
  void keep_slice(const Array& a, size_t d, const Thing& slice, Array& part, const Node& where);
  void advance(Array& a, ValueId by, ValueId stride);
  void fill(const Array& to, const Thing& value, const Node& where);
  std::vector<Thing> indices(const Node& n);
  ValueId offset(const Array& a);
  Array memory(ir::OpId allocation, std::span<const int64_t> shape);
  Thing own_memory(const Node& call, bool shared);
  ValueId i64(int64_t v);

  // checks.cpp
  ValueId number_in_grid();
  void report(Site site, ValueId index, ValueId size);
  ValueId guard(const Array& a, size_t d, ValueId at, const Node& where);
  /// What `make` gives where the access is in bounds, else 0.
  template <class F>
  ValueId where_inside(const Array& part, DType type, F make) {
    if (!part.inside.valid()) return make();
    const ir::BlockId yes = b_.new_block(), no = b_.new_block();
    in_block(yes, [&] { b_.op(ir::Opcode::yield, {make()}); });
    in_block(no, [&] { b_.op(ir::Opcode::yield, {zero({.dtype = type})}); });
    const ir::OpId op =
        b_.op_with_regions(ir::Opcode::if_, {part.inside}, {yes, no}, {{.dtype = type}});
    return state_.m.ops[op].results[0];
  }

  // calls.cpp
  Thing call(const Node& n);
  Thing call_object(const std::string& name, const Node& n);
  Thing call_thread(const std::string& name, const Node& n);
  Thing call_builtin(const std::string& name, const Node& n);
  Thing call_function(size_t function, const Node& n);
  Thing atomic(const std::string& name, const Node& n);
  Thing bits(const std::string& name, const Node& n);
  Thing nearest_remainder(const Node& n);
  Thing cast(DType dtype, const Thing& value, const Node& where);
  Thing ids(const Node& n, bool sizes);
  Value thread_value(ir::Opcode opcode, uint64_t axis);
  Value axis_value(bool size, uint64_t axis);
  Value lane();
  std::vector<Value> numbers(const Node& call);
  void no_keywords(const Node& call, const std::string& name);

  const Program& program_;
  const std::span<const Argument> arguments_;
  const Options options_;
  Joins& joins_;
  bool widened_ = false;
  Tracer::State state_;
  ir::Builder& b_;
  Ranges ranges_;
  std::vector<Function> functions_;  // without exits
  Scope* scope_ = nullptr;
  Names parameters_;  // of the kernel: what captured arrays are, wherever they are read
  std::map<std::pair<ir::Opcode, uint64_t>, ValueId> ids_;  // of the kernel's start, by axis
  std::map<std::pair<bool, uint64_t>, ValueId> axis_values_;
  ValueId lane_, number_in_grid_;
  ValueId report_;  // of a guarded kernel: its last parameter
  std::vector<Site> sites_;
  std::vector<size_t> calling_;
  int calls_ = 0;
};

Thing of(Value number);

}  // namespace picokernel::frontend::threads
