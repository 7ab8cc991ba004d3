// Kernels of threads: a function that runs once for each thread of a grid, as CUDA's kernels do.
// The function given to simt::kernel runs once, when the kernel is made: expressions, if_, for_ and
// assignments to variables and elements write the kernel's code. Its meaning is that of
// docs/thread-kernels.md: C++ numbers are weak, `/` is true division, `%` has the divisor's sign.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <picokernel/kernel.h>

namespace picokernel::simt {

namespace detail {

// A piece of a kernel's code: an expression that is not evaluated yet.
struct Tree;
using TreePtr = std::shared_ptr<const Tree>;
using Number = std::variant<bool, int64_t, uint64_t, double>;
using Trees = std::initializer_list<TreePtr>;

PK_API TreePtr weak(Number number, SourceLocation where);
/// Operators and calls have the names of Python's syntax tree and of the modules that it calls.
PK_API TreePtr binary(const char* op, TreePtr a, TreePtr b, SourceLocation where);
PK_API TreePtr unary(const char* op, TreePtr a, SourceLocation where);
PK_API TreePtr compare(const char* op, TreePtr a, TreePtr b, SourceLocation where);
PK_API TreePtr both(const char* op, TreePtr a, TreePtr b, SourceLocation where);
PK_API TreePtr choice(TreePtr condition, TreePtr yes, TreePtr no, SourceLocation where);
PK_API TreePtr object(const char* name, SourceLocation where);
PK_API TreePtr call(const char* function, Trees arguments, SourceLocation where);
PK_API TreePtr cast(DType dtype, TreePtr a, SourceLocation where);
PK_API TreePtr size(TreePtr array, SourceLocation where);
PK_API TreePtr shape(TreePtr array, size_t axis, SourceLocation where);
PK_API TreePtr element(TreePtr array, std::vector<TreePtr> indices, SourceLocation where);
PK_API TreePtr memory(const char* space, DType dtype, std::vector<int64_t> shape,
                      SourceLocation where);
PK_API TreePtr atomic(const char* name, TreePtr element, std::vector<TreePtr> values,
                      SourceLocation where);

/// Statements.
PK_API TreePtr assign(TreePtr value, SourceLocation where);  // to a new variable: its name
PK_API void store(TreePtr target, TreePtr value, SourceLocation where);
PK_API void augment(TreePtr target, const char* op, TreePtr value, SourceLocation where);
PK_API void statement(const char* kind, SourceLocation where);
PK_API void run(TreePtr value, SourceLocation where);
PK_API void check(TreePtr condition, std::string message, SourceLocation where);

// Regions: what is written between begin and end, by run of a function of the user's.
using Body = std::function<void()>;
PK_API void branch(TreePtr condition, const Body& then, const Body& otherwise,
                   SourceLocation where);
PK_API void loop(TreePtr start, TreePtr stop, TreePtr step,
                 const std::function<void(TreePtr index)>& body, SourceLocation where);
PK_API void repeat(const std::function<TreePtr()>& test, const Body& body, SourceLocation where);

template <picokernel::Number T>
TreePtr weak_number(T n, SourceLocation where) {
  if constexpr (std::is_same_v<T, bool>)
    return weak(n, where);
  else if constexpr (std::is_floating_point_v<T>)
    return weak(static_cast<double>(n), where);
  else if constexpr (std::is_signed_v<T>)
    return weak(static_cast<int64_t>(n), where);
  else
    return weak(static_cast<uint64_t>(n), where);
}

}  // namespace detail

/// A number that is computed where it is used, and used once, in the statement that writes it:
/// name it as a Value or a Var to use it again.
class Expr {
 public:
  explicit Expr(detail::TreePtr tree) : tree_(std::move(tree)) {}
  Expr(Expr&&) = default;
  Expr& operator=(Expr&&) = delete;
  detail::TreePtr take() && { return std::move(tree_); }

