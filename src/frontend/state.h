// What a Tracer holds: the module under construction, and the sizes of the call that caused the
// trace.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "frontend/complex.h"
#include "frontend/promotion.h"
#include "frontend/tracer.h"
#include "frontend/ufuncs.h"
#include "ir/builder.h"

namespace picokernel::frontend {

// `checked`: a Python integer must fit the integer type that it meets. `wrapped`: it wraps, as in
// NumPy's where.
enum class Fit : uint8_t { checked, wrapped };

struct Tracer::State {
  State(std::string kernel_name, std::span<const ArgSpec> specs);

  ir::Module m;
  ir::Builder b;
  std::vector<ArgSpec> args;
  std::vector<int64_t> symbol_sizes;  // by symbol: its size in this call
  std::map<ir::ValueId, ir::ValueId>
      versions;  // ref -> its storage's current version, where already read
  std::map<ir::ValueId, std::array<ir::ValueId, 2>> part_refs;  // of refs to pairs
  Location here;                                                // of the ops being built
  bool stored = false;
  std::set<ir::ValueId> written;  // arguments, so far

  void at(const Location& where);
  [[noreturn]] void compile_error(std::string message, std::vector<std::string> notes) const;
  [[noreturn]] void launch_error(std::string message, std::string hint) const;

  // convert.cpp
  PromotedType type(const Value& v) const;
  std::vector<PromotedType> types(std::span<const Value> values) const;
  ir::ValueId read(const Value& v);  // not of literals
  ir::ValueId convert(const Value& v, DType to, Fit fit = Fit::checked);
  void require_range(ir::ValueId v, DType to);
  void note_reads_of(ir::ValueId ref);  // after writes to other arguments
  ir::ValueId root(ir::ValueId ref) const;
  ir::ValueId storage_of(const Value& v);  // index.cpp
  SizeId bound(const Value& v);            // of a slice
  std::optional<SizeId> as_size(const Value& v);
  // Facts about sizes in this call, kept as guards.
  bool at_least(SizeId a, SizeId b);
  bool equal(SizeId a, SizeId b);
  ir::DimMap whole_dimension(ir::ValueId ref, size_t dimension);
  /// Real parts of complex values, and what else becomes real.
  Value real(const Value& v);
  Value imag(const Value& v);
  Complex parts(const Value& v, DType of_parts);
  /// `like` gives a shape only.
  ir::ValueId broadcast_like(ir::ValueId v, ir::ValueId like);
  Value complex_value(Complex parts);

  // shapes.cpp: sizes that must be equal become one symbol, in all types so far; SizeIds from
  // before are void then.
  std::vector<SizeId> shape(const Value& v) const;
  std::string spell_shape(const Value& v) const;  // of this call: (3,4)
  void broadcast(std::string_view ufunc, std::span<const Value> operands);
  /// The value broadcasts to the target and the target stays as it is. False: it does not.
  bool broadcast_to(const Value& v, const Value& target);
  void renumber_symbols();
  void drop_unused_checks();  // tracer.cpp
  void simplify_guards();     // index.cpp

  // apply.cpp
  Value apply(const Ufunc& ufunc, std::span<const Value> operands);
  Value emit(const Ufunc& ufunc, std::span<const Value> operands, PromotedType common);
  Value compare(const Ufunc& ufunc, std::span<const Value> operands, PromotedType common);
  Value power(const Ufunc& ufunc, std::span<const Value> operands, PromotedType common);
  Value clip(std::span<const Value> operands);
  Value scale(const Ufunc& ufunc, std::span<const Value> operands);
  Value where(std::span<const Value> operands);

  // complex_ufuncs.cpp
  Value apply_complex(const Ufunc& ufunc, std::span<const Value> operands);
  Value complex_choice(std::span<const Value> operands, DType type);

  void store(const Value& target, const Value& v, const char* what);

 private:
  void guard(SizeId left, ir::Relation relation, SizeId right);
  void write(ir::ValueId target, ir::ValueId value);
  bool unify(SizeId a, SizeId b);
  uint32_t last_symbol(SizeId size) const;  // of an expression that has one
  std::optional<bool> join(SizeId a, SizeId b);
};

/// The integer literal is a value of this integer type. Bools always are.
bool fits(const Literal& literal, DType type);
bool is_negative(const Literal& literal);
double as_double(const Literal& literal);  // of a real one
std::string spell(const Literal& literal);
std::string spell_range(DType type);  // "0 to 255"
/// The least and the largest value of an integer type, as far as int64 reaches.
std::pair<int64_t, int64_t> int64_range(DType type);

}  // namespace picokernel::frontend
