// The implementation of Plan.
#pragma once

#include <memory>

#include "driver/compile.h"
#include "driver/kernel.h"
#include "driver/layout.h"
#include "trace/trace.h"

namespace picokernel::driver {

/// An array's elements in C order. Seen in a trace.
void copy_to(void* to, const Arg& array);

class CallPlan final : public Plan {
 public:
  struct Setup {
    std::shared_ptr<const Prepared> prepared;
    std::shared_ptr<const ir::Module> traced;  // of the trace itself, with its checks
    std::shared_ptr<const void> note = {};
    const backend::Backend* backend = nullptr;
    std::vector<int64_t> symbols;
    std::vector<OutputSpec> outputs;
    std::span<const Arg> args, outs;  // outs: complete, as given or as `outputs` says
    bool allocate_outputs = false;    // matches calls that bring no outs
    trace::NameId definition = 0;     // where the kernel is, as interned text
  };
  explicit CallPlan(Setup setup);

  bool matches(std::span<const Arg> args, std::span<const Arg> outs) const noexcept override;
  std::span<const OutputSpec> outputs() const override { return outputs_; }
  std::vector<size_t> inputs_to_copy(std::span<const Arg> args,
                                     std::span<const Arg> outs) const override;
  void launch(std::span<const Arg> args, std::span<const Arg> outs) const override;
  const backend::Backend& backend() const override { return backend_; }
  const backend::Artifact& artifact() const override { return compiled_->artifact; }
  const ir::Module& traced() const override { return prepared_->traced; }
  const ir::Module& emitted() const override { return compiled_->emitted(); }
  const std::vector<bool>& written() const override { return written_; }
  int64_t bytes() const override { return static_cast<int64_t>(work_.arg); }
  std::pair<ir::Cost, std::span<const int64_t>> cost() const override {
    return {ir::cost(prepared_->graph), symbols_};
  }
  const void* note() const override { return note_.get(); }

  /// The same trace for arrays of other strides, and other sizes if its guards hold; else throws
  /// LaunchError. The result needs neither the kernel nor this plan.
  std::shared_ptr<const CallPlan> relaid(std::span<const Arg> args,
                                         std::span<const Arg> outs) const;
  /// Where the kernel is, as interned text.
  trace::NameId definition() const { return work_.location; }
  /// Array `read` and the written one `written` (arguments, then outputs) may be one memory.
  bool may_share(size_t read, size_t written) const;

 private:
  // One argument or output as the plan knows it. Shape and strides lie in dims_ from `first` on.
  struct Expected {
    Arg::Kind kind;
    DType dtype;
    bool weak, written;
    uint8_t rank;
    uint32_t first;
    int64_t low = 0, high = 0;  // bytes from the data pointer that the array spans
  };
  // What two arrays may share: nothing, or every element with itself.
  struct Pair {
    uint32_t array = 0, written = 0;
    bool pointwise = false;  // equal base, strides and dtype do no harm
    bool late = false;       // read after the other was written: sharing would change the meaning
  };
  struct Slot {
    uint32_t param, source;
    int64_t offset = 0;  // pointers: bytes
  };
  struct Scratch {
    size_t bytes = 0;
    std::vector<Slot> slots;  // source unused
  };

  const Arg& array(std::span<const Arg> args, std::span<const Arg> outs, size_t i) const {
    return i < args.size() ? args[i] : outs[i - args.size()];
  }
  void expect(std::span<const Arg> args, std::span<const Arg> outs);
  void lay_out_nests(std::span<const Arg> args, std::span<const Arg> outs);
  void find_pairs();
  void check_ranges(std::span<const Arg> args) const;
  bool conflict(const Pair& pair, std::span<const Arg> args,
                std::span<const Arg> outs) const noexcept;
  void run(std::span<const Arg> args, std::span<const Arg> outs) const;

  Setup setup_for(std::vector<int64_t> symbols, std::span<const Arg> args,
                  std::span<const Arg> outs) const;

  const std::shared_ptr<const Prepared> prepared_;
  const std::shared_ptr<const ir::Module> traced_;
  std::shared_ptr<const void> note_;
  const backend::Backend& backend_;
  std::vector<int64_t> symbols_;
  std::vector<OutputSpec> outputs_;
  bool allocate_outputs_;
  std::shared_ptr<const Compiled> compiled_;

  std::vector<Expected> expected_;  // arguments, then outputs
  std::vector<int64_t> dims_;
  std::vector<bool> written_;  // arguments
  std::vector<Pair> pairs_;
  std::vector<uint64_t> template_;  // kernel parameters with sizes and strides filled in
  std::vector<Slot> pointers_, scalars_;
  std::vector<Scratch> scratch_;
  bool empty_ = false;  // no nest has a point
  trace::NameId launch_name_ = 0;
  trace::Work work_;
};

}  // namespace picokernel::driver
