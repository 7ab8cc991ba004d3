// Kernels of the C++ API on top of the driver.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>

#include <picokernel/kernel.h>

#include "driver/backends.h"
#include "driver/cpp_call.h"
#include "driver/cpp_trace.h"
#include "driver/deferred.h"
#include "driver/kernel.h"
#include "ir/text.h"
#include "support/check.h"
#include "trace/trace.h"

namespace picokernel {
namespace {

using backend::Backend;
using driver::Arg;

// The arguments of a call, then its outputs; without an allocation, unless they are many.
class Args {
 public:
  Args(std::span<const detail::Argument> args, std::span<const detail::Argument> outs)
      : args_(args.size()), outs_(outs.size()) {
    const size_t count = args_ + outs_;
    if (count > kInline) many_ = std::make_unique<Arg[]>(count);
    list_ = count > kInline ? many_.get() : reinterpret_cast<Arg*>(few_);
    Arg* next = list_;
    for (const detail::Argument& a : args) new (next++) Arg(driver::to_arg(a));
    for (const detail::Argument& a : outs) new (next++) Arg(driver::to_arg(a));
  }
  std::span<const Arg> args() const { return {list_, args_}; }
  std::span<const Arg> outs() const { return {list_ + args_, outs_}; }

 private:
  static constexpr size_t kInline = 16;
  static_assert(std::is_trivially_destructible_v<Arg>);

  size_t args_, outs_;
  Arg* list_;
  std::unique_ptr<Arg[]> many_;
  alignas(Arg) std::byte few_[kInline * sizeof(Arg)];  // made one by one: most calls have few
};

uint64_t elements_of_first(std::span<const Arg> args) {
  for (const Arg& a : args) {
    if (a.kind != Arg::Kind::array) continue;
    uint64_t count = 1;
    for (size_t d = 0; d < a.rank; ++d) count *= static_cast<uint64_t>(a.shape[d]);
    return count;
  }
  return 1;
}

}  // namespace

std::vector<BackendInfo> backends() {
  std::vector<BackendInfo> list;
  for (const Backend* b : driver::all_backends()) {
    if (b->threads_only) continue;
    std::string reason = driver::why_not_from_cpp(*b);
    const bool live = reason.empty();
    list.push_back({std::string(b->name), std::string(b->summary), live, std::move(reason)});
  }
  return list;
}

namespace detail {

void refuse_large_number(uint64_t value) {
  throw LaunchError(Diagnostic{
      .message = "the number " + std::to_string(value) + " is too large for an argument",
      .notes = {"numbers are int64 or double, and take the dtype of the array that they meet",
                "hint: pass pk::typed(" + std::to_string(value) + "u) for a uint64 scalar"}});
}

Out make_out(const Expr& parameter) { return ExprAccess::make_out(parameter); }

struct AnyKernel::State {
  State(Function f, size_t parameters, std::vector<std::string> names, const Options& options,
        Location where)
      : function(std::move(f)),
        parameter_names(std::move(names)),
        definition(where),
        floats(options.floats),
        kernel(options.name, parameter_names, where),
        trace_name(trace::intern(options.name)),
        trace_location(trace::intern(to_string(where))) {
    PK_CHECK(parameter_names.size() == parameters);
  }

  trace::Work work_of(std::span<const Arg> args) const {
    if (!trace::enabled()) return {};
    return {.arg = elements_of_first(args), .location = trace_location};
  }

  // Without a call to go by: the types of the most usual one.
  static frontend::ArgSpec usual(const std::string& name) {
    return {.dtype = DType::f32, .name = name, .shape = {1024}};
  }

  driver::Traced trace(std::span<const frontend::ArgSpec> specs) const {
    frontend::Tracer tracer(kernel.name(), specs, definition, floats);
    const TraceScope scope(tracer);
    std::vector<Expr> parameters;
    for (size_t i = 0; i < specs.size(); ++i)
      parameters.push_back(ExprAccess::make(tracer.argument(i)));
    std::vector<frontend::Value> results;
    for (const Expr& e : function(parameters)) results.push_back(ExprAccess::value(e, definition));
    return {.graph = tracer.finish(results, definition)};
  }

  const driver::Plan& plan(std::span<const Arg> args, std::span<const Arg> outs,
                           const Backend& backend) {
    const driver::Plan& made =
        kernel.plan(args, outs, backend, 0,
                    [this](std::span<const frontend::ArgSpec> specs) { return trace(specs); });
    const std::lock_guard lock(mutex);
    last_args.clear();
    for (const Arg& a : args)
      last_args.push_back({.arg = a,
                           .shape = {a.shape, a.shape + a.rank},
                           .strides = {a.strides, a.strides + a.rank}});
    return made;
  }

  // Arguments like those of the last call, without their memory; or the usual ones.
  struct Kept {
    Arg arg;
    std::vector<int64_t> shape, strides;
  };
  std::vector<Kept> like_last() {
    const std::lock_guard lock(mutex);
    std::vector<Kept> kept = last_args;
    if (kept.empty())
      for (size_t i = 0; i < parameter_names.size(); ++i)
        kept.push_back({.arg = {.rank = 1}, .shape = usual({}).shape, .strides = {sizeof(float)}});
    return kept;
  }
  const driver::Plan& plan_like_last(const Backend& backend) {
    std::vector<Kept> kept = like_last();
    std::vector<Arg> args;
    for (Kept& k : kept) {
      args.push_back(k.arg);
      args.back().data = nullptr;
      args.back().shape = k.shape.data();
      args.back().strides = k.strides.data();
    }
    return kernel.plan(args, {}, backend, 0,
                       [this](std::span<const frontend::ArgSpec> specs) { return trace(specs); });
  }

