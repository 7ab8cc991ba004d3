// Calls of a kernel that run later, on arrays whose strides nobody knows when they are made.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <picokernel/deferred.h>

#include "driver/plan.h"

namespace picokernel::driver {

// What deferred calls of one kind share. Thread safe, and free of the kernel that it came from.
struct DeferredPlans {
  /// `outs`: complete, without data.
  DeferredPlans(const Plan& plan, std::string name, std::span<const Arg> args,
                std::span<const Arg> outs);

  const std::string name;
  const trace::NameId trace_name;
  trace::Work work;                           // its location: the launch inside says the rest
  std::vector<Arg> args, outs;                // without shapes and data
  std::vector<size_t> written;                // the arguments that are outputs, after the results
  std::vector<std::vector<int64_t>> shapes;   // of the outputs
  std::vector<DeferredCall::Output> outputs;  // results, then what is written
  std::mutex mutex;
  std::vector<std::shared_ptr<const CallPlan>> recent;  // the first one stays
};

// A deferred call but for `replay`.
class Deferred : public DeferredCall {
 public:
  Deferred(std::shared_ptr<DeferredPlans> plans, std::span<const Arg> args);
  virtual ~Deferred() = default;

  const char* name() const noexcept override { return plans_->name.c_str(); }
  size_t output_count() const noexcept override { return plans_->outputs.size(); }
  const Output& output(size_t i) const noexcept override { return plans_->outputs[i]; }
  bool equals(const DeferredCall& other) const noexcept override;
  const char* run(const Array* inputs, const Array* outputs) noexcept override;
  const char* replay(const void* const*, void* const*) noexcept override;
  void release() noexcept override { delete this; }

 protected:
  std::vector<Arg> arguments(const Array* inputs) const;
  void run_on(std::vector<Arg> args, const Array* outputs);

  const std::shared_ptr<DeferredPlans> plans_;
  std::vector<uint64_t> numbers_;

 private:
  const uint64_t flow_;  // of a trace, from the call that made this
};

}  // namespace picokernel::driver
