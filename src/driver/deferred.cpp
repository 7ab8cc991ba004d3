// What a deferred call does once its arrays are there.
#include "driver/deferred.h"

#include <algorithm>

#include "passes/graph/storage.h"
#include "trace/trace.h"

namespace picokernel::driver {
namespace {

constexpr size_t kMaxRecent = 8;
const trace::NameId kRuns = trace::intern("runs in");

// Nothing reads the parameter before a store to all of it.
bool replaced_whole(const ir::Module& m, ir::ValueId param) {
  bool replaced = false, needed = false;
  ir::walk(m, [&](ir::OpId id) {
    const ir::Op& op = m.ops[id];
    if (op.operands.empty() || passes::root_of(m, op.operands[0]) != param) return;
    const bool whole = op.opcode == ir::Opcode::write && op.operands[0] == param;
    needed = needed || (!whole && !replaced && op.opcode != ir::Opcode::view);
    replaced = replaced || whole;
  });
  return replaced && !needed;
}

Arg without_data(const Arg& a) {
  return {.kind = a.kind, .dtype = a.dtype, .weak = a.weak, .rank = a.rank};
}

void place(Arg& a, const DeferredCall::Array& array) {
  a.data = array.data;
  a.shape = array.shape;
  a.strides = array.strides;
}

// Null, or the text of what `action` throws.
template <class F>
const char* guarded(F&& action) noexcept {
  thread_local std::string reason;
  try {
    action();
    return nullptr;
  } catch (const std::exception& e) {
    reason = e.what();
    return reason.c_str();
  }
}

}  // namespace

DeferredPlans::DeferredPlans(const Plan& plan, std::string kernel, std::span<const Arg> given,
                             std::span<const Arg> results)
    : name(std::move(kernel)), trace_name(trace::intern(name)) {
  recent.reserve(kMaxRecent);  // the first one stays where it is, and is read without the lock
  recent.push_back(static_cast<const CallPlan&>(plan).relaid(given, results));
  work.location = recent[0]->definition();
  std::vector<size_t> inputs;
  for (size_t i = 0; i < given.size(); ++i) {
    args.push_back(without_data(given[i]));
    if (given[i].kind == Arg::Kind::array) inputs.push_back(i);
    if (plan.written()[i]) written.push_back(i);
  }
  const auto add_output = [&](const Arg& a, int32_t continues, size_t position) {
    shapes.emplace_back(a.shape, a.shape + a.rank);
    uint64_t donors = 0;
    for (size_t n = 0; n < std::min<size_t>(inputs.size(), 64); ++n)
      donors |= uint64_t{recent[0]->may_share(inputs[n], position)} << n;
    outputs.push_back({a.dtype, a.rank, shapes.back().data(), continues, donors});
  };
  for (const Arg& out : results) {
    add_output(out, -1, args.size() + outs.size());
    outs.push_back(without_data(out));
  }
  for (const size_t i : written) {
    const auto input = static_cast<int32_t>(std::ranges::find(inputs, i) - inputs.begin());
    add_output(given[i], replaced_whole(plan.traced(), plan.traced().params()[i]) ? -1 : input, i);
  }
}

Deferred::Deferred(std::shared_ptr<DeferredPlans> plans, std::span<const Arg> args)
    : plans_(std::move(plans)), flow_(trace::begin_flow(kRuns)) {
  for (const Arg& a : args)
    if (a.kind == Arg::Kind::scalar) numbers_.push_back(a.bits);
}

std::vector<Arg> Deferred::arguments(const Array* inputs) const {
  std::vector<Arg> args = plans_->args;
  size_t next = 0;
  for (Arg& a : args)
    if (a.kind == Arg::Kind::scalar)
      a.bits = numbers_[next++];
    else
      place(a, *inputs++);
  return args;
}

void Deferred::run_on(std::vector<Arg> args, const Array* outputs) {
  DeferredPlans& p = *plans_;
  static const trace::BackendId backend = trace::intern_backend("mlx");
  const trace::KernelSpan span(trace::Category::device, p.trace_name, p.work, backend);
  trace::end_flow(kRuns, flow_);
  std::vector<Arg> outs = p.outs;
  for (Arg& out : outs) place(out, *outputs++);
  for (size_t i = 0; i < p.written.size(); ++i) {
    Arg& a = args[p.written[i]];
    if (p.outputs[outs.size() + i].continues >= 0 && a.data != outputs->data)
      copy_to(outputs->data, a);
    place(a, *outputs++);
  }
  std::shared_ptr<const CallPlan> plan;
  {
    const std::lock_guard lock(p.mutex);
    for (const auto& known : p.recent)
      if (known->matches(args, outs)) plan = known;
  }
  if (plan == nullptr) {
    plan = p.recent[0]->relaid(args, outs);
    const std::lock_guard lock(p.mutex);
    if (p.recent.size() == kMaxRecent) p.recent.erase(p.recent.begin() + 1);
    p.recent.push_back(plan);
  }
  plan->launch(args, outs);
}

bool Deferred::equals(const DeferredCall& other) const noexcept {
  const auto* o = dynamic_cast<const Deferred*>(&other);
  return o != nullptr && o->plans_ == plans_ && o->numbers_ == numbers_;
}

const char* Deferred::run(const Array* inputs, const Array* outputs) noexcept {
  thread_local const bool named = (trace::name_this_thread("MLX stream"), true);
  static_cast<void>(named);
  return guarded([&] { run_on(arguments(inputs), outputs); });
}

const char* Deferred::replay(const void* const*, void* const*) noexcept {
  return "kernels of C++ have no gradient or vmap in MLX: there is no printed source to go through";
}

}  // namespace picokernel::driver
