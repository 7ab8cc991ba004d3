// Exact evaluation of scalar integers.
#include "driver/integer_checks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace picokernel::driver {
namespace {

using ir::Opcode;
using ir::ValueId;
__extension__ using Wide = __int128;  // holds every product of two 64-bit integers

class Exact {
 public:
  Exact(const std::string& kernel, const ir::Module& m, std::span<const Arg> args,
        std::span<const int64_t> symbols)
      : kernel_(kernel), m_(m), args_(args), symbols_(symbols) {}

  void check(ir::CallChecks::Integer c) const {
    const std::optional<Wide> v = value(c.value);
    if (v) require(*v, c.dtype, location(c.value));
  }

 private:
  Location location(ValueId v) const {
    return m_.def(v) != nullptr ? m_.location(*m_.def(v)) : Location{};
  }

  [[noreturn]] void fail(const std::string& what, const Location& where) const {
    throw LaunchError(Diagnostic{.severity = Severity::error,
                                 .location = where,
                                 .message = "kernel " + kernel_ + ": " + what,
                                 .notes = {"Python ints have no bounds, a kernel's have: compute "
                                           "this number before the call, or as a float"}});
  }

  void require(Wide v, DType dtype, const Location& where) const {
    const bool fits = ir::visit(dtype, [&]<class T>(T*) {
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        return v >= Wide(std::numeric_limits<T>::min()) && v <= Wide(std::numeric_limits<T>::max());
      else
        return true;
    });
    if (fits) return;
    const bool small =
        v >= std::numeric_limits<int64_t>::min() && v <= std::numeric_limits<int64_t>::max();
    fail(
        "the Python integer " +
            (small ? std::to_string(static_cast<int64_t>(v)) + " computed here" : "computed here") +
            " is out of bounds for " + std::string(numpy_name(dtype)),
        where);
  }

  // Nothing: not made of integers alone. Each value once: they may share what they are made of.
  std::optional<Wide> value(ValueId v) const {
    if (const auto known = values_.find(v); known != values_.end()) return known->second;
    return values_[v] = evaluate(v);
  }

  std::optional<Wide> evaluate(ValueId v) const {
    if (!is_integer(m_.type(v).dtype) || !m_.type(v).is_scalar()) return std::nullopt;
    const auto param = std::ranges::find(m_.params(), v);
    if (param != m_.params().end()) {
      const Arg& a = args_[static_cast<size_t>(param - m_.params().begin())];
      return is_unsigned(a.dtype) ? Wide(a.bits) : Wide(static_cast<int64_t>(a.bits));
    }
    const ir::Op& op = *m_.def(v);
    if (op.opcode == Opcode::constant)
      return is_unsigned(op.scalar_dtype) ? Wide(op.attribute)
                                          : Wide(static_cast<int64_t>(op.attribute));
    if (op.opcode == Opcode::size) return m_.sizes.eval(op.size(), symbols_);
    if (!ir::info(op.opcode).elementwise()) return std::nullopt;
    std::optional<Wide> x, y;
    if (!op.operands.empty() && !(x = value(op.operands[0]))) return std::nullopt;
    if (op.operands.size() > 1 && !(y = value(op.operands[1]))) return std::nullopt;
    const std::optional<Wide> result = apply(op, *x, y.value_or(0));
    if (result) require(*result, m_.type(v).dtype, m_.location(op));
    return result;
  }

  std::optional<Wide> apply(const ir::Op& op, Wide x, Wide y) const {
    const Location where = m_.location(op);
    if (op.opcode == Opcode::cast) return x;
    if (op.opcode == Opcode::add) return x + y;
    if (op.opcode == Opcode::sub) return x - y;
    if (op.opcode == Opcode::mul) return x * y;
    if (op.opcode == Opcode::neg) return -x;
    if (op.opcode == Opcode::abs) return x < 0 ? -x : x;
    if (op.opcode == Opcode::and_) return x & y;
    if (op.opcode == Opcode::or_) return x | y;
    if (op.opcode == Opcode::xor_) return x ^ y;
    if (op.opcode == Opcode::not_) return ~x;
    if (op.opcode == Opcode::minimum) return std::min(x, y);
    if (op.opcode == Opcode::maximum) return std::max(x, y);
    if (op.opcode == Opcode::floordiv || op.opcode == Opcode::mod) {
      if (y == 0) fail("integer division by zero", where);
      const Wide r = x % y, floored = r != 0 && ((r < 0) != (y < 0)) ? r + y : r;
      return op.opcode == Opcode::mod ? floored : (x - floored) / y;
    }
    if (op.opcode == Opcode::shl || op.opcode == Opcode::shr) {
      if (y < 0) fail("negative shift count", where);
      if (op.opcode == Opcode::shr)
        return y > 64 ? (x < 0 ? Wide(-1) : Wide(0)) : x >> static_cast<int>(y);
      if (y > 62 && x != 0) fail("a shifted Python integer is out of bounds for int64", where);
      return x << static_cast<int>(y > 62 ? 0 : y);
    }
    if (op.opcode == Opcode::pow) {
      if (y < 0) return std::nullopt;
      Wide result = 1;
      for (Wide i = 0; i < y && x != 1 && x != 0 && x != -1; ++i) {
        result *= x;
        require(result, m_.type(op.results[0]).dtype, where);
      }
      return x == 0    ? Wide(y == 0)
             : x == 1  ? Wide(1)
             : x == -1 ? (y % 2 != 0 ? Wide(-1) : Wide(1))
                       : result;
    }
    return std::nullopt;
  }

  const std::string& kernel_;
  const ir::Module& m_;
  std::span<const Arg> args_;
  std::span<const int64_t> symbols_;
  mutable std::map<ValueId, std::optional<Wide>> values_;
};

}  // namespace

void check_integers(const std::string& kernel, const ir::Module& traced, std::span<const Arg> args,
                    std::span<const int64_t> symbols) {
  const Exact exact(kernel, traced, args, symbols);
  for (const ir::CallChecks::Integer& c : traced.checks.integers) exact.check(c);
}

}  // namespace picokernel::driver
