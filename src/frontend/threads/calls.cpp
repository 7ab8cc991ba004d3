// Calls: NumPy's and math's functions, builtins, the names of simt, functions of the program.
#include <algorithm>
#include <array>

#include "frontend/threads/compiler.h"
#include "ir/eval.h"
#include "support/check.h"
#include "support/nearest.h"

namespace picokernel::frontend::threads {

using ir::Opcode;
using ir::ValueId;

namespace {

constexpr size_t kDeepest = 100;  // calls inside of calls
constexpr int64_t kWarp = 32;

uint64_t axis_of(std::string_view name) { return static_cast<uint64_t>(name.back() - 'x'); }

struct Atomic {
  std::string_view name;
  Opcode opcode;
};
constexpr Atomic kAtomics[] = {
    {"add", Opcode::atomic_add},     {"sub", Opcode::atomic_add},
    {"min", Opcode::atomic_minimum}, {"max", Opcode::atomic_maximum},
    {"nanmin", Opcode::atomic_fmin}, {"nanmax", Opcode::atomic_fmax},
    {"and_", Opcode::atomic_and},    {"or_", Opcode::atomic_or},
    {"xor", Opcode::atomic_xor},     {"inc", Opcode::atomic_inc},
    {"dec", Opcode::atomic_dec},     {"exch", Opcode::atomic_exchange},
    {"cas", Opcode::atomic_cas},
};

}  // namespace

void Compiler::no_keywords(const Node& n, const std::string& name) {
  if (!Call(n).keywords.empty())
    error(n, "`" + name + "` takes no keywords in kernels",
          {"hint: give its operands by position"});
}

std::vector<Value> Compiler::numbers(const Node& n) {
  std::vector<Value> list;
  for (const Node& a : Call(n).arguments) list.push_back(number(a));
  return list;
}

Thing Compiler::call(const Node& n) {
  const Thing callee = expression(Call(n).callee);
  if (callee.kind == Thing::Kind::object) return call_object(callee.name, n);
  if (callee.kind == Thing::Kind::function) return call_function(callee.function, n);
  if (callee.kind != Thing::Kind::dtype)
    error(n, describe(callee) + " cannot be called", {"hint: call a function"});
  no_keywords(n, std::string(numpy_name(callee.dtype)));
  if (Call(n).arguments.size() != 1)
    error(n, "a type converts one number", {"hint: np.float32(x)"});
  return cast(callee.dtype, expression(Call(n).arguments[0]), n);
}

Thing Compiler::cast(DType dtype, const Thing& value, const Node& where) {
  const Value v = number(value, where, "what is converted");
  if (is_complex(dtype))
    error(where, "complex numbers are not for kernels of threads",
          {"hint: compute with real and imaginary parts"});
  at(where);
  return threads::of({.id = state_.convert(v, dtype)});
}

Thing Compiler::call_object(const std::string& name, const Node& n) {
  if (name.starts_with("simt.")) return call_thread(name, n);
  if (name.starts_with("builtins.")) return call_builtin(name, n);
  const size_t dot = name.find('.');
  const std::string module = name.substr(0, dot), function = name.substr(dot + 1);
  if (function == "frexp" || function == "modf") {
    no_keywords(n, name);
    Thing t{.kind = Thing::Kind::tuple};
    const bool whole = function == "modf";
    for (const char* part :
         {whole ? "modf_fraction" : "frexp_mantissa", whole ? "modf_whole" : "frexp_exponent"})
      t.items.push_back(threads::of(apply(part, numbers(n), n)));
    return t;
  }
  if (name == "math.remainder") {
    no_keywords(n, name);
    return nearest_remainder(n);
  }
  const Ufunc* u = module == "numpy" || module == "math" ? find_ufunc(function) : nullptr;
  if (u == nullptr || u->part) {
    const auto near = nearest(function, ufunc_names());
    error(n, "`" + name + "` cannot be called in kernels",
          {"NumPy's functions of single numbers can be, and most of math's",
           near ? "hint: did you mean `" + std::string(*near) + "`?"
                : "hint: write it as a function with @simt.jit(device=True)"});
  }
  no_keywords(n, name);
  std::vector<Value> operands = numbers(n);
  const auto given = static_cast<int>(operands.size());
  if (name == "math.log" && given == 2) {
    const Value x = apply("log", std::array{operands[0]}, n);
    const Value base = apply("log", std::array{operands[1]}, n);
    return threads::of(apply("true_divide", std::array{x, base}, n));
  }
  if (given != u->operands && !(u->loops == Loops::bounded && given == 2))
    error(n,
          "`" + name + "` takes " + std::to_string(u->operands) + " numbers, not " +
              std::to_string(given),
          {"hint: outputs and options are not for kernels"});
  // Of integers, math's functions give Python's floats.
  if (module == "math" && u->loops != Loops::integer && u->loops != Loops::scaled)
    for (Value& v : operands)
      if (const PromotedType t = state_.type(v); !t.weak && !is_float(t.dtype))
        v = cast(DType::f64, threads::of(v), n).number;
  return threads::of(apply(u->name, operands, n));
}

// IEEE 754's: x less the nearest multiple of y, the even one of two. NumPy's function of that name
// is another. The remainder by 2y is exact, and y once or twice less than that is, too (fdlibm's
// e_remainder.c).
Thing Compiler::nearest_remainder(const Node& n) {
  std::vector<Value> given = numbers(n);
  if (given.size() != 2)
    error(n, "`math.remainder` takes 2 numbers", {"hint: math.remainder(x, y)"});
  const PromotedType common = common_type(state_.types(given));
  const DType type = is_float(common.dtype) && !is_half(common.dtype) ? common.dtype : DType::f64;
  for (Value& v : given) v = cast(type, threads::of(v), n).number;
  const auto ask = [&](std::string_view ufunc, std::initializer_list<Value> operands) {
    return apply(ufunc, std::span(operands.begin(), operands.size()), n);
  };
  const auto literal = [](double v) {
    return Value{.kind = Value::Kind::literal, .weak = true, .literal = v};
  };
  const Value x = given[0], y = ask("absolute", {given[1]});
  // Half of a subnormal number is not exact, twice a large one overflows.
  const Value tiny = ask("less", {y, literal(type == DType::f32 ? 0x1p-125 : 0x1p-1021)});
  const Value half = ask("multiply", {y, literal(0.5)});
  const auto beyond = [&](std::string_view compare, const Value& r) {
    return ask("where", {tiny, ask(compare, {ask("add", {r, r}), y}), ask(compare, {r, half})});
  };
  const Value all = ask("absolute", {ask("fmod", {x, ask("add", {y, y})})});
  const Value first = beyond("greater", all);
  const Value once = ask("where", {first, ask("subtract", {all, y}), all});
  const Value second = ask("logical_and", {first, beyond("greater_equal", once)});
  const Value twice = ask("where", {second, ask("subtract", {once, y}), once});
  return threads::of(ask("where", {ask("signbit", {x}), ask("negative", {twice}), twice}));
}

// ---- Builtins

Thing Compiler::call_builtin(const std::string& name, const Node& n) {
  const std::string what = name.substr(9);
  const Call call(n);
  no_keywords(n, what);
  const auto takes = [&](size_t least, size_t most) {
    if (call.arguments.size() < least || call.arguments.size() > most)
      error(n,
            "`" + what + "` takes " + std::to_string(least) +
                (most == least ? ""
                 : most > 9    ? " or more"
                               : " to " + std::to_string(most)) +
                " arguments, not " + std::to_string(call.arguments.size()),
            {"hint: see Python's " + what});
  };
  if (what == "len") {
    takes(1, 1);
    const Thing t = expression(call.arguments[0]);
    if (t.kind == Thing::Kind::tuple)
      return threads::of({.kind = Value::Kind::literal,
                          .weak = true,
                          .literal = static_cast<int64_t>(t.items.size())});
    if (t.kind == Thing::Kind::array && !t.array.shape.empty() && t.array.shape[0].valid())
      return threads::of({.id = t.array.shape[0]});
    error(n, "`len` of " + describe(t), {"hint: arrays of known size and tuples have a length"});
  }
  if (what == "min" || what == "max") {
    std::vector<Value> list;
    for (const Node& a : call.arguments) {
      const Thing t = expression(a);
      if (t.kind == Thing::Kind::tuple && call.arguments.size() == 1)
        for (const Thing& item : t.items) list.push_back(number(item, a, "an item"));
      else
        list.push_back(number(t, a, "an operand of `" + what + "`"));
    }
    if (list.size() < 2) takes(2, 99);
    Value best = list[0];
    for (size_t i = 1; i < list.size(); ++i)
      best = apply(what == "min" ? "minimum" : "maximum", std::array{best, list[i]}, n);
    return threads::of(best);
  }
  if (what == "abs" || what == "pow") {
    takes(what == "abs" ? 1 : 2, what == "abs" ? 1 : 2);
    return threads::of(apply(what == "abs" ? "absolute" : "power", numbers(n), n));
  }
  if (what == "divmod") {
    takes(2, 2);
    const std::vector<Value> operands = numbers(n);
    Thing t{.kind = Thing::Kind::tuple};
    t.items.push_back(threads::of(apply("floor_divide", operands, n)));
    t.items.push_back(threads::of(apply("remainder", operands, n)));
    return t;
  }
  if (what == "round") {
    takes(1, 2);
    const std::vector<Value> x = numbers(n);
    if (x.size() == 1) return cast(DType::i64, threads::of(apply("rint", x, n)), n);
    // In float64, so that float32 rounds as its decimal digits say; what has no digits there stays.
    const Value ten{.kind = Value::Kind::literal, .weak = true, .literal = 10.0};
    const PromotedType type = state_.type(x[0]);
    const DType result = is_float(type.dtype) ? type.dtype : DType::f64;
    const Value wide = cast(DType::f64, threads::of(x[0]), n).number;
    const Value scale =
        cast(DType::f64, threads::of(apply("power", std::array{ten, x[1]}, n)), n).number;
    const Value scaled = apply("multiply", std::array{wide, scale}, n);
    const Value rounded =
        apply("true_divide", std::array{apply("rint", std::array{scaled}, n), scale}, n);
    const Value fits = apply("isfinite", std::array{scaled}, n);
    return cast(result, threads::of(apply("where", std::array{fits, rounded, wide}, n)), n);
  }
  if (what == "int" || what == "float" || what == "bool") {
    takes(1, 1);
    const Thing t = expression(call.arguments[0]);
    if (what == "bool") {
      const Value v = truth(t, n);
      return threads::of(v.kind == Value::Kind::literal ? v : Value{.id = v.id});
    }
    return cast(what == "int" ? DType::i64 : DType::f64, t, n);
  }
  if (what == "range")
    error(n, "`range` is for loops", {"hint: for i in range(start, stop, step)"});
  error(n, "`" + what + "` cannot be called in kernels",
        {"these builtins can: abs, bool, divmod, float, int, len, max, min, pow, range, round",
         "hint: write it as a function with @simt.jit(device=True)"});
}

// ---- simt

// Ids stand at the kernel's start: each is asked for once.
Value Compiler::thread_value(Opcode opcode, uint64_t axis) {
  ValueId& v = ids_[{opcode, axis}];
  if (!v.valid())
    in_block(ir::Module::body(), [&] { v = b_.value(opcode, {}, axis, {{.dtype = DType::i64}}); });
  return {.id = v};
}

// Of the thread in its warp: threads are numbered with x fastest.
Value Compiler::lane() {
  std::array<ValueId, 3> id;
  std::array<ValueId, 2> dim;
  for (uint64_t axis = 0; axis < 3; ++axis) id[axis] = thread_value(Opcode::thread_id, axis).id;
  for (uint64_t axis = 0; axis < 2; ++axis) dim[axis] = thread_value(Opcode::block_dim, axis).id;
  if (lane_.valid()) return {.id = lane_};
  in_block(ir::Module::body(), [&] {
    const ValueId plane = b_.value(Opcode::mul, {id[2], dim[1]});
    const ValueId row = b_.value(Opcode::add, {plane, id[1]});
    const ValueId before = b_.value(Opcode::mul, {row, dim[0]});
    const ValueId number = b_.value(Opcode::add, {before, id[0]});
    lane_ = b_.value(Opcode::and_, {number, i64(kWarp - 1)});
  });
  return {.id = lane_};
}

// The thread's index in the grid along an axis, or how many there are.
Value Compiler::axis_value(bool size, uint64_t axis) {
  const ValueId block = thread_value(size ? Opcode::grid_dim : Opcode::block_id, axis).id;
  const ValueId dim = thread_value(Opcode::block_dim, axis).id;
  ValueId& v = axis_values_[{size, axis}];
  if (v.valid()) return {.id = v};
  const ValueId thread = size ? ValueId{} : thread_value(Opcode::thread_id, axis).id;
  in_block(ir::Module::body(), [&] {
    v = b_.value(Opcode::mul, {block, dim});
    if (!size) v = b_.value(Opcode::add, {v, thread});
  });
  return {.id = v};
}

// grid(n), gridsize(n)
Thing Compiler::ids(const Node& n, bool sizes) {
  const Call call(n);
  const std::optional<int64_t> axes =
      call.arguments.size() == 1 ? constant(number(call.arguments[0])) : std::nullopt;
  if (!axes || *axes < 1 || *axes > 3)
    error(n, "`simt." + std::string(sizes ? "gridsize" : "grid") + "` takes 1, 2 or 3",
          {"it is how many dimensions the grid has", "hint: i, j = simt.grid(2)"});
  if (*axes == 1) return threads::of(axis_value(sizes, 0));
  Thing t{.kind = Thing::Kind::tuple};
  for (uint64_t axis = 0; axis < static_cast<uint64_t>(*axes); ++axis)
    t.items.push_back(threads::of(axis_value(sizes, axis)));
  return t;
}

Thing Compiler::call_thread(const std::string& name, const Node& n) {
  const std::string what = name.substr(5);
  if (what.starts_with("threadIdx."))
    return threads::of(thread_value(Opcode::thread_id, axis_of(what)));
  if (what.starts_with("blockIdx."))
    return threads::of(thread_value(Opcode::block_id, axis_of(what)));
  if (what.starts_with("blockDim."))
    return threads::of(thread_value(Opcode::block_dim, axis_of(what)));
  if (what.starts_with("gridDim."))
    return threads::of(thread_value(Opcode::grid_dim, axis_of(what)));
  if (what == "warpsize")
    return threads::of({.kind = Value::Kind::literal, .weak = true, .literal = int64_t{kWarp}});
  if (what == "laneid") return threads::of(lane());
  if (what == "shared.array" || what == "local.array") return own_memory(n, what == "shared.array");
  no_keywords(n, name);
  if (what == "grid" || what == "gridsize") return ids(n, what == "gridsize");
  const Call call(n);
  const auto takes = [&](size_t count) {
    if (call.arguments.size() != count)
      error(n,
            "`" + name + "` takes " + std::to_string(count) + " arguments, not " +
                std::to_string(call.arguments.size()),
            {"hint: see docs/thread-kernels.md"});
  };
  if (what == "syncthreads") {
    takes(0);
    b_.op(Opcode::barrier, {});
    return {};
  }
  if (what.starts_with("syncthreads_")) {
    takes(1);
    const ValueId condition = id(truth(expression(call.arguments[0]), n));
    const Opcode opcode = what == "syncthreads_count" ? Opcode::barrier_count
                          : what == "syncthreads_and" ? Opcode::barrier_and
                                                      : Opcode::barrier_or;
    at(n);
    return threads::of({.id = b_.value(opcode, {condition})});
  }
  if (what.starts_with("atomic.")) return atomic(what.substr(7), n);
  if (what == "fma") {
    takes(3);
    const std::vector<Value> x = numbers(n);
    const PromotedType type = common_type(state_.types(x));
    const DType dtype = is_float(type.dtype) ? type.dtype : DType::f64;
    std::vector<ValueId> operands;
    for (const Value& v : x) operands.push_back(state_.convert(v, dtype));
    return threads::of({.id = b_.value(Opcode::fma, operands)});
  }
  if (what == "selp") {
    takes(3);
    return threads::of(apply("where", numbers(n), n));
  }
  if (what == "rsqrt") {
    takes(1);
    const Value root = apply("sqrt", numbers(n), n);
    const Value one{.kind = Value::Kind::literal, .weak = true, .literal = 1.0};
    return threads::of(apply("true_divide", std::array{one, root}, n));
  }
  if (what == "cbrt") {
    takes(1);
    return threads::of(apply("cbrt", numbers(n), n));
  }
  if (what == "popc" || what == "clz" || what == "ffs" || what == "brev") {
    takes(1);
    return bits(what, n);
  }
  if (what == "const.array_like") {
    takes(1);
    const Thing t = expression(call.arguments[0]);
    if (t.kind != Thing::Kind::array)
      error(n, "`simt.const.array_like` of " + describe(t),
            {"it takes an array", "hint: a NumPy array of a global or closure variable"});
    return t;
  }
  if (what.starts_with("threadfence")) {
    takes(0);
    return {};
  }
  error(n, "`" + name + "` cannot be called in kernels", {"hint: see docs/thread-kernels.md"});
}

// simt.atomic.add(array, index, value): what was there before.
Thing Compiler::atomic(const std::string& name, const Node& n) {
  // compare_and_swap is cas of the first element.
  const bool first = name == "compare_and_swap", cas = first || name == "cas";
  const auto known = std::ranges::find(kAtomics, first ? "cas" : name, &Atomic::name);
  const Call call(n);
  if (known == std::end(kAtomics) || call.arguments.size() != (cas && !first ? 4 : 3))
    error(n,
          "`simt.atomic." + name + "` takes an array, an index and " +
              (cas ? "two numbers (compare_and_swap: no index)" : "a number"),
          {"hint: simt.atomic.add(x, i, 1), simt.atomic.cas(x, i, old, new)"});
  const Thing array = expression(call.arguments[0]);
  if (array.kind != Thing::Kind::array)
    error(n, "the first argument of `simt.atomic." + name + "` is " + describe(array),
          {"it is an array", "hint: simt.atomic.add(x, i, 1)"});
  const std::vector<Thing> index =
      first ? std::vector{threads::of({.id = i64(0)})} : indices(call.arguments[1]);
  const Array at = at_index(array.array, index, n);
  const DType dtype = state_.m.type(at.pointer).dtype;
  const bool integers = known->opcode >= Opcode::atomic_and && known->opcode <= Opcode::atomic_dec;
  if (!at.shape.empty() || is_bool(dtype) || is_half(dtype) || (integers && !is_integer(dtype)))
    error(n, "`simt.atomic." + name + "` of " + describe(array),
          {integers ? "it takes an element of an array of integers"
                    : "it takes an element of an array of integers, float32 or float64",
           "hint: give an index for each dimension, and another type"});
  std::vector<ValueId> operands{at.pointer, offset(at)};
  for (size_t i = first ? 1 : 2; i < call.arguments.size(); ++i) {
    Value v = number(call.arguments[i]);
    this->at(n);
    ValueId converted = state_.convert(v, dtype);
    if (name == "sub") {
      const ValueId zero = b_.constant(ir::cast(ir::Scalar::of(int64_t{0}), dtype));
      converted = is_float(dtype) ? b_.value(Opcode::neg, {converted})
                                  : b_.value(Opcode::sub, {zero, converted});
    }
    operands.push_back(converted);
  }
  return threads::of(
      {.id = where_inside(at, dtype, [&] { return b_.value(known->opcode, operands); })});
}

// simt.popc, clz, ffs and brev, of integers; narrow ones are taken as 32 bits, as on CUDA.
Thing Compiler::bits(const std::string& name, const Node& n) {
  const Value given = number(Call(n).arguments[0]);
  DType type = state_.type(given).dtype;
  if (is_bool(type)) type = DType::i32;
  if (!is_integer(type))
    error(n, "`simt." + name + "` of " + frontend::describe(state_.type(given)),
          {"it takes an integer", "hint: convert it, as in np.int32(x)"});
  at(n);
  if (name == "popc" || size_of(type) < 4)
    type = size_of(type) < 4 ? (is_signed(type) && name != "popc" ? DType::i32 : DType::u32) : type;
  const DType own = type;
  const bool wide = size_of(type) == 8;
  const DType word = wide ? DType::u64 : DType::u32;
  const DType narrow = state_.type(given).dtype;
  ValueId x = state_.convert(given, narrow);
  // Bits of a narrow negative number are those that it has.
  if (is_signed(narrow) && name == "popc" && size_of(narrow) < 4)
    x = b_.cast(x, size_of(narrow) == 1 ? DType::u8 : DType::u16);
  x = b_.cast(x, word);
  const auto literal = [&](uint64_t v) { return b_.constant(ir::cast({DType::u64, v}, word)); };
  const auto ones = [&](ValueId v) { return b_.cast(b_.value(Opcode::popcount, {v}), DType::i32); };
  const auto i32 = [&](int64_t v) { return b_.constant(ir::cast(ir::Scalar::of(v), DType::i32)); };
  const int width = wide ? 64 : 32;
  if (name == "popc") return threads::of({.id = ones(x)});
  if (name == "clz") {
    for (int by = 1; by < width; by *= 2)
      x = b_.value(Opcode::or_,
                   {x, b_.value(Opcode::shr, {x, literal(static_cast<uint64_t>(by))})});
    return threads::of({.id = b_.value(Opcode::sub, {i32(width), ones(x)})});
  }
  const ValueId zero = literal(0), one = literal(1);
  if (name == "ffs") {
    const ValueId lowest = b_.value(Opcode::and_, {x, b_.value(Opcode::sub, {zero, x})});
    const ValueId below = ones(b_.value(Opcode::sub, {lowest, one}));
    const ValueId none = b_.value(Opcode::eq, {x, zero});
    const ValueId found = b_.value(Opcode::add, {below, i32(1)});
    return threads::of({.id = b_.value(Opcode::select, {none, i32(0), found})});
  }
  for (int by = width / 2; by > 0; by /= 2) {
    const uint64_t all = ~uint64_t{0} >> (64 - width);
    const uint64_t low = all / ((uint64_t{1} << by) + 1);  // every other group of `by` bits
    const ValueId count = literal(static_cast<uint64_t>(by)), mask = literal(low);
    const ValueId up = b_.value(Opcode::shl, {b_.value(Opcode::and_, {x, mask}), count});
    const ValueId down = b_.value(Opcode::and_, {b_.value(Opcode::shr, {x, count}), mask});
    x = b_.value(Opcode::or_, {up, down});
  }
  return threads::of({.id = b_.cast(x, own)});
}

// ---- Functions of the program: inlined

Thing Compiler::call_function(size_t number, const Node& n) {
  const Function& f = functions_.at(number);
  if (std::ranges::find(calling_, number) != calling_.end() || calling_.size() > kDeepest)
    error(n, "`" + f.name + "` calls itself",
          {"functions are put where they are called, so none may be inside of itself",
           "hint: write a loop"});
  const Call call(n);
  Scope scope{.function = f, .prefix = std::to_string(++calls_) + ":", .names = {}};
  const auto give = [&](const std::string& parameter, const Node& value) {
    scope.names[parameter] = expression(value);
  };
  bool fits = call.arguments.size() <= f.parameters.size();
  for (size_t i = 0; fits && i < call.arguments.size(); ++i)
    give(f.parameters[i], call.arguments[i]);
  for (const Node& k : call.keywords) {
    fits &= std::ranges::find(f.parameters, k[0].text) != f.parameters.end() &&
            !scope.names.contains(k[0].text);
    if (fits) give(k[0].text, k[1]);
  }
  if (!fits || scope.names.size() != f.parameters.size()) {
    std::string list;
    for (const std::string& p : f.parameters) list += (list.empty() ? "" : ", ") + p;
    error(n, "`" + f.name + "` is called with other arguments than it takes",
          {"it takes " + (list.empty() ? "none" : list), "hint: give each of them once"});
  }
  Scope* const outer = std::exchange(scope_, &scope);
  calling_.push_back(number);
  const std::set<std::string> assigned = assigned_names(f.body);
  for (const std::string& p : f.parameters)
    if (assigned.contains(p)) assign(p, Thing(scope.names[p]), n);
  statements(f.body, {".result"});
  calling_.pop_back();
  scope_ = outer;
  at(n);
  const auto result = scope.names.find(".result");
  return result == scope.names.end() ? Thing{} : result->second;
}

}  // namespace picokernel::frontend::threads
