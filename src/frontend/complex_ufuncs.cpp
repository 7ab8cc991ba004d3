// Ufuncs with complex operands: parts of one type, then formulas on them.
#include <algorithm>

#include "frontend/state.h"
#include "ir/pairs.h"
#include "support/check.h"

namespace picokernel::frontend {

using ir::Opcode;
using ir::ValueId;

Value Tracer::State::real(const Value& v) {
  if (v.kind == Value::Kind::literal) {
    const auto* number = std::get_if<std::complex<double>>(&v.literal);
    if (number == nullptr) return v;
    return {.kind = Value::Kind::literal, .weak = true, .literal = number->real()};
  }
  if (!v.complex) return v;
  if (v.kind == Value::Kind::value) return {.kind = Value::Kind::value, .weak = v.weak, .id = v.id};
  auto& refs = part_refs[v.id];
  if (!refs[0].valid()) refs = {ir::part_of(b, v.id, 0), ir::part_of(b, v.id, 1)};
  return {.kind = Value::Kind::ref, .weak = v.weak, .id = refs[0]};
}

Value Tracer::State::imag(const Value& v) {
  if (v.kind == Value::Kind::literal) {
    const auto* number = std::get_if<std::complex<double>>(&v.literal);
    return {.kind = Value::Kind::literal, .weak = true, .literal = number ? number->imag() : 0.0};
  }
  if (!v.complex) {
    const ValueId value = read(v);
    return {.kind = Value::Kind::value,
            .weak = v.weak,
            .id = broadcast_like(composites::number(b, m.type(value).dtype, 0), value)};
  }
  if (v.kind == Value::Kind::value)
    return {.kind = Value::Kind::value, .weak = v.weak, .id = v.imag};
  real(v);
  return {.kind = Value::Kind::ref, .weak = v.weak, .id = part_refs.at(v.id)[1]};
}

Complex Tracer::State::parts(const Value& v, DType of_parts) {
  const bool complex = is_complex(type(v).dtype);
  const ValueId re = convert(real(v), of_parts);
  return {re, complex ? convert(imag(v), of_parts) : composites::number(b, of_parts, 0)};
}

ValueId Tracer::State::broadcast_like(ValueId v, ValueId like) {
  if (m.type(v).shape == m.type(like).shape) return v;
  const ValueId always = b.constant(ir::Scalar::of(true));
  return b.value(Opcode::select, {always, v, b.cast(like, m.type(v).dtype)});
}

Value Tracer::State::complex_value(Complex parts) {
  const ValueId re = broadcast_like(parts.real, parts.imag);
  return {.kind = Value::Kind::value,
          .complex = true,
          .id = re,
          .imag = broadcast_like(parts.imag, re)};
}

Value Tracer::State::complex_choice(std::span<const Value> x, DType type) {
  const ValueId condition = convert(x[0], DType::b1);
  if (!is_complex(type)) {
    const ValueId if_true = convert(x[1], type), if_false = convert(x[2], type);
    return {.kind = Value::Kind::value,
            .id = b.value(Opcode::select, {condition, if_true, if_false})};
  }
  const Complex if_true = parts(x[1], real_of(type)), if_false = parts(x[2], real_of(type));
  const ValueId re = b.value(Opcode::select, {condition, if_true.real, if_false.real});
  return complex_value({re, b.value(Opcode::select, {condition, if_true.imag, if_false.imag})});
}

Value Tracer::State::apply_complex(const Ufunc& u, std::span<const Value> x) {
  if (u.loops == Loops::choice) return complex_choice(x, common_type(types(x.subspan(1))).dtype);
  if (u.loops == Loops::truth) return emit(u, x, common_type(types(x)));  // of x != 0
  const ComplexFunction function = find_complex(u.name);
  if (function == nullptr) {
    std::string operands;
    for (const PromotedType& t : types(x))
      operands += (operands.empty() ? "" : " and ") + describe(t);
    compile_error("`" + std::string(u.name) + "` of " + operands,
                  {std::string(complex_functions()),
                   "hint: compute with z.real and z.imag, or write the formula"});
  }
  const PromotedType common = common_type(types(x));
  std::vector<Complex> operands;
  for (const Value& v : x) operands.push_back(parts(v, real_of(common.dtype)));
  Complex result;
  if (u.opcode == Opcode::pow && x[1].kind == Value::Kind::literal && !is_complex(type(x[1]).dtype))
    result = complex_power(b, operands[0], as_double(x[1].literal));
  if (result.real.valid()) result.real = broadcast_like(result.real, operands[0].real);  // z ** 0
  if (!result.real.valid()) result = function(b, operands);
  const bool weak = common.weak && u.python_operator;
  Value value = {.kind = Value::Kind::value, .id = result.real};
  if (result.imag.valid()) value = complex_value(result);
  value.weak = weak;
  return value;
}

}  // namespace picokernel::frontend
