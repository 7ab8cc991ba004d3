// Kernels: a function of traced values, compiled for each kind of arguments when first called.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <picokernel/accuracy.h>
#include <picokernel/array.h>
#include <picokernel/deferred.h>
#include <picokernel/expr.h>

namespace picokernel {

struct Options {
  std::string backend = {};                  // empty: PICOKERNEL_BACKEND, else the fastest live one
  std::string name = "kernel";               // in messages, IR and traces
  std::vector<std::string> parameters = {};  // their names there
  FloatMode floats = {};                     // accuracy of exp, sin and their kin; fastmath
};

/// A backend, and whether this machine runs it.
struct BackendInfo {
  std::string name, summary;
  bool live = false;
  std::string why_not;  // and what to do about it
};
/// All backends of kernels of arrays, fastest first. Those that are not live still print source.
PK_API std::vector<BackendInfo> backends();

/// A scalar argument with C++'s type as its dtype, as a NumPy scalar is. Plain numbers are weak.
template <Element T>
struct Typed {
  T value;
};
template <Element T>
Typed<T> typed(T value) {
  return {value};
}

/// An array that a call writes.
struct OutArgument {
  ArrayView view;
};
template <class A>
  requires std::constructible_from<ArrayView, A>
OutArgument out(A&& array) {
  return {ArrayView(std::forward<A>(array))};
}

namespace detail {

template <class T>
concept ScalarElement =
    Element<T> && !std::same_as<T, std::complex<float>> && !std::same_as<T, std::complex<double>>;

template <ScalarElement T>
uint64_t bits_of(T value) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
    return value.bits;
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(value);
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(value);
  else
    return static_cast<uint64_t>(value);  // sign-extends
}
[[noreturn]] PK_API void refuse_large_number(uint64_t value);

// An argument of a call. Arrays given as views stay where they are; it never moves, for it may
// point to itself.
struct Argument {
  bool scalar = false, weak = false;
  DType dtype = DType::f64;  // of a scalar
  uint64_t bits = 0;         // of a scalar: integers sign- or zero-extended, floats zero-extended
  std::complex<double> complex = {};
  const ArrayView* view = nullptr;
  ArrayView own;

  template <class A>
    requires(std::constructible_from<ArrayView, A> && !Number<std::remove_cvref_t<A>> &&
             !std::same_as<std::remove_cvref_t<A>, ArrayView>)
  Argument(A&& array) : view(&own), own(std::forward<A>(array)) {}
  Argument(const ArrayView& array) : view(&array) {}
  Argument(const OutArgument& out) : view(&out.view) {}
  template <ScalarElement T>
  Argument(Typed<T> number) : scalar(true), dtype(element_dtype<T>), bits(bits_of(number.value)) {}
  // Weak, but for bool: NumPy knows no weak ones.
  // A complex number is an array of rank 0, weak as other numbers are.
  Argument(std::complex<double> number)
      : weak(true), complex(number), view(&own), own(&complex, {}) {}
  template <Number T>
  Argument(T number) : scalar(true), weak(!std::is_same_v<T, bool>) {
    if constexpr (std::is_floating_point_v<T>) {
      bits = bits_of(static_cast<double>(number));
    } else {
      dtype = weak ? DType::i64 : DType::b1;
      bits = bits_of(number);
      if (std::is_unsigned_v<T> && bits >> 63 != 0) refuse_large_number(bits);
    }
  }
  Argument(const Argument&) = delete;
  Argument& operator=(const Argument&) = delete;
};

// The part of a kernel that does not depend on its C++ type.
class PK_API AnyKernel {
 public:
  using Function = std::function<std::vector<Expr>(std::span<const Expr>)>;
  struct State;

  AnyKernel(Function function, size_t parameters, Options options, SourceLocation definition);
  AnyKernel(std::shared_ptr<State> state, std::string_view backend);

