// Operands: what promotion sees of them, and their conversion to the type that a loop runs in.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "frontend/state.h"
#include "ir/eval.h"
#include "support/check.h"

namespace picokernel::frontend {
namespace {

// Of a real one.
ir::Scalar as_scalar(const Literal& literal) {
  return std::visit(
      []<class V>(V value) {
        if constexpr (std::is_same_v<V, std::complex<double>>)
          return ir::Scalar::of(value.real());
        else
          return ir::Scalar::of(value);
      },
      literal);
}

// Python truncates a float before the check.
bool float_fits(double value, DType type) {
  const double whole = std::trunc(value);
  return ir::visit(type, [&]<class T>(T*) {
    if constexpr (ir::is_floating_type<T>) return true;
    // 2^bits is a double, the largest value need not be one.
    else
      return whole >= static_cast<double>(std::numeric_limits<T>::min()) &&
             whole < std::ldexp(1.0, std::numeric_limits<T>::digits);
  });
}

}  // namespace

bool fits(const Literal& literal, DType type) {
  return std::visit(
      [&]<class V>(V value) {
        if constexpr (std::is_same_v<V, bool> || std::is_same_v<V, std::complex<double>>) {
          return true;
        } else if constexpr (std::is_same_v<V, double>) {
          return float_fits(value, type);
        } else {
          return ir::visit(type, [&]<class T>(T*) {
            if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
              return std::in_range<T>(value);
            else
              return true;
          });
        }
      },
      literal);
}

bool is_negative(const Literal& literal) {
  if (const double* value = std::get_if<double>(&literal)) return *value < 0;
  const int64_t* value = std::get_if<int64_t>(&literal);
  return value != nullptr && *value < 0;
}

double as_double(const Literal& literal) {
  return ir::cast(as_scalar(literal), DType::f64).as<double>();
}

std::string spell(const Literal& literal) {
  if (const bool* truth = std::get_if<bool>(&literal)) return *truth ? "True" : "False";
  if (const auto* value = std::get_if<std::complex<double>>(&literal))
    return "(" + spell(value->real()) + " + " + spell(value->imag()) + "j)";
  if (const double* value = std::get_if<double>(&literal)) {
    char text[32];
    std::snprintf(text, sizeof text, "%.15g", *value);
    return text;
  }
  if (const int64_t* value = std::get_if<int64_t>(&literal)) return std::to_string(*value);
  return std::to_string(std::get<uint64_t>(literal));
}

std::string spell_range(DType type) {
  return ir::visit(type, [&]<class T>(T*) {
    using Limits = std::numeric_limits<T>;
    if constexpr (ir::is_floating_type<T>)
      return std::string();
    else
      return std::to_string(Limits::lowest()) + " to " + std::to_string(Limits::max());
  });
}

std::pair<int64_t, int64_t> int64_range(DType type) {
  return ir::visit(type, []<class T>(T*) -> std::pair<int64_t, int64_t> {
    constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
    if constexpr (ir::is_floating_type<T> || std::is_same_v<T, uint64_t>)
      return {std::is_unsigned_v<T> ? 0 : -kMax - 1, kMax};
    else
      return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  });
}

PromotedType Tracer::State::type(const Value& v) const {
  if (v.kind == Value::Kind::literal) {
    const bool complex = std::holds_alternative<std::complex<double>>(v.literal);
    return {complex ? DType::c128 : as_scalar(v.literal).dtype, true};
  }
  const DType dtype = m.type(v.id).dtype;
  return {v.complex ? complex_of(dtype) : dtype, v.weak};
}

std::vector<PromotedType> Tracer::State::types(std::span<const Value> values) const {
  std::vector<PromotedType> list;
  for (const Value& v : values) list.push_back(type(v));
  return list;
}

void Tracer::State::note_reads_of(ir::ValueId ref) {
  const auto position = [&](ir::ValueId param) {
    return static_cast<uint32_t>(std::ranges::find(m.params(), param) - m.params().begin());
  };
  const uint32_t read = position(root(ref));
  if (read == m.params().size()) return;  // a scratch
  for (const ir::ValueId param : written) {
    const std::pair<uint32_t, uint32_t> late{read, position(param)};
    if (late.first == late.second) continue;
    if (std::ranges::find(m.checks.late_reads, late) == m.checks.late_reads.end())
      m.checks.late_reads.push_back(late);
  }
}

// Two reads with no store to their storage between them are one.
ir::ValueId Tracer::State::read(const Value& v) {
  PK_CHECK(v.kind != Value::Kind::literal);
  if (v.kind == Value::Kind::value) return v.id;
  note_reads_of(v.id);
  const auto [it, added] = versions.try_emplace(v.id);
  if (added) it->second = b.read(v.id);
  return it->second;
}

// A complex number loses its imaginary part, as in NumPy; as a bool it is not zero.
ir::ValueId Tracer::State::convert(const Value& v, DType to, Fit fit) {
  if (is_complex(type(v).dtype)) {
    const ir::ValueId re = convert(real(v), to, fit);
    return is_bool(to) ? b.value(ir::Opcode::or_, {re, convert(imag(v), to, fit)}) : re;
  }
  if (v.kind != Value::Kind::literal) {
    const ir::ValueId id = read(v);
    if (v.weak && is_integer(to) && fit == Fit::checked) require_range(id, to);
    return b.cast(id, to);
  }
  if (is_integer(to) && fit == Fit::checked && !fits(v.literal, to))
    compile_error("the Python number " + spell(v.literal) + " does not fit " +
                      std::string(numpy_name(to)) + ", the type of what it meets",
                  {std::string(numpy_name(to)) + " holds " + spell_range(to),
                   "hint: cast the array first, as in a.astype(np.int64)"});
  return b.constant(ir::cast(as_scalar(v.literal), to));
}

// An argument by itself is checked against the type; a computed integer is computed again at each
// call.
void Tracer::State::require_range(ir::ValueId v, DType to) {
  const ir::Type& type = m.type(v);
  if (!type.is_scalar() || !is_integer(type.dtype) || type.dtype == to) return;
  const auto params = m.params();
  const auto param = std::ranges::find(params, v);
  if (param == params.end()) {
    m.checks.integers.push_back({v, to});
    return;
  }
  const ir::RangeCheck check{static_cast<uint32_t>(param - params.begin()), to};
  if (std::ranges::find(m.range_checks, check) == m.range_checks.end())
    m.range_checks.push_back(check);
}

ir::ValueId Tracer::State::root(ir::ValueId ref) const {
  while (const ir::Op* op = m.def(ref)) {
    if (op->opcode != ir::Opcode::view) break;
    ref = op->operands[0];
  }
  return ref;
}

}  // namespace picokernel::frontend