 private:
  detail::TreePtr tree_;
};

class Value;
class Var;
template <class T>
class Element;

namespace detail {
template <class T>
inline constexpr bool kOnce = std::is_same_v<T, Expr>;
template <class T>
inline constexpr bool kOnce<Element<T>> = true;
// What a Value or a Var is made of, beside its own kind.
template <class T, class Other>
concept Given = picokernel::Number<std::remove_cvref_t<T>> || kOnce<std::remove_cvref_t<T>> ||
                std::derived_from<std::remove_cvref_t<T>, Other>;
template <class T>
TreePtr taken(T&& value, SourceLocation where);
}  // namespace detail

/// What operators and functions take, and the place in the source where it is used: made by
/// conversion, never by name.
struct Operand {
  detail::TreePtr tree;
  SourceLocation where;

  template <picokernel::Number T>
  Operand(T number, SourceLocation at = SourceLocation::current())
      : tree(detail::weak_number(number, at)), where(at) {}
  Operand(Expr&& e, SourceLocation at = SourceLocation::current())
      : tree(std::move(e).take()), where(at) {}
  Operand(const Value& v, SourceLocation at = SourceLocation::current());
  Operand(const Var& v, SourceLocation at = SourceLocation::current());
  template <class T>
  Operand(Element<T>&& e, SourceLocation at = SourceLocation::current())
      : tree(std::move(e).take()), where(at) {}
};

/// A number that stays what it is: computed where it is made.
class Value {
 public:
  template <detail::Given<Var> T>
  Value(T&& value, SourceLocation where = SourceLocation::current())
      : tree_(detail::assign(detail::taken(std::forward<T>(value), where), where)) {}

  /// Of a tree that gives the same wherever it is used.
  static Value of(detail::TreePtr tree) { return Value(std::move(tree), Invariant{}); }
  const detail::TreePtr& tree() const { return tree_; }

 private:
  struct Invariant {};
  Value(detail::TreePtr tree, Invariant) : tree_(std::move(tree)) {}
  detail::TreePtr tree_;
};

/// A variable. It has one type, the common one of what it is assigned; that of a C++ number it
/// starts as is the number's own: Var total(0.0f) is a float. A copy is a variable of its own.
class Var {
 public:
  template <detail::Given<Value> T>
  explicit Var(T&& value, SourceLocation where = SourceLocation::current()) {
    detail::TreePtr start = detail::taken(std::forward<T>(value), where);
    if constexpr (picokernel::Number<std::remove_cvref_t<T>>)
      start = detail::cast(element_dtype<std::remove_cvref_t<T>>, start, where);
    tree_ = detail::assign(std::move(start), where);
  }
  Var(const Var& other, SourceLocation where = SourceLocation::current())
      : tree_(detail::assign(other.tree_, where)) {}

  Var& operator=(Operand value) {
    detail::store(tree_, std::move(value.tree), value.where);
    return *this;
  }
  Var& operator=(const Var& other) { return *this = Operand(other); }
  const detail::TreePtr& tree() const { return tree_; }

 private:
  detail::TreePtr tree_;
};

/// An element of an array: assigned to, or read once, in the statement that writes it.
template <class T>
class Element {
 public:
  explicit Element(detail::TreePtr tree) : tree_(std::move(tree)) {}
  Element(Element&&) = default;
  detail::TreePtr take() && { return std::move(tree_); }

  void operator=(Operand value) && {
    detail::store(std::move(tree_), std::move(value.tree), value.where);
  }
  void operator=(Element&& value) && { std::move(*this) = Operand(std::move(value)); }

 private:
  detail::TreePtr tree_;
};

template <class T>
detail::TreePtr detail::taken(T&& value, SourceLocation where) {
  static_assert(!kOnce<std::remove_cvref_t<T>> || !std::is_lvalue_reference_v<T>,
                "an expression and an element are used once, where they are written: "
                "keep them as simt::Value");
  return Operand(std::forward<T>(value), where).tree;
}
inline Operand::Operand(const Value& v, SourceLocation at) : tree(v.tree()), where(at) {}
inline Operand::Operand(const Var& v, SourceLocation at) : tree(v.tree()), where(at) {}

/// An array of N dimensions: an argument of the kernel, shared or local memory. Elements of
/// Array<const T> are read only. Negative indices count from the end.
template <class T, size_t N = 1>
class Array {
 public:
  explicit Array(detail::TreePtr tree) : tree_(std::move(tree)) {}

