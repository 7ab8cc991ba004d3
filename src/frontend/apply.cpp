// Ufuncs on traced values: the loop's type, operands converted to it, the op.
#include <algorithm>

#include "frontend/state.h"
#include "support/check.h"

namespace picokernel::frontend {

using ir::Opcode;
using ir::ValueId;

namespace {

Value value_of(ValueId id, bool weak = false) {
  return {.kind = Value::Kind::value, .weak = weak, .id = id};
}

bool is_literal(const Value& v) { return v.kind == Value::Kind::literal; }

// x op y is y mirrored(op) x.
Opcode mirrored(Opcode comparison) {
  if (comparison == Opcode::lt) return Opcode::gt;
  if (comparison == Opcode::gt) return Opcode::lt;
  if (comparison == Opcode::le) return Opcode::ge;
  if (comparison == Opcode::ge) return Opcode::le;
  return comparison;
}

// Python's bools are integers in arithmetic, and bools in & | ^ and comparisons.
bool python_bool_is_int(const Ufunc& u) {
  return u.loops != Loops::comparison && (u.loops != Loops::bits || u.operands == 1);
}

std::string list_types(std::span<const PromotedType> types) {
  std::string text;
  for (size_t i = 0; i < types.size(); ++i) text += (i == 0 ? "" : " and ") + describe(types[i]);
  return text;
}

}  // namespace

Value Tracer::State::apply(const Ufunc& u, std::span<const Value> operands) {
  broadcast(u.name, operands);
  if (std::ranges::any_of(types(operands), [](PromotedType t) { return is_complex(t.dtype); }))
    return apply_complex(u, operands);
  if (u.loops == Loops::choice) return where(operands);
  if (u.loops == Loops::bounded) return clip(operands);
  if (u.loops == Loops::scaled) return scale(u, operands);
  PromotedType common = common_type(types(operands));
  if (common.weak) {
    if (u.python_operator && is_bool(common.dtype) && python_bool_is_int(u))
      common.dtype = DType::i64;
    common.weak = u.python_operator;
  }
  if (u.loops == Loops::comparison) return compare(u, operands, common);
  if (u.opcode == Opcode::pow) return power(u, operands, common);
  return emit(u, operands, common);
}

Value Tracer::State::emit(const Ufunc& u, std::span<const Value> operands, PromotedType common) {
  const LoopType loop = loop_type(u.name, u.loops, common.dtype, types(operands));
  if (!loop.dtype)
    compile_error("`" + std::string(u.name) + "` of " + list_types(types(operands)),
                  {loop.allowed, "hint: " + loop.hint});
  const DType type = *loop.dtype;
  std::vector<ValueId> converted;
  for (const Value& v : operands) converted.push_back(convert(v, type));
  // A loop of halves computes in float32 and rounds once.
  if (is_half(type) && u.composite != nullptr && u.loops != Loops::format) {
    for (ValueId& v : converted) v = b.cast(v, DType::f32);
    const ValueId wide = u.composite(b, converted, DType::f32);
    return value_of(m.type(wide).dtype == DType::f32 ? b.cast(wide, type) : wide);
  }
  if (u.loops == Loops::rounding && !is_float(type)) return value_of(converted[0]);
  if (u.loops == Loops::test && !is_float(type))
    return value_of(composites::always(b, *u.opcode == Opcode::isfinite, converted[0]));
  const ValueId result = u.opcode ? b.value(*u.opcode, converted) : u.composite(b, converted, type);
  if (common.weak && is_integer(type)) m.checks.integers.push_back({result, type});
  return value_of(result, common.weak);
}

// Integers compare by value, whatever their types: NumPy has loops for uint64 with int64, and
// Python integers need not fit the other side's type.
Value Tracer::State::compare(const Ufunc& u, std::span<const Value> x, PromotedType common) {
  const std::vector<PromotedType> t = types(x);
  DType type = common.dtype;
  const bool integers = is_integer(t[0].dtype) && is_integer(t[1].dtype);
  if (integers && !common.weak) {
    for (const size_t i : {0, 1}) {
      const Opcode op = i == 0 ? mirrored(*u.opcode) : *u.opcode;  // with x[i] on the right
      if (is_literal(x[i]) && !fits(x[i].literal, t[1 - i].dtype)) {
        const ValueId other = read(x[1 - i]);
        const bool below = is_negative(x[i].literal);
        const bool truth = op == Opcode::ne || (below ? op == Opcode::gt || op == Opcode::ge
                                                      : op == Opcode::lt || op == Opcode::le);
        return value_of(composites::always(b, truth, other));
      }
      if (is_signed(t[i].dtype) && t[1 - i].dtype == DType::u64 && !is_literal(x[i]) &&
          !is_literal(x[1 - i])) {
        for (const Value& v : x) read(v);  // in order
        const ValueId s = convert(x[i], DType::i64),
                      wide = convert(x[1 - i], DType::u64, Fit::wrapped);
        return value_of(composites::compare_mixed(b, op, wide, s));
      }
      if (t[i].weak && !is_literal(x[i])) type = t[i].dtype;  // int64, or uint64 from 2**63 up
    }
  }
  const ValueId left = convert(x[0], type);
  const ValueId right = convert(x[1], type);
  return value_of(b.value(*u.opcode, {left, right}), common.weak);
}

Value Tracer::State::power(const Ufunc& u, std::span<const Value> x, PromotedType common) {
  const PromotedType base = type(x[0]), exponent_type = type(x[1]);
  const Value& exponent = x[1];
  const bool number = is_literal(exponent) && !is_bool(exponent_type.dtype);
  const bool negative = number && is_negative(exponent.literal);
  if (common.weak && negative) common.dtype = DType::f64;  // 2 ** -1 is 0.5 in Python
  DType type = *loop_type(u.name, u.loops, common.dtype, types(x)).dtype;
  if (is_integer(type) && negative)
    compile_error("integers cannot be raised to a negative integer power: " + describe(base) +
                      " ** " + spell(exponent.literal),
                  {"integer powers take exponents from 0 up",
                   "hint: write " + spell(exponent.literal) + ".0 for a float64 result"});
  if (number) {
    // x ** 2 is NumPy's square, which takes a bool to int8.
    const double e = as_double(exponent.literal);
    if (e == 2 && base == PromotedType{DType::b1, false} && !is_float(type) && u.python_operator)
      type = DType::i8;
    const ValueId left = convert(x[0], type);
    const ValueId fast = composites::static_power(b, left, type, e);
    const ValueId result =
        fast.valid() ? fast : b.value(Opcode::pow, {left, convert(exponent, type)});
    if (common.weak && is_integer(type)) m.checks.integers.push_back({result, type});
    return value_of(result, common.weak);
  }
  if (is_integer(type) && exponent_type.weak && !is_literal(exponent))
    require_range(read(exponent), DType::u64);  // not negative
  const ValueId left = convert(x[0], type);
  const ValueId right = convert(exponent, type);
  const ValueId result = b.value(Opcode::pow, {left, right});
  if (common.weak && is_integer(type)) m.checks.integers.push_back({result, type});
  return value_of(result, common.weak);
}

// Operands: the array, the lower bound and, if there is one, the upper. Python integers that bound
// nothing in the array's type are dropped, as NumPy does; a run-time one is brought into the type
// first.
Value Tracer::State::clip(std::span<const Value> x) {
  const PromotedType array{type(x[0]).dtype, false};  // clip makes an array of a Python number
  const auto python_int = [&](const Value& v) { return type(v).weak && is_integer(type(v).dtype); };
  std::vector<Value> kept{x[0]};
  std::vector<std::optional<size_t>> bounds(2);  // of lower and upper: where in `kept`
  for (size_t i = 1; i < x.size(); ++i) {
    if (is_integer(array.dtype) && is_literal(x[i]) && python_int(x[i])) {
      const bool out = !fits(x[i].literal, array.dtype);
      if (out && is_negative(x[i].literal) == (i == 1)) continue;
    }
    bounds[i - 1] = kept.size();
    kept.push_back(x[i]);
  }
  std::vector<PromotedType> kept_types = types(kept);
  kept_types[0] = array;
  const DType type = common_type(kept_types).dtype;
  const auto bound = [&](const std::optional<size_t>& at) -> ValueId {
    if (!at) return {};
    const Value& v = kept[*at];
    if (is_literal(v) || !python_int(v) || !is_integer(type) || type == DType::i64)
      return convert(v, type);
    const auto [low, high] = int64_range(type);
    const ValueId least = b.constant(ir::Scalar::of(low)), most = b.constant(ir::Scalar::of(high));
    const ValueId above = b.value(Opcode::maximum, {read(v), least});
    return b.cast(b.value(Opcode::minimum, {above, most}), type);
  };
  const ValueId array_value = convert(kept[0], type);
  const ValueId lower = bound(bounds[0]), upper = bound(bounds[1]);
  return value_of(composites::clip(b, std::vector{array_value, lower, upper}, type));
}

// ldexp(x, exponent): two types that do not meet. NumPy has exponents of int32, which Python
// integers have to fit, and of int64.
Value Tracer::State::scale(const Ufunc& u, std::span<const Value> x) {
  std::vector<PromotedType> base{type(x[0])};
  const PromotedType exponent = type(x[1]);
  if (is_float(exponent.dtype) || (!exponent.weak && exponent.dtype == DType::u64))
    compile_error(
        "`" + std::string(u.name) + "` of " + list_types(types(x)),
        {"exponents are integers that int64 holds", "hint: cast them first: n.astype(np.int32)"});
  // What NumPy takes a Python int for.
  if (base[0].weak && !is_float(base[0].dtype))
    base[0] = {is_bool(exponent.dtype) ? DType::i64 : DType::i8, false};
  const LoopType loop = loop_type(u.name, u.loops, base[0].dtype, base);
  if (!loop.dtype)
    compile_error("`" + std::string(u.name) + "` of " + list_types(types(x)),
                  {loop.allowed, "hint: " + loop.hint});
  const bool wide =
      !exponent.weak && (exponent.dtype == DType::i64 || exponent.dtype == DType::u32);
  const DType type = is_half(*loop.dtype) ? DType::f32 : *loop.dtype;
  const ValueId value = b.cast(convert(x[0], *loop.dtype), type);
  const ValueId by = convert(x[1], wide ? DType::i64 : DType::i32);
  return value_of(b.cast(u.composite(b, std::vector{value, by}, type), *loop.dtype));
}

Value Tracer::State::where(std::span<const Value> x) {
  const DType type = common_type(types(x.subspan(1))).dtype;
  const ValueId condition = convert(x[0], DType::b1);
  const ValueId if_true = convert(x[1], type, Fit::wrapped);
  const ValueId if_false = convert(x[2], type, Fit::wrapped);
  return value_of(b.value(Opcode::select, {condition, if_true, if_false}));
}

}  // namespace picokernel::frontend
