// Traces and plans of a kernel.
#include "driver/kernel.h"

#include <algorithm>
#include <map>
#include <utility>

#include "driver/plan.h"
#include "driver/signature.h"
#include "ir/eval.h"
#include "ir/pairs.h"
#include "ir/rewriter.h"
#include "ir/verifier.h"
#include "runtime/fork.h"
#include "runtime/fp_control.h"
#include "runtime/thread_pool.h"
#include "trace/trace.h"

namespace picokernel::driver {
namespace {

constexpr size_t kMaxTraces =
    8;  // per signature: more means that a guard depends on sizes that never repeat

// Output dtypes that differ from the results': casts before the return.
ir::Module cast_results(const ir::Module& m, const std::vector<DType>& dtypes) {
  ir::Module out = ir::Rewriter(m).run([&](ir::Rewriter& r,
                                           ir::OpId id) -> std::optional<std::vector<ir::ValueId>> {
    const ir::Op& op = m.ops[id];
    if (op.opcode != ir::Opcode::return_) return std::nullopt;
    std::vector<ir::ValueId> values = r.mapped(op.operands);
    ir::Builder& b = r.builder();
    for (size_t i = 0; i < values.size(); ++i) {
      const bool was_complex = !m.result_dtypes.empty() && is_complex(m.result_dtypes[i]);
      values[i] = b.cast(values[i], real_of(dtypes[i]));
      if (is_complex(dtypes[i]) && !was_complex)
        values[i] = ir::make_pairs(b, values[i],
                                   b.constant(ir::cast(ir::Scalar::of(0.0), real_of(dtypes[i]))),
                                   r.to().type(values[i]).shape);
    }
    r.builder().return_values(values);
    return std::vector<ir::ValueId>{};
  });
  return out;
}

// Of what plans compare; equal layouts have equal hashes.
uint64_t layout_hash(std::span<const Arg> args, std::span<const Arg> outs) {
  uint64_t hash = args.size();
  const auto mix = [&](uint64_t v) { hash = (hash ^ v) * 0x9E3779B97F4A7C15u, hash ^= hash >> 32; };
  for (const std::span<const Arg> list : {args, outs})
    for (const Arg& a : list) {
      mix(static_cast<uint64_t>(a.kind) << 24 | static_cast<uint64_t>(a.dtype) << 16 |
          static_cast<uint64_t>(a.weak) << 8 | a.rank);
      for (size_t d = 0; d < a.rank; ++d) {
        mix(static_cast<uint64_t>(a.shape[d]));
        mix(static_cast<uint64_t>(a.strides[d]));
      }
    }
  return hash;
}

// Held while the tables of any kernel change, and for no longer; a fork waits for it. The locks of
// the kernels themselves are held while Python traces: a child of a fork may find them taken by
// threads that it does not have, and makes new ones.
struct Tables {
  std::mutex mutex;
  uint64_t forks = 0;
  runtime::ForkRegistration registration{
      runtime::ForkStage::cache,
      {this, [](void* self) { static_cast<Tables*>(self)->mutex.lock(); },
       [](void* self) { static_cast<Tables*>(self)->mutex.unlock(); },
       [](void* self) {
         ++static_cast<Tables*>(self)->forks;
         static_cast<Tables*>(self)->mutex.unlock();
       }}};
};

Tables& tables() {
  static auto* instance = new Tables;
  return *instance;
}

}  // namespace

struct Kernel::State {
  std::string name;
  std::vector<std::string> parameter_names;
  Location definition;

  // A trace, and what was prepared from it for each backend and set of output dtypes.
  struct Variant {
    std::shared_ptr<const Traced> traced;
    std::map<std::pair<const backend::Backend*, std::vector<DType>>,
             std::shared_ptr<const Prepared>>
        prepared;
  };
  // A trace may call the kernel again, for another signature.
  std::shared_ptr<std::recursive_mutex> mutex = std::make_shared<std::recursive_mutex>();
  uint64_t forks = 0;  // before `mutex` was made
  std::map<Signature, std::vector<std::unique_ptr<Variant>>> variants;
  // Plans live as long as the kernel or until their key is forgotten, a kilobyte each: callers keep
  // pointers to them.
  struct Key {
    const backend::Backend* backend;
    uint64_t key, layout;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::map<Key, std::vector<std::unique_ptr<CallPlan>>> plans;