  auto operator[](Operand index) const
    requires(N == 1)
  {
    return (*this)(std::move(index));
  }
  template <std::convertible_to<Operand>... I>
  auto operator()(I&&... indices) const {
    static_assert(sizeof...(I) == N, "an element has an index for each dimension");
    std::vector<Operand> list;
    (list.emplace_back(std::forward<I>(indices)), ...);
    return at(std::move(list));
  }
  auto operator()(Operand index) const
    requires(N == 1)
  {
    return at({std::move(index)});
  }
  /// How many elements there are, and how many along an axis: int64.
  Value size(SourceLocation where = SourceLocation::current()) const {
    return Value::of(detail::size(tree_, where));
  }
  Value shape(size_t axis, SourceLocation where = SourceLocation::current()) const {
    return Value::of(detail::shape(tree_, axis, where));
  }

 private:
  auto at(std::vector<Operand> indices) const {
    std::vector<detail::TreePtr> trees;
    for (const Operand& i : indices) trees.push_back(i.tree);
    detail::TreePtr tree = detail::element(tree_, std::move(trees), indices[0].where);
    if constexpr (std::is_const_v<T>)
      return Expr(std::move(tree));
    else
      return Element<T>(std::move(tree));
  }
  detail::TreePtr tree_;
};

/// A parameter that takes a number: converted to T by the call.
template <picokernel::Element T>
class Scalar : public Value {
 public:
  explicit Scalar(detail::TreePtr tree) : Value(Value::of(std::move(tree))) {}
};

// ---- Operators: X(operator, class of Python's syntax tree)

#define PK_SIMT_BINARY(X) \
  X(+, Add)               \
  X(-, Sub)               \
  X(*, Mult) X(/, Div) X(%, Mod) X(&, BitAnd) X(|, BitOr) X(^, BitXor) X(<<, LShift) X(>>, RShift)
#define PK_SIMT_COMPARISONS(X) X(==, Eq) X(!=, NotEq) X(<, Lt) X(<=, LtE) X(>, Gt) X(>=, GtE)

#define PK_DEFINE(op, name)                                       \
  inline Expr operator op(Operand a, Operand b) {                 \
    return Expr(detail::binary(#name, a.tree, b.tree, a.where));  \
  }                                                               \
  inline Var& operator op## = (Var & a, Operand b) {              \
    detail::augment(a.tree(), #name, b.tree, b.where);            \
    return a;                                                     \
  }                                                               \
  template <class T>                                              \
  void operator op## = (Element<T> && a, Operand b) {             \
    detail::augment(std::move(a).take(), #name, b.tree, b.where); \
  }
PK_SIMT_BINARY(PK_DEFINE)
#undef PK_DEFINE
#define PK_DEFINE(op, name)                                       \
  inline Expr operator op(Operand a, Operand b) {                 \
    return Expr(detail::compare(#name, a.tree, b.tree, a.where)); \
  }
PK_SIMT_COMPARISONS(PK_DEFINE)
#undef PK_DEFINE
#undef PK_SIMT_BINARY
#undef PK_SIMT_COMPARISONS

inline Expr operator-(Operand a) { return Expr(detail::unary("USub", a.tree, a.where)); }
inline Expr operator~(Operand a) { return Expr(detail::unary("Invert", a.tree, a.where)); }
inline Expr operator!(Operand a) { return Expr(detail::unary("Not", a.tree, a.where)); }
/// The right side is evaluated by the threads that need it.
inline Expr operator&&(Operand a, Operand b) {
  return Expr(detail::both("And", a.tree, b.tree, a.where));
}
inline Expr operator||(Operand a, Operand b) {
  return Expr(detail::both("Or", a.tree, b.tree, a.where));
}
/// yes where the condition holds, else no; the other one is not evaluated.
inline Expr select(Operand condition, Operand yes, Operand no) {
  return Expr(detail::choice(condition.tree, yes.tree, no.tree, condition.where));
}
/// As T: floats to integers truncate and saturate, integers wrap.
template <picokernel::Element T>
Expr cast(Operand a) {
  return Expr(detail::cast(element_dtype<T>, a.tree, a.where));
}

#define PK_DEFINE(name) \
  inline Expr name(Operand a) { return Expr(detail::call("numpy." #name, {a.tree}, a.where)); }
PK_UNARY_FUNCTIONS(PK_DEFINE)
#undef PK_DEFINE
#define PK_DEFINE(name)                                                   \
  inline Expr name(Operand a, Operand b) {                                \
    return Expr(detail::call("numpy." #name, {a.tree, b.tree}, a.where)); \
  }
PK_BINARY_FUNCTIONS(PK_DEFINE)
#undef PK_DEFINE
/// 1 / sqrt(a).
inline Expr rsqrt(Operand a) { return Expr(detail::call("simt.rsqrt", {a.tree}, a.where)); }
/// How many bits are set.
inline Expr popc(Operand a) { return Expr(detail::call("simt.popc", {a.tree}, a.where)); }
/// a * b + c, rounded once.
inline Expr fma(Operand a, Operand b, Operand c) {
  return Expr(detail::call("simt.fma", {a.tree, b.tree, c.tree}, a.where));
}

// ---- Ids: int64

struct Dim3 {
  Value x, y, z;
};
#define PK_DEFINE(name)                                                \
  inline Dim3 name(SourceLocation where = SourceLocation::current()) { \
    return {Value::of(detail::object("simt." #name ".x", where)),      \
            Value::of(detail::object("simt." #name ".y", where)),      \
            Value::of(detail::object("simt." #name ".z", where))};     \
  }
PK_DEFINE(threadIdx)
PK_DEFINE(blockIdx)
PK_DEFINE(blockDim)
PK_DEFINE(gridDim)
#undef PK_DEFINE
/// The thread's index in the grid along x, y and z, and how many threads the grid has there.
PK_API Dim3 grid(SourceLocation where = SourceLocation::current());
PK_API Dim3 gridsize(SourceLocation where = SourceLocation::current());

// ---- Memory, barriers, atomics

/// Memory of a block: shared<float>(256), shared<float>({16, 16}).
template <picokernel::Element T>
Array<T> shared(int64_t size, SourceLocation where = SourceLocation::current()) {
  return Array<T>(detail::memory("shared", element_dtype<T>, {size}, where));
}
template <picokernel::Element T, size_t N>
Array<T, N> shared(const int64_t (&sizes)[N], SourceLocation where = SourceLocation::current()) {
  return Array<T, N>(
      detail::memory("shared", element_dtype<T>, {std::begin(sizes), std::end(sizes)}, where));
}
/// Memory of a block, of Grid::shared_bytes.
template <picokernel::Element T>
Array<T> dynamic_shared(SourceLocation where = SourceLocation::current()) {
  return Array<T>(detail::memory("shared", element_dtype<T>, {0}, where));
}
/// Memory of a thread.
template <picokernel::Element T>
Array<T> local(int64_t size, SourceLocation where = SourceLocation::current()) {
  return Array<T>(detail::memory("local", element_dtype<T>, {size}, where));
}
template <picokernel::Element T, size_t N>
Array<T, N> local(const int64_t (&sizes)[N], SourceLocation where = SourceLocation::current()) {
  return Array<T, N>(
      detail::memory("local", element_dtype<T>, {std::begin(sizes), std::end(sizes)}, where));
}

/// Waits for all threads of the block.
inline void syncthreads(SourceLocation where = SourceLocation::current()) {
  detail::run(detail::call("simt.syncthreads", {}, where), where);
}
/// Waits; for how many threads, whether for all, whether for any the condition holds.
#define PK_DEFINE(name)                                                                \
  inline Value name(Operand condition) {                                               \
    return Value(Expr(detail::call("simt." #name, {condition.tree}, condition.where)), \
                 condition.where);                                                     \
  }
PK_DEFINE(syncthreads_count)
PK_DEFINE(syncthreads_and)
PK_DEFINE(syncthreads_or)
#undef PK_DEFINE

/// One step for all threads; gives what was there before: atomic_add(x[i], 1).
#define PK_DEFINE(name, python)                                                                 \
  template <class T>                                                                            \
  Value name(Element<T>&& at, Operand value) {                                                  \
    return Value::of(detail::assign(                                                            \
        detail::atomic(python, std::move(at).take(), {value.tree}, value.where), value.where)); \
  }
PK_DEFINE(atomic_add, "add")
PK_DEFINE(atomic_sub, "sub")
PK_DEFINE(atomic_min, "min")
PK_DEFINE(atomic_max, "max")
PK_DEFINE(atomic_nanmin, "nanmin")
PK_DEFINE(atomic_nanmax, "nanmax")
PK_DEFINE(atomic_and, "and_")
PK_DEFINE(atomic_or, "or_")
PK_DEFINE(atomic_xor, "xor")
PK_DEFINE(atomic_inc, "inc")
PK_DEFINE(atomic_dec, "dec")
PK_DEFINE(atomic_exch, "exch")
#undef PK_DEFINE
/// Stores `value` if `expected` is there.
template <class T>
Value atomic_cas(Element<T>&& at, Operand expected, Operand value) {
  return Value::of(detail::assign(
      detail::atomic("cas", std::move(at).take(), {expected.tree, value.tree}, expected.where),
      expected.where));
}

// ---- Control flow

/// Runs `then` for the threads for which the condition holds, `otherwise` for the others.
inline void if_(Operand condition, const detail::Body& then, const detail::Body& otherwise = {}) {
  detail::branch(condition.tree, then, otherwise, condition.where);
}
/// for_(0, n, [&](simt::Value i) { ... }), with a step after the bounds: Python's range.
template <std::invocable<Value> F>
void for_(Operand start, Operand stop, F body) {
  detail::loop(
      start.tree, stop.tree, nullptr,
      [&](detail::TreePtr index) { body(Value::of(std::move(index))); }, start.where);
}
template <std::invocable<Value> F>
void for_(Operand start, Operand stop, Operand step, F body) {
  detail::loop(
      start.tree, stop.tree, step.tree,
      [&](detail::TreePtr index) { body(Value::of(std::move(index))); }, start.where);
}
/// while_([&] { return i < n; }, [&] { ... }).
template <std::invocable F>
void while_(F test, const detail::Body& body, SourceLocation where = SourceLocation::current()) {
  detail::repeat([&] { return Operand(test(), where).tree; }, body, where);
}
inline void break_(SourceLocation where = SourceLocation::current()) {
  detail::statement("Break", where);
}
inline void continue_(SourceLocation where = SourceLocation::current()) {
  detail::statement("Continue", where);
}
/// Ends the thread.
inline void return_(SourceLocation where = SourceLocation::current()) {
  detail::statement("Return", where);
}

/// In checked kernels, and on ref: a launch in which the condition does not hold for a thread is a
/// KernelError with this text, and the thread ends.
inline void check(Operand condition, std::string message = {}) {
  detail::check(condition.tree, std::move(message), condition.where);
}

// ---- Launches

struct Extent {
  int64_t x = 1, y = 1, z = 1;
  Extent(int64_t along_x, int64_t along_y = 1, int64_t along_z = 1)
      : x(along_x), y(along_y), z(along_z) {}
};
/// How many blocks there are, how many threads a block has, and its dynamic shared memory.
struct Grid {
  Extent blocks, threads;
  int64_t shared_bytes = 0;
};
/// At least so many threads along x.
inline Grid forall(int64_t count, int64_t threads = 256) {
  return {.blocks = (count + threads - 1) / threads, .threads = threads};
}

struct Options {
  std::string backend = {};                  // empty: PICOKERNEL_BACKEND, else the fastest live one
  std::string name = "kernel";               // in messages, IR and traces
  std::vector<std::string> parameters = {};  // their names there
  FloatMode floats = {};
  bool check = false;  // indices and simt::check, on every backend
  uint64_t seed = 0;   // of the order in which ref runs threads
};

namespace detail {

struct Parameter {
  DType dtype;
  bool array = false, written = false;
  size_t rank = 0;
};
template <class P>
struct ParameterOf {
  static_assert(picokernel::detail::kNever<P>,
                "parameters of a kernel of threads are simt::Array<T, N> and simt::Scalar<T>");
};
template <class T, size_t N>
struct ParameterOf<Array<T, N>> {
  static constexpr Parameter is{element_dtype<std::remove_const_t<T>>, true, !std::is_const_v<T>,
                                N};
  template <class A>
  static picokernel::detail::Argument argument(A&& a) {
    return {std::forward<A>(a)};
  }
};
template <class T>
struct ParameterOf<Scalar<T>> {
  static constexpr Parameter is{element_dtype<T>};
  template <class A>
  static picokernel::detail::Argument argument(A&& a) {
    return {Typed<T>{static_cast<T>(a)}};
  }
};

// The part of a kernel that does not depend on its C++ type.
class PK_API AnyKernel {
 public:
  using Function = std::function<void(std::span<const TreePtr>)>;
  struct State;

  AnyKernel(const Function& function, std::vector<Parameter> parameters, const Options& options,
            SourceLocation definition);
  void launch(const Grid& grid, std::span<const picokernel::detail::Argument> args) const;
  std::string ir(std::string_view backend) const;
  std::string source(std::string_view backend) const;
  AnyKernel on(std::string_view backend) const;

 private:
  AnyKernel() = default;
  std::shared_ptr<const State> state_;
  std::string backend_;
};

}  // namespace detail

/// A kernel of threads, made by simt::kernel. Copies share what has been compiled. Launches are
/// thread safe.
template <class F>
class Kernel {
  using Parameters = typename decltype(picokernel::detail::signature<F>())::Parameters;
  static constexpr size_t kParameters = std::tuple_size_v<Parameters>;

 public:
  Kernel(const F& function, const Options& options, SourceLocation definition)
      : any_(erased(function), list(std::make_index_sequence<kParameters>()), options, definition) {
  }

  /// Runs the kernel for each thread of the grid, and waits for it. Arrays are spans and other
  /// contiguous ranges, ArrayViews, Arrays and DLPack tensors, of the parameters' types, read and
  /// written in place; numbers are converted. Throws CompileError, LaunchError, and KernelError
  /// where a check of the backend fails.
  template <class... A>
  void operator()(const Grid& grid, A&&... args) const {
    static_assert(sizeof...(A) == kParameters, "a launch passes one argument per parameter");
    launch(grid, std::index_sequence_for<A...>(), std::forward<A>(args)...);
  }
  /// The same kernel on another backend.
  Kernel on(std::string_view backend) const { return Kernel(any_.on(backend)); }
  /// The kernel as the front end makes it for contiguous arrays, or as a backend gets it.
  std::string ir(std::string_view backend = {}) const { return any_.ir(backend); }
  /// What a backend prints for contiguous arrays: "cuda" CUDA C++, "opencl" OpenCL C.
  std::string source(std::string_view backend) const { return any_.source(backend); }

 private:
  explicit Kernel(detail::AnyKernel any) : any_(std::move(any)) {}

  template <size_t I>
  using At = std::tuple_element_t<I, Parameters>;
  template <size_t... I>
  static std::vector<detail::Parameter> list(std::index_sequence<I...>) {
    return {detail::ParameterOf<At<I>>::is...};
  }
  static detail::AnyKernel::Function erased(const F& function) {
    return [&function](std::span<const detail::TreePtr> trees) {
      [&]<size_t... I>(std::index_sequence<I...>) {
        function(At<I>(trees[I])...);
      }(std::make_index_sequence<kParameters>());
    };
  }
  template <size_t... I, class... A>
  void launch(const Grid& grid, std::index_sequence<I...>, A&&... args) const {
    const std::array<picokernel::detail::Argument, kParameters> given{
        detail::ParameterOf<At<I>>::argument(std::forward<A>(args))...};
    any_.launch(grid, given);
  }

  detail::AnyKernel any_;
};

/// Makes a kernel of threads of a function or lambda whose parameters are simt::Array<T, N> and
/// simt::Scalar<T>. It runs now, once, and writes the code of a thread.
///
///   auto saxpy = simt::kernel([](simt::Scalar<float> a, simt::Array<const float> x,
///                                simt::Array<float> y) {
///     const simt::Value i = simt::grid().x;
///     simt::if_(i < x.size(), [&] { y[i] += a * x[i]; });
///   });
///   saxpy(simt::forall(n), 2, x, y);
template <class F>
auto kernel(F function, const Options& options = {},
            SourceLocation definition = SourceLocation::current()) {
  static_assert(!std::is_void_v<decltype(picokernel::detail::signature<F>())>,
                "simt::kernel takes a function or a lambda that names its parameters' types, "
                "simt::Array<T, N> or simt::Scalar<T>");
  return Kernel<F>(function, options, definition);
}

}  // namespace picokernel::simt