  Function function;
  std::vector<std::string> parameter_names;
  Location definition;
  FloatMode floats;
  driver::Kernel kernel;
  trace::NameId trace_name, trace_location;
  std::mutex mutex;
  std::vector<Kept> last_args;
  std::map<const driver::Plan*, std::shared_ptr<driver::DeferredPlans>> deferred;
};

struct AnyKernel::Site {
  const Backend& backend;
  trace::BackendId backend_id;
  std::atomic<const driver::Plan*> last = nullptr;  // plans live as long as the kernel

  explicit Site(const Backend& b) : backend(b), backend_id(trace::intern_backend(b.name)) {}

  const driver::Plan& plan(State& state, std::span<const Arg> args, std::span<const Arg> outs) {
    const driver::Plan* plan = last.load(std::memory_order_acquire);
    if (plan == nullptr || !plan->matches(args, outs)) {
      plan = &state.plan(args, outs, backend);
      last.store(plan, std::memory_order_release);
    }
    return *plan;
  }
};

AnyKernel::AnyKernel(Function function, size_t parameters, Options options,
                     SourceLocation definition) {
  const Location where = to_location(definition);
  std::vector<std::string> names =
      driver::parameter_names(options.name, options.parameters, parameters, where);
  site_ = std::make_shared<Site>(driver::live_backend(options.backend, where));
  state_ =
      std::make_shared<State>(std::move(function), parameters, std::move(names), options, where);
}

AnyKernel::AnyKernel(std::shared_ptr<State> state, std::string_view backend)
    : state_(std::move(state)),
      site_(std::make_shared<Site>(driver::live_backend(backend, state_->definition))) {}

void AnyKernel::launch(std::span<const Argument> args, std::span<const Argument> outs) const {
  const Args call(args, outs);
  const driver::Plan& plan = site_->plan(*state_, call.args(), call.outs());
  const trace::Work work = state_->work_of(call.args());
  const trace::KernelSpan span(trace::Category::call, state_->trace_name, work, site_->backend_id);
  plan.launch(call.args(), call.outs());
}

std::vector<Array> AnyKernel::call(std::span<const Argument> args) const {
  const Args call(args, {});
  const driver::Plan& plan = site_->plan(*state_, call.args(), {});
  const trace::Work work = state_->work_of(call.args());
  const trace::KernelSpan span(trace::Category::call, state_->trace_name, work, site_->backend_id);
  std::vector<Array> results;
  std::vector<Arg> outs;
  results.reserve(plan.outputs().size());
  outs.reserve(plan.outputs().size());
  for (const driver::OutputSpec& spec : plan.outputs()) {
    results.emplace_back(spec.dtype, spec.shape, spec.strides);
    outs.push_back({.dtype = spec.dtype,
                    .rank = static_cast<uint8_t>(spec.shape.size()),
                    .data = results.back().data(),
                    .shape = spec.shape.data(),
                    .strides = spec.strides.data()});
  }
  plan.launch(call.args(), outs);
  return results;
}

DeferredCall* AnyKernel::defer(std::span<const Argument> args) const {
  static const trace::NameId enqueue = trace::intern("enqueue native code");
  static const trace::BackendId mlx = trace::intern_backend("mlx");
  const Args call(args, {});
  const driver::Plan& plan = site_->plan(*state_, call.args(), {});
  const trace::Work work = state_->work_of(call.args());
  const trace::KernelSpan span(trace::Category::call, state_->trace_name, work, mlx);
  const trace::Span lazy(trace::Category::op_lazy, enqueue);
  std::vector<Arg> outs;
  for (const driver::OutputSpec& spec : plan.outputs())
    outs.push_back({.dtype = spec.dtype,
                    .rank = static_cast<uint8_t>(spec.shape.size()),
                    .data = reinterpret_cast<void*>((uintptr_t{3} << 61) + (outs.size() << 48)),
                    .shape = spec.shape.data(),
                    .strides = spec.strides.data()});
  plan.inputs_to_copy(call.args(), outs);  // its checks
  const std::lock_guard lock(state_->mutex);
  std::shared_ptr<driver::DeferredPlans>& plans = state_->deferred[&plan];
  if (plans == nullptr)
    plans = std::make_shared<driver::DeferredPlans>(plan, state_->kernel.name(), call.args(), outs);
  return new driver::Deferred(plans, call.args());
}

std::string AnyKernel::ir() const {
  std::vector<frontend::ArgSpec> specs;
  for (const State::Kept& k : state_->like_last()) {
    const bool array = k.arg.kind == Arg::Kind::array;
    specs.push_back(
        {.kind = array ? frontend::ArgSpec::Kind::array : frontend::ArgSpec::Kind::scalar,
         .dtype = k.arg.dtype,
         .weak = k.arg.weak,
         .name = state_->parameter_names[specs.size()],
         .shape = k.shape});
  }
  return ir::print(state_->trace(specs).graph);
}

std::string AnyKernel::source(std::string_view name) const {
  const Backend& backend = driver::known_backend(name, state_->definition);
  const driver::Plan& plan = state_->plan_like_last(backend);
  const bool compiled = backend.open != nullptr;  // natively: what can be read of it is its loops
  return compiled ? ir::print(plan.emitted()) : plan.artifact().code;
}

std::string_view AnyKernel::backend() const { return site_->backend.name; }

}  // namespace detail
}  // namespace picokernel