  std::shared_ptr<std::recursive_mutex> current_mutex() {
    const std::lock_guard lock(tables().mutex);
    if (std::exchange(forks, tables().forks) != tables().forks)
      mutex = std::make_shared<std::recursive_mutex>();
    return mutex;
  }

  Variant& variant(std::span<const Arg> args, uint64_t key, const Trace& trace) {
    const Signature signature = signature_of(args, key);
    if (const auto found = variants.find(signature); found != variants.end()) {
      for (const auto& v : found->second)
        if (bind_symbols(v->traced->graph, args)) return *v;
      if (found->second.size() >= kMaxTraces) {
        std::string guards;
        for (const ir::Guard& g : found->second.back()->traced->graph.guards)
          guards +=
              (guards.empty() ? "" : ", ") + to_string(found->second.back()->traced->graph, g.left);
        throw LaunchError("kernel " + name + " was traced " + std::to_string(kMaxTraces) +
                          " times for one signature, and its guards fail again" +
                          (guards.empty() ? "" : " (on " + guards + ")") +
                          "\n  its code depends on exact sizes: pass them as Python ints that do "
                          "not change, or use fewer shapes");
      }
    }
    auto made = std::make_unique<Variant>();
    {
      const trace::Span span(trace::Category::compile,
                             trace::enabled() ? trace::intern("trace " + name) : 0);
      made->traced = std::make_shared<const Traced>(trace(arg_specs(args, parameter_names)));
    }
    ir::verify_or_throw(made->traced->graph, "the trace of " + name);
    const std::lock_guard lock(tables().mutex);
    std::vector<std::unique_ptr<Variant>>& list = variants[signature];
    list.push_back(std::move(made));
    return *list.back();
  }

  const Plan& make_plan(std::span<const Arg> args, std::span<const Arg> given_outs,
                        const backend::Backend& backend, uint64_t key, const Trace& trace) {
    static_cast<void>(runtime::num_threads());  // a wrong PICOKERNEL_NUM_THREADS: here, not later
    Variant& v = variant(args, key, trace);
    const auto symbols = bind_symbols(v.traced->graph, args);
    if (!symbols)
      throw LaunchError("kernel " + name +
                        ": the sizes of this call are not those of its own trace");

    std::vector<OutputSpec> specs = output_specs(v.traced->graph, args, *symbols);
    if (!given_outs.empty() && given_outs.size() != specs.size())
      throw LaunchError(
          Diagnostic{.location = definition,
                     .message = "kernel " + name + " gives " + std::to_string(specs.size()) +
                                (specs.size() == 1 ? " result" : " results") + ", out= brings " +
                                std::to_string(given_outs.size()),
                     .notes = {specs.empty() ? "it stores into its arguments: call it without out="
                                             : "pass a tuple with one array per result"}});
    std::vector<DType> dtypes;
    std::vector<Arg> outs;
    for (size_t i = 0; i < specs.size(); ++i) {
      Arg out{.dtype = specs[i].dtype,
              .rank = static_cast<uint8_t>(specs[i].shape.size()),
              .data = nullptr,
              .shape = specs[i].shape.data(),
              .strides = specs[i].strides.data()};
      // Arrays of rank 0 have no shape, empty ones may have no data.
      if (!given_outs.empty() && (given_outs[i].shape != nullptr || given_outs[i].data != nullptr))
        out = given_outs[i];
      outs.push_back(out);
      dtypes.push_back(out.dtype);
    }
    if (!given_outs.empty()) check_outputs(name, specs, outs, definition);

    std::shared_ptr<const Prepared> prepared;
    if (const auto known = v.prepared.find({&backend, dtypes}); known != v.prepared.end()) {
      prepared = known->second;
    } else {
      const bool as_traced = std::ranges::equal(dtypes, specs, {}, {}, &OutputSpec::dtype);
      prepared =
          prepare(backend, as_traced ? v.traced->graph : cast_results(v.traced->graph, dtypes));
      const std::lock_guard lock(tables().mutex);
      v.prepared[{&backend, dtypes}] = prepared;
    }
    auto plan = std::make_unique<CallPlan>(
        CallPlan::Setup{.prepared = prepared,
                        .traced = {v.traced, &v.traced->graph},
                        .note = v.traced->note,
                        .backend = &backend,
                        .symbols = *symbols,
                        .outputs = std::move(specs),
                        .args = args,
                        .outs = outs,
                        .allocate_outputs = given_outs.empty(),
                        .definition = trace::intern(to_string(definition))});
    check_written(name, parameter_names, plan->written(), args, definition);
    const std::lock_guard lock(tables().mutex);
    auto& list = plans[{&backend, key, layout_hash(args, given_outs)}];
    list.push_back(std::move(plan));
    return *list.back();
  }

