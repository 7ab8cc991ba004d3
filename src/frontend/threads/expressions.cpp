// Expressions of numbers: operators, comparisons, short circuits, names and attributes.
#include <algorithm>
#include <array>

#include "frontend/threads/compiler.h"
#include "ir/eval.h"
#include "support/check.h"

namespace picokernel::frontend::threads {

using ir::BlockId;
using ir::Opcode;
using ir::ValueId;

namespace {

struct Operator {
  std::string_view kind, ufunc, spelling;
};
constexpr Operator kOperators[] = {
    {"Add", "add", "+"},
    {"Sub", "subtract", "-"},
    {"Mult", "multiply", "*"},
    {"Div", "true_divide", "/"},
    {"FloorDiv", "floor_divide", "//"},
    {"Mod", "remainder", "%"},
    {"Pow", "power", "**"},
    {"LShift", "left_shift", "<<"},
    {"RShift", "right_shift", ">>"},
    {"BitAnd", "bitwise_and", "&"},
    {"BitOr", "bitwise_or", "|"},
    {"BitXor", "bitwise_xor", "^"},
    {"USub", "negative", "-"},
    {"UAdd", "positive", "+"},
    {"Invert", "invert", "~"},
    {"Eq", "equal", "=="},
    {"NotEq", "not_equal", "!="},
    {"Lt", "less", "<"},
    {"LtE", "less_equal", "<="},
    {"Gt", "greater", ">"},
    {"GtE", "greater_equal", ">="},
};
const Operator* find_operator(std::string_view kind) {
  const auto found = std::ranges::find(kOperators, kind, &Operator::kind);
  return found == std::end(kOperators) ? nullptr : found;
}

struct Unsupported {
  std::string_view kind, what, hint;
};
constexpr Unsupported kExpressions[] = {
    {"Constant", "a text", "leave it out: kernels know numbers, arrays and tuples"},
    {"JoinedStr", "a text", "leave it out: kernels know numbers, arrays and tuples"},
    {"List", "a list", "use a tuple, simt.local.array or simt.shared.array"},
    {"ListComp", "a list", "write a loop that stores into simt.local.array"},
    {"Dict", "a dict", "use a tuple, or several variables"},
    {"Set", "a set", "compare with each: i == 1 or i == 2"},
    {"GeneratorExp", "a generator", "write a loop"},
    {"DictComp", "a dict", "write a loop"},
    {"SetComp", "a set", "write a loop"},
    {"Lambda", "`lambda`", "define a function with @simt.jit(device=True)"},
    {"Starred", "`*`", "write the items one by one"},
    {"NamedExpr", "`:=`", "assign in a statement before it"},
    {"Yield", "`yield`", "store into an array"},
    {"Await", "`await`", "call the function directly"},
};

}  // namespace

Thing Compiler::expression(const Node& n) {
  at(n);
  if (n.is("Name")) return name(n);
  if (n.is("Number")) {
    const Value literal{.kind = Value::Kind::literal, .weak = true, .literal = n.literal};
    if (n.text == "bool" || n.text == "int" || n.text == "float") return threads::of(literal);
    return cast(dtype_from_numpy(n.text).value(), threads::of(literal), n);
  }
  if (n.is("Object")) {
    if (n.text.starts_with("dtype."))
      return {.kind = Thing::Kind::dtype, .dtype = dtype_from_numpy(n.text.substr(6)).value()};
    if (n.text.starts_with("simt.threadIdx.") || n.text.starts_with("simt.blockIdx.") ||
        n.text.starts_with("simt.blockDim.") || n.text.starts_with("simt.gridDim.") ||
        n.text == "simt.laneid" || n.text == "simt.warpsize")
      return call_thread(n.text, n);
    return {.kind = Thing::Kind::object, .name = n.text};
  }
  if (n.is("Function"))
    return {.kind = Thing::Kind::function,
            .function = static_cast<size_t>(std::get<int64_t>(n.literal))};
  if (n.is("Captured")) return parameters_.at(n.text);
  if (n.is("Nothing")) return {};
  if (n.is("Slice")) {
    Thing t{.kind = Thing::Kind::slice};
    for (const Node& bound : n.fields) t.items.push_back(expression(bound));
    return t;
  }
  if (n.is("Tuple")) {
    Thing t{.kind = Thing::Kind::tuple};
    for (const Node& item : n.fields) t.items.push_back(expression(item));
    return t;
  }
  if (n.is("BinOp")) {
    const Thing x = expression(n[0]), y = expression(n[2]);
    return binary(n[1].text, x, y, n);
  }
  if (n.is("UnaryOp")) return unary(n);
  if (n.is("Compare")) return comparison(n);
  if (n.is("BoolOp")) return boolean(n);
  if (n.is("IfExp")) return conditional(n);
  if (n.is("Call")) return call(n);
  if (n.is("Attribute")) return attribute(n);
  if (n.is("Subscript")) {
    const Thing base = expression(n[0]);
    const std::vector<Thing> at = indices(n[1]);
    if (base.kind == Thing::Kind::array) return element(base.array, at, n);
    if (base.kind != Thing::Kind::tuple)
      error(n, describe(base) + " has no elements",
            {"arrays and tuples have some", "hint: x[i] of an array x"});
    const std::optional<int64_t> index =
        at.size() == 1 ? constant(number(at[0], n, "an index")) : std::nullopt;
    const auto size = static_cast<int64_t>(base.items.size());
    if (!index || *index < -size || *index >= size)
      error(n, "a tuple of " + std::to_string(size) + " has no such item",
            {"items of tuples are numbered by constants",
             "hint: use simt.local.array for numbers that a variable picks"});
    return base.items[static_cast<size_t>(*index < 0 ? *index + size : *index)];
  }
  const auto known = std::ranges::find(kExpressions, n.kind, &Unsupported::kind);
  const bool listed = known != std::end(kExpressions);
  error(n,
        (listed ? std::string(known->what) : "`" + n.kind + "`") + " is not for kernels of threads",
        {"they compute with numbers, elements of arrays, tuples and calls",
         "hint: " + (listed ? std::string(known->hint) : "write it with these")});
}

Thing Compiler::name(const Node& n) {
  const auto known = scope_->names.find(n.text);
  if (known != scope_->names.end()) return known->second;
  // A turn of a loop before this one has left it, if any statement assigns it at all.
  const Value nothing_yet{.kind = Value::Kind::literal, .weak = true, .literal = false};
  if (assigned_names(scope_->function.body).contains(n.text) &&
      !joins_.contains(scope_->prefix + n.text))
    return threads::of(nothing_yet);
  error(n, "`" + n.text + "` has no value here",
        {"variables are assigned before they are read",
         "hint: assign it before the branch or loop, as in " + n.text + " = 0.0"});
}

Value Compiler::number(const Thing& t, const Node& where, std::string_view what) {
  if (t.kind != Thing::Kind::number)
    error(where, std::string(what) + " is " + describe(t) + ", not a number",
          {"numbers are Python's, elements of arrays, and what is computed of them",
           t.kind == Thing::Kind::array ? "hint: take an element, as in x[i]"
                                        : "hint: use a number here"});
  return t.number;
}

Value Compiler::number(const Node& n) { return number(expression(n), n, "this"); }

ValueId Compiler::id(const Value& v) { return state_.convert(v, state_.type(v).dtype); }

ValueId Compiler::as_i64(const Value& v, const Node& where, std::string_view what) {
  const DType type = state_.type(v).dtype;
  if (!is_integer(type))
    error(where, std::string(what) + " is " + frontend::describe(state_.type(v)),
          {"it takes integers", "hint: convert it, as in int(x)"});
  at(where);
  return state_.convert(v, DType::i64);
}

// What is computed of constants alone is one.
std::optional<int64_t> Compiler::constant(const Value& v) const {
  const std::function<std::optional<ir::Scalar>(ValueId)> evaluate =
      [&](ValueId id) -> std::optional<ir::Scalar> {
    const ir::Op* op = state_.m.def(id);
    if (op == nullptr) return std::nullopt;
    if (op->opcode == Opcode::constant) return op->scalar();
    const DType dtype = state_.m.type(id).dtype;
    if (!ir::info(op->opcode).elementwise() || !ir::is_exact(op->opcode, dtype))
      return std::nullopt;
    std::vector<ir::Scalar> operands;
    for (const ValueId x : op->operands)
      if (const auto c = evaluate(x)) operands.push_back(*c);
    if (operands.size() != op->operands.size()) return std::nullopt;
    return ir::eval(op->opcode, operands, dtype);
  };
  if (v.kind == Value::Kind::literal) {
    if (const auto* i = std::get_if<int64_t>(&v.literal)) return *i;
    if (const auto* b = std::get_if<bool>(&v.literal)) return *b;
    return std::nullopt;
  }
  if (is_float(state_.m.type(v.id).dtype)) return std::nullopt;
  const auto value = evaluate(v.id);
  return value ? std::optional(ir::cast(*value, DType::i64).as<int64_t>()) : std::nullopt;
}

Thing Compiler::binary(std::string_view op, const Thing& x, const Thing& y, const Node& where) {
  const Operator* o = find_operator(op);
  if (o == nullptr)
    error(where, "`@` is not for kernels of threads", {"hint: write the loop over the products"});
  if (x.kind == Thing::Kind::tuple && y.kind == Thing::Kind::tuple && o->kind == "Add") {
    Thing joined = x;
    joined.items.insert(joined.items.end(), y.items.begin(), y.items.end());
    return joined;
  }
  const std::string side = " side of `" + std::string(o->spelling) + "`";
  const std::array operands{number(x, where, "the left" + side),
                            number(y, where, "the right" + side)};
  return threads::of(apply(o->ufunc, operands, where));
}

Thing Compiler::unary(const Node& n) {
  const Thing operand = expression(n[1]);
  if (n[0].text == "Not") {
    const Value v = truth(operand, n);
    if (const bool* known = std::get_if<bool>(&v.literal); v.kind == Value::Kind::literal)
      return threads::of({.kind = Value::Kind::literal, .weak = true, .literal = !*known});
    return threads::of({.id = b_.value(Opcode::not_, {v.id})});
  }
  const Operator& o = *find_operator(n[0].text);
  const Value v = number(operand, n, "the operand of `" + std::string(o.spelling) + "`");
  if (v.kind == Value::Kind::literal && n[0].text == "USub") {
    Value negated = v;
    if (const auto* i = std::get_if<int64_t>(&v.literal); i != nullptr && *i != 0)
      return negated.literal = static_cast<int64_t>(-static_cast<uint64_t>(*i)),
             threads::of(negated);
    if (const auto* f = std::get_if<double>(&v.literal))
      return negated.literal = -*f, threads::of(negated);
  }
  return threads::of(apply(o.ufunc, std::array{v}, n));
}

// fields: left, operators, comparators
Thing Compiler::comparison(const Node& n) {
  const std::vector<Node>&operators = n[1].fields, &rights = n[2].fields;
  Thing left = expression(n[0]);
  const auto one = [&](size_t i) -> Value {
    const Thing right = expression(rights[i]);
    const std::string& kind = operators[i].text;
    if (kind == "Is" || kind == "IsNot") {
      const bool none = left.kind == Thing::Kind::nothing || right.kind == Thing::Kind::nothing;
      if (!none)
        error(n, "`is` compares objects, which kernels have none of",
              {"it is for None", "hint: compare numbers by =="});
      const bool same = left.kind == right.kind;
      return {.kind = Value::Kind::literal, .weak = true, .literal = same == (kind == "Is")};
    }
    const Operator* o = find_operator(kind);
    if (o == nullptr)
      error(n, "`in` is not for kernels of threads", {"hint: compare with each: i == 1 or i == 2"});
    const std::string side = " side of `" + std::string(o->spelling) + "`";
    const std::array operands{number(left, n, "the left" + side),
                              number(right, n, "the right" + side)};
    left = right;
    return apply(o->ufunc, operands, n);
  };
  Value all = one(0);
  for (size_t i = 1; i < rights.size(); ++i) {
    const Value so_far = truth(threads::of(all), n);
    all = choose(so_far, [&] { return one(i); }, [&] { return so_far; }, n);
  }
  return threads::of(all);
}

// fields: operator, values
Thing Compiler::boolean(const Node& n) {
  const std::vector<Node>& values = n[1].fields;
  Value all = number(values[0]);
  for (size_t i = 1; i < values.size(); ++i) {
    const Value first = all;
    const Value condition = truth(threads::of(first), n);
    const auto same = [&] { return state_.type(first).dtype == DType::b1 ? condition : first; };
    const auto next = [&] { return number(values[i]); };
    all = n[0].text == "And" ? choose(condition, next, same, n) : choose(condition, same, next, n);
  }
  return threads::of(all);
}

// fields: test, body, orelse
Thing Compiler::conditional(const Node& n) {
  const Value condition = truth(expression(n[0]), n);
  if (const bool* known = std::get_if<bool>(&condition.literal);
      condition.kind == Value::Kind::literal)
    return expression(*known ? n[1] : n[2]);
  return threads::of(
      choose(condition, [&] { return number(n[1]); }, [&] { return number(n[2]); }, n));
}

Value Compiler::truth(const Thing& t, const Node& where) {
  const Value v = number(t, where, "a condition");
  at(where);
  const auto literal = [](bool b) {
    return Value{.kind = Value::Kind::literal, .weak = true, .literal = b};
  };
  if (v.kind == Value::Kind::literal)
    return literal(std::visit([]<class T>(const T& x) { return x != T{}; }, v.literal));
  if (const auto known = constant(v)) return literal(*known != 0);
  return {.weak = v.weak, .id = state_.convert(v, DType::b1)};
}

Value Compiler::choose(const Value& condition, const std::function<Value()>& yes,
                       const std::function<Value()>& no, const Node& where) {
  if (condition.kind == Value::Kind::literal)
    return std::get<bool>(condition.literal) ? yes() : no();
  const std::array blocks{b_.new_block(), b_.new_block()};
  std::array<Value, 2> values;
  for (const size_t side : {0, 1})
    in_block(blocks[side], [&] {
      ranges_.enter(condition.id, side == 0);
      values[side] = side == 0 ? yes() : no();
      ranges_.leave();
    });
  at(where);
  const PromotedType type = common_type(state_.types(values));
  std::array<ValueId, 2> ids;
  ir::Module& m = state_.m;
  bool pure = true;
  for (const size_t side : {0, 1}) {
    in_block(blocks[side], [&] { ids[side] = state_.convert(values[side], type.dtype); });
    for (const ir::OpId op : m.blocks[blocks[side]].ops) pure &= ir::is_pure(m, m.ops[op]);
  }
  if (!pure) {
    for (const size_t side : {0, 1}) in_block(blocks[side], [&] { yield({ids[side]}); });
    const ir::OpId op = b_.op_with_regions(Opcode::if_, {condition.id}, {blocks[0], blocks[1]},
                                           {{.dtype = type.dtype}});
    return {.weak = type.weak, .id = m.ops[op].results[0]};
  }
  // Both sides may run.
  std::vector<ir::OpId>& here = m.blocks[b_.insertion_block()].ops;
  for (const BlockId block : blocks) {
    std::vector<ir::OpId>& ops = m.blocks[block].ops;
    here.insert(here.end(), ops.begin(), ops.end());
    ops.clear();
  }
  const bool both_bool = type.dtype == DType::b1;
  if (both_bool && ids[1] == condition.id)
    return {.weak = type.weak, .id = b_.value(Opcode::and_, {condition.id, ids[0]})};
  if (both_bool && ids[0] == condition.id)
    return {.weak = type.weak, .id = b_.value(Opcode::or_, {condition.id, ids[1]})};
  return {.weak = type.weak, .id = b_.value(Opcode::select, {condition.id, ids[0], ids[1]})};
}

// fields: value, attribute
Thing Compiler::attribute(const Node& n) {
  const Thing base = expression(n[0]);
  const std::string& what = n[1].text;
  if (base.kind != Thing::Kind::array)
    error(n, describe(base) + " has no attribute `" + what + "` in kernels",
          {"arrays have some: size, shape, ndim, dtype, strides", "hint: x.size of an array x"});
  const Array& a = base.array;
  const auto size = [&](size_t d) -> Value {
    if (!a.shape[d].valid())
      error(n, "the size of dynamic shared memory is not known in the kernel",
            {"the launch gives it", "hint: pass it as an argument"});
    return {.id = a.shape[d]};
  };
  if (what == "ndim")
    return threads::of({.kind = Value::Kind::literal,
                        .weak = true,
                        .literal = static_cast<int64_t>(a.shape.size())});
  if (what == "dtype") return {.kind = Thing::Kind::dtype, .dtype = state_.m.type(a.pointer).dtype};
  if (what == "shape") {
    Thing t{.kind = Thing::Kind::tuple};
    for (size_t d = 0; d < a.shape.size(); ++d) t.items.push_back(threads::of(size(d)));
    return t;
  }
  const auto item_size = static_cast<int64_t>(size_of(state_.m.type(a.pointer).dtype));
  if (what == "size" || what == "nbytes") {
    Value product = a.shape.empty() ? Value{.id = i64(1)} : size(0);
    for (size_t d = 1; d < a.shape.size(); ++d)
      product = apply("multiply", std::array{product, size(d)}, n);
    if (what == "size") return threads::of(product);
    return threads::of(apply("multiply", std::array{product, Value{.id = i64(item_size)}}, n));
  }
  if (what == "itemsize") return threads::of({.id = i64(item_size)});
  if (what == "strides") {
    Thing t{.kind = Thing::Kind::tuple};
    for (const ValueId stride : a.strides) {
      const ValueId bytes = i64(item_size);
      t.items.push_back(
          threads::of({.id = stride.valid() ? b_.value(Opcode::mul, {stride, bytes}) : bytes}));
    }
    return t;
  }
  if (what == "T") {
    Thing t = base;
    std::ranges::reverse(t.array.shape);
    std::ranges::reverse(t.array.strides);
    std::ranges::reverse(t.array.axes);
    return t;
  }
  error(n, "arrays have no attribute `" + what + "` in kernels",
        {"they have size, shape, ndim, dtype, strides, itemsize, nbytes and T",
         "hint: write loops over elements for what is done with whole arrays"});
}

}  // namespace picokernel::frontend::threads
