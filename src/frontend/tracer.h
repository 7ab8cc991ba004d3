// The meaning of traced array code, shared by the Python and C++ front ends: promotion (NEP 50),
// broadcasting, reads and writes of storages. It builds graph-level IR and reports every user error
// at the user's line.
#pragma once

#include <complex>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/module.h"

namespace picokernel::frontend {

// What a trace may rely on about one argument. `shape` holds the sizes of the call that caused the
// trace: the trace itself depends only on the rank and on which sizes are 1; the rest become
// symbols.
struct ArgSpec {
  enum class Kind : uint8_t { array, scalar };  // complex numbers are arrays of rank 0
  Kind kind = Kind::array;
  DType dtype = DType::f32;
  bool weak = false;  // from a Python number: takes part in promotion by kind only (NEP 50)
  std::string name;
  std::vector<int64_t> shape = {};  // array only
};

// A Python number in the traced code.
using Literal = std::variant<bool, int64_t, uint64_t, double, std::complex<double>>;

// A traced value. Cheap to copy; valid as long as its Tracer.
struct Value {
  enum class Kind : uint8_t { value, ref, literal };
  Kind kind = Kind::value;
  bool weak = false;        // promotion by kind only: literals and weak scalar arguments, and what
                            // operators (a + b, not np.sqrt(a)) make of these alone
  bool complex = false;     // value, ref
  ir::ValueId id = {};      // value, ref; complex: the real part of a value, a ref to pairs
  ir::ValueId imag = {};    // of a complex value
  Literal literal = false;  // literal
};

// One entry of an index such as a[1:-1, None, 0, ...]. Bounds are integer literals, or weak
// integers made of sizes; negative ones count from the end.
struct Index {
  enum class Kind : uint8_t { slice, integer, newaxis, ellipsis };
  Kind kind = Kind::slice;
  std::optional<Value> start = {}, stop = {};  // slice
  int64_t step = 1;
  Value integer = {.kind = Value::Kind::literal, .weak = true, .literal = int64_t{0}};
};

class Tracer {
 public:
  struct State;  // state.h
  Tracer(std::string kernel_name, std::span<const ArgSpec> args, const Location& definition,
         FloatMode floats = {});
  ~Tracer();

  Value argument(size_t i) const;  // array: a ref; scalar: a value

  /// A NumPy ufunc, or where or clip, by NumPy's name ("add", "true_divide", ...) with NumPy's
  /// promotion. clip takes two operands where there is no upper bound; without a lower one it is
  /// minimum. Throws CompileError (unsupported name: with the nearest known one as a hint; wrong
  /// types; a literal that does not fit the integer type that it meets) or LaunchError (shapes that
  /// do not broadcast: with the actual shapes of this call).
  Value apply(std::string_view ufunc, std::span<const Value> operands, const Location& where);
  static std::vector<std::string_view> known_ufuncs();  // sorted
  static int arity(std::string_view ufunc);

  /// astype: unsafe, as NumPy's. A Python number is checked: np.uint8(300) is an error.
  Value cast(Value v, DType dtype, const Location& where);
  /// `target[...] = v`: broadcast to the target, cast unsafely as setitem does. The target must be
  /// a ref.
  void store(Value target, Value v, const Location& where);
  /// A ufunc's out=: the value must cast to the target's dtype by "same_kind". It broadcasts to the
  /// target, which is never broadcast.
  void store_out(Value target, Value v, const Location& where);

  /// A ref to an array's own memory: an argument's or a view's as it is; a computed array gets one.
  Value storage(Value v, const Location& where);
  /// NumPy's basic indexing: a ref that shows part of the array's storage. Throws CompileError (too
  /// many indices, step 0) or LaunchError (an integer out of bounds).
  Value index(Value v, std::span<const Index> indices, const Location& where);
  /// The array with its dimensions in another order: `axes` names each once.
  Value transpose(Value v, std::span<const size_t> axes, const Location& where);

  /// The real and the imaginary part: refs to the same memory if v is one. Of a real array: itself,
  /// and zeros.
  Value real(Value v, const Location& where);
  Value imag(Value v, const Location& where);

  /// The truth of a comparison of sizes and integers, or of an integer made of them, in this call:
  /// it becomes a guard. Nothing: it is known when the kernel runs.
  std::optional<bool> decide(Value v, const Location& where);

  DType dtype(Value v) const;                // weak ones: int64, float64 or complex128
  std::vector<SizeId> shape(Value v) const;  // valid until the next apply or store
  const ir::Module& module() const;
  Value size(SizeId size, const Location& where);  // a size as a weak integer value

  /// Ends the trace: returned values become results. Weak ones take their default dtype (bool,
  /// int64, float64, complex128). The module is verified, its symbols are numbered by first use in
  /// the parameters.
  ir::Module finish(std::span<const Value> returned, const Location& where);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace picokernel::frontend