  // A size of 0 does not excuse the others: strides are computed from them.
  void check_bytes(const OutputSpec& spec) const {
    auto bytes = static_cast<int64_t>(size_of(spec.dtype));
    for (const int64_t size : spec.shape)
      if (size != 0 && __builtin_mul_overflow(bytes, size, &bytes))
        throw LaunchError(
            Diagnostic{.location = definition,
                       .message = "kernel " + name + ": a result of " +
                                  describe({.dtype = spec.dtype,
                                            .rank = static_cast<uint8_t>(spec.shape.size()),
                                            .shape = spec.shape.data()}) +
                                  " takes more bytes than an int64 can count",
                       .notes = {"hint: check the shapes that broadcast"}});
  }

  std::vector<OutputSpec> output_specs(const ir::Module& graph, std::span<const Arg> args,
                                       std::span<const int64_t> symbols) const {
    std::vector<OutputSpec> specs;
    for (size_t i = 0; i < graph.results.size(); ++i) {
      const ir::Type& type = graph.types[graph.results[i]];
      OutputSpec spec{.dtype = graph.result_dtypes.empty() ? type.dtype : graph.result_dtypes[i]};
      for (const SizeId s : type.shape) spec.shape.push_back(graph.sizes.eval(s, symbols));
      if (is_complex(spec.dtype)) spec.shape.pop_back();  // of pairs
      check_bytes(spec);
      std::vector<ArrayLayout> alike;
      for (const Arg& a : args)
        if (a.kind == Arg::Kind::array &&
            std::ranges::equal(std::span(a.shape, a.rank), spec.shape)) {
          ArrayLayout layout{.shape = spec.shape, .strides = {}};
          for (size_t d = 0; d < a.rank; ++d)
            layout.strides.push_back(a.strides[d] / static_cast<int64_t>(size_of(a.dtype)));
          alike.push_back(std::move(layout));
        }
      std::vector<const ArrayLayout*> inputs;
      for (const ArrayLayout& layout : alike) inputs.push_back(&layout);
      spec.strides = k_order_strides(spec.shape, inputs);
      for (int64_t& s : spec.strides) s *= static_cast<int64_t>(size_of(spec.dtype));
      specs.push_back(std::move(spec));
    }
    return specs;
  }
};

Kernel::Kernel(std::string name, std::vector<std::string> parameter_names, Location definition)
    : state_(std::make_unique<State>()) {
  state_->name = std::move(name);
  state_->parameter_names = std::move(parameter_names);
  state_->definition = std::move(definition);
}
Kernel::~Kernel() = default;

const std::string& Kernel::name() const { return state_->name; }

const Plan& Kernel::plan(std::span<const Arg> args, std::span<const Arg> outs,
                         const backend::Backend& backend, uint64_t key, const Trace& trace) {
  const runtime::FpControlScope fp_control;  // constants are folded here
  const std::shared_ptr<std::recursive_mutex> mutex = state_->current_mutex();
  const std::lock_guard lock(*mutex);
  if (const auto known = state_->plans.find({&backend, key, layout_hash(args, outs)});
      known != state_->plans.end())
    for (const auto& plan : known->second)
      if (plan->matches(args, outs)) return *plan;
  return state_->make_plan(args, outs, backend, key, trace);
}

void Kernel::forget(std::span<const uint64_t> keys) {
  const std::shared_ptr<std::recursive_mutex> mutex = state_->current_mutex();
  const std::lock_guard lock(*mutex);
  // Extracted with the tables locked, dropped after that.
  std::vector<decltype(state_->plans)::node_type> plans;
  std::vector<decltype(state_->variants)::node_type> traces;
  const auto extract = [&](auto& table, auto& dropped) {
    for (auto at = table.begin(); at != table.end();) {
      const auto next = std::next(at);
      if (std::ranges::find(keys, at->first.key) != keys.end())
        dropped.push_back(table.extract(at));
      at = next;
    }
  };
  const std::lock_guard tables_lock(tables().mutex);
  extract(state_->plans, plans);
  extract(state_->variants, traces);
}

}  // namespace picokernel::driver