  void launch(std::span<const Argument> args, std::span<const Argument> outs) const;
  std::vector<Array> call(std::span<const Argument> args) const;
  /// The call, checked, for a graph that makes it later. Arrays need no memory yet.
  DeferredCall* defer(std::span<const Argument> args) const;
  std::string ir() const;
  std::string source(std::string_view backend) const;
  std::string_view backend() const;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  struct Site;  // a backend of the kernel, and the plan of its last call
  std::shared_ptr<State> state_;
  std::shared_ptr<Site> site_;
};

PK_API Out make_out(const Expr& parameter);

// What a callable takes and gives.
template <class R, class... P>
struct Signature {
  using Result = R;
  using Parameters = std::tuple<std::remove_cvref_t<P>...>;
};
template <class F>
struct SignatureOf {
  static_assert(kNever<F>, "pk::kernel takes a function or a lambda that is not mutable");
};
#define PK_SIGNATURE(...)                 \
  template <class C, class R, class... P> \
  struct SignatureOf<R (C::*)(P...) __VA_ARGS__> : Signature<R, P...> {};
PK_SIGNATURE(const)
PK_SIGNATURE(const noexcept)
#undef PK_SIGNATURE
template <class R, class... P>
struct SignatureOf<R (*)(P...)> : Signature<R, P...> {};
template <class F>
concept HasOneCall = requires { &F::operator(); };

template <class F>
constexpr auto signature() {
  if constexpr (HasOneCall<F>)
    return SignatureOf<decltype(&F::operator())>{};
  else if constexpr (std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>)
    return SignatureOf<F>{};
}

// How results are counted, gathered after tracing and handed back after a call.
template <class R>
struct Results {
  static_assert(
      kNever<R>,
      "a kernel returns pk::Expr, a std::tuple, std::pair or std::array of them, or nothing");
};
template <>
struct Results<void> {
  static constexpr size_t count = 0;
  using Handed = void;
};
template <>
struct Results<Expr> {
  static constexpr size_t count = 1;
  using Handed = Array;
  static std::vector<Expr> gather(const Expr& e) { return {e}; }
};
template <size_t N>
struct Results<std::array<Expr, N>> {
  static constexpr size_t count = N;
  using Handed = std::array<Array, N>;
  static std::vector<Expr> gather(const std::array<Expr, N>& e) { return {e.begin(), e.end()}; }
};
template <class... E>
struct ResultsOfTuple {
  static_assert((std::is_same_v<E, Expr> && ...), "a kernel returns tuples of pk::Expr");
  template <class>
  using AsArray = Array;
  static constexpr size_t count = sizeof...(E);
  using Handed = std::tuple<AsArray<E>...>;
  static std::vector<Expr> gather(const std::tuple<E...>& e) {
    return std::apply([](const auto&... each) { return std::vector<Expr>{each...}; }, e);
  }
};
template <class... E>
struct Results<std::tuple<E...>> : ResultsOfTuple<E...> {};
template <class A, class B>
struct Results<std::pair<A, B>> : ResultsOfTuple<A, B> {};

// Of an argument: the call is inside another kernel, whose trace it joins.
template <class A>
inline constexpr bool kTraced =
    std::is_same_v<std::remove_cvref_t<A>, Expr> || std::is_same_v<std::remove_cvref_t<A>, Out>;

// How calls on arrays of a library with a graph of its own are made; picokernel/mlx.h has MLX's.
template <class A>
struct LibraryOf {};
template <class A>
concept OfLibrary = requires { typename LibraryOf<std::remove_cvref_t<A>>::Array; };
// The first of these types that is one.
template <class A, class... B>
struct FirstLibrary : FirstLibrary<B...> {};
template <OfLibrary A, class... B>
struct FirstLibrary<A, B...> : LibraryOf<std::remove_cvref_t<A>> {};

template <class P>
P parameter(const Expr& e) {
  static_assert(std::is_same_v<P, Expr> || std::is_same_v<P, Out>,
                "parameters of a kernel are pk::Expr (read) or pk::Out (written)");
  if constexpr (std::is_same_v<P, Out>)
    return make_out(e);
  else
    return e;
}

}  // namespace detail

/// A kernel, made by pk::kernel. Copies share what has been compiled. Calls are thread safe.
template <class F>
class Kernel {
  using Signature = decltype(detail::signature<F>());
  using Parameters = typename Signature::Parameters;
  using Result = detail::Results<typename Signature::Result>;
  static constexpr size_t kParameters = std::tuple_size_v<Parameters>;

 public:
  Kernel(F function, Options options, SourceLocation definition)
      : function_(std::move(function)),
        any_(erased(function_), kParameters, std::move(options), definition) {}

  /// Inputs are spans and other contiguous ranges, ArrayViews, Arrays, DLPack tensors and numbers;
  /// written parameters are pk::out(array). Gives the results: an Array, a tuple of them (an
  /// array for std::array), or nothing; or takes pk::out(array) for each of them after the
  /// arguments. Throws CompileError or LaunchError; nothing has been written then.
  template <class... A>
    requires(!((detail::kTraced<A> || detail::OfLibrary<A>) || ...))
  auto operator()(A&&... args) const {
    constexpr size_t given = sizeof...(A);
    static_assert(
        given == kParameters || given == kParameters + Result::count,
        "a call passes one argument per parameter, then one pk::out(...) per result or none");
    static_assert(outs_fit<A...>(std::make_index_sequence<given>()),
                  "pass pk::out(array) for written parameters and results, and only for these");
    if constexpr (given == 0) {
      return hand(any_.call({}));
    } else {
      const detail::Argument list[] = {detail::Argument(std::forward<A>(args))...};
      if constexpr (given == kParameters && Result::count != 0)
        return hand(any_.call(list));
      else
        any_.launch(std::span(list).first(kParameters), std::span(list).subspan(kParameters));
    }
  }

  /// Inside another kernel: its code becomes part of that one.
  template <class... A>
    requires((detail::kTraced<A> || ...))
  auto operator()(A&&... args) const {
    return function_(std::forward<A>(args)...);
  }

  /// On arrays of a library with a graph of its own, lazily: see picokernel/mlx.h.
  template <class... A>
    requires(detail::OfLibrary<A> || ...)
  auto operator()(A&&... args) const {
    using Library = detail::FirstLibrary<A...>;
    static_assert(sizeof...(A) == kParameters, "a call passes one argument per parameter");
    auto results = Library::call(any_, std::forward<A>(args)...);
    if constexpr (std::is_same_v<typename Signature::Result, Expr>)
      return std::move(results[0]);
    else if constexpr (Result::count != 0)
      return [&]<size_t... I>(std::index_sequence<I...>) {
        return std::array<typename Library::Array, Result::count>{std::move(results[I])...};
      }(std::make_index_sequence<Result::count>());
  }

  /// The same kernel on another backend. Throws LaunchError if that is not live.
  Kernel on(std::string_view backend) const {
    return Kernel(function_, detail::AnyKernel(any_.state(), backend));
  }
  std::string_view backend() const { return any_.backend(); }

  /// The graph as traced by the last call, or for float32 arrays of one dimension.
  std::string ir() const { return any_.ir(); }
  /// What a backend makes of that graph: source text, or the loops that are compiled natively.
  /// The backend need not be live. Throws CompileError if it cannot do the kernel.
  std::string source(std::string_view backend) const { return any_.source(backend); }

 private:
  Kernel(F function, detail::AnyKernel any)
      : function_(std::move(function)), any_(std::move(any)) {}

  template <class... A, size_t... I>
  static constexpr bool outs_fit(std::index_sequence<I...>) {
    return (... && [] {
      using Given = std::remove_cvref_t<std::tuple_element_t<I, std::tuple<A...>>>;
      if constexpr (I < kParameters)
        return std::is_same_v<Given, OutArgument> ==
               std::is_same_v<std::tuple_element_t<I, Parameters>, Out>;
      else
        return std::is_same_v<Given, OutArgument>;
    }());
  }

  static auto hand(std::vector<Array> results) {
    using Handed = typename Result::Handed;
    if constexpr (std::is_same_v<Handed, Array>)
      return std::move(results[0]);
    else
      return [&]<size_t... I>(std::index_sequence<I...>) {
        return Handed{std::move(results[I])...};
      }(std::make_index_sequence<Result::count>());
  }

  static detail::AnyKernel::Function erased(const F& function) {
    return [function](std::span<const Expr> parameters) {
      return [&]<size_t... I>(std::index_sequence<I...>) -> std::vector<Expr> {
        const auto run = [&] {
          return function(detail::parameter<std::tuple_element_t<I, Parameters>>(parameters[I])...);
        };
        if constexpr (std::is_void_v<typename Signature::Result>) {
          run();
          return {};
        } else {
          return Result::gather(run());
        }
      }(std::make_index_sequence<kParameters>());
    };
  }

  F function_;
  detail::AnyKernel any_;
};

/// Makes a kernel of a function or lambda whose parameters are pk::Expr (read) and pk::Out
/// (written) and that returns pk::Expr, a tuple, pair or array of them, or nothing. It runs once
/// for each kind of arguments: dtypes, ranks, which sizes are 1. Throws LaunchError if the backend
/// is not live.
///
///   auto fma = pk::kernel([](pk::Expr a, pk::Expr b, pk::Expr c) { return a * b + c; });
///   fma(a, b, c, pk::out(o));       // a, b, c, o: std::span<float>, std::vector<float>, ...
///   pk::Array result = fma(a, b, c);
template <class F>
auto kernel(F function, Options options = {},
            SourceLocation definition = SourceLocation::current()) {
  static_assert(!std::is_void_v<decltype(detail::signature<F>())>,
                "pk::kernel takes a function or a lambda that names its parameters' types, "
                "pk::Expr or pk::Out");
  return Kernel<F>(std::move(function), std::move(options), definition);
}

}  // namespace picokernel
