// A kernel that can be called: traces, plans and executables by signature, checked arguments,
// launch.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "frontend/tracer.h"
#include "ir/cost.h"

namespace picokernel::driver {

// An argument of a call, as the front end sees it. Pointers stay valid for the call.
struct Arg {
  enum class Kind : uint8_t { array, scalar };  // complex numbers are arrays of rank 0
  Kind kind = Kind::array;
  DType dtype = DType::f32;
  bool weak = false;      // a Python number
  bool writeable = true;  // array only
  uint8_t rank = 0;
  void* data = nullptr;              // array
  const int64_t* shape = nullptr;    // array: sizes in elements
  const int64_t* strides = nullptr;  // array: bytes, any sign, 0 allowed for inputs
  uint64_t bits = 0;                 // scalar, as ir::Scalar::bits
  const char* name = nullptr;        // for messages; null: the parameter's name at this position
};

// An output that the call has to allocate: contiguous in the order given by its strides (NumPy's K
// order).
struct OutputSpec {
  DType dtype = DType::f32;
  std::vector<int64_t> shape, strides;  // strides in bytes
};

// Everything about a call that depends on dtypes, shapes and strides only; immutable once made.
class Plan {
 public:
  virtual ~Plan() = default;
  /// Nothing that this plan depends on differs: kinds, dtypes, shapes, strides, flags; pointers and
  /// scalars are free.
  virtual bool matches(std::span<const Arg> args, std::span<const Arg> outs) const noexcept = 0;
  virtual std::span<const OutputSpec> outputs() const = 0;

  /// Checks what may differ at each call although the plan matches: weak integers against the
  /// dtypes that they meet, two outputs in one memory. Throws LaunchError. Gives the positions of
  /// arguments whose memory overlaps an output so that it matters: they have to be copied before
  /// the launch.
  virtual std::vector<size_t> inputs_to_copy(std::span<const Arg> args,
                                             std::span<const Arg> outs) const = 0;
  /// inputs_to_copy, the copies (traced), then the run. For backends that the core opens.
  virtual void launch(std::span<const Arg> args, std::span<const Arg> outs) const = 0;

  virtual const backend::Backend& backend() const = 0;
  /// What the backend printed: source backends are opened by the binding.
  virtual const backend::Artifact& artifact() const = 0;
  virtual const ir::Module& traced() const = 0;   // as the front end made it
  virtual const ir::Module& emitted() const = 0;  // what the backend printed
  /// Per argument: whether the kernel writes it.
  virtual const std::vector<bool>& written() const = 0;
  /// Bytes that a launch reads and writes: what decides whether waiting threads should be let run.
  virtual int64_t bytes() const = 0;
  /// What a launch does, whatever the backend, and the sizes of this plan to evaluate it with.
  virtual std::pair<ir::Cost, std::span<const int64_t>> cost() const = 0;
  /// The trace's note.
  virtual const void* note() const = 0;
};

// What a trace gives: the graph, and what the front end wants to find again at every plan made from
// it (how results are handed back, say).
struct Traced {
  ir::Module graph;
  std::shared_ptr<const void> note = {};
};

class Kernel {
 public:
  using Trace = std::function<Traced(std::span<const frontend::ArgSpec>)>;

  Kernel(std::string name, std::vector<std::string> parameter_names, Location definition);
  ~Kernel();

  /// The plan for these arguments. `key` tells apart what the front end has fixed (static values,
  /// captures). Throws CompileError or LaunchError; nothing has been written then. Thread safe.
  /// Outs: one per result, or none, or with null data where the caller will allocate it as
  /// Plan::outputs() says.
  const Plan& plan(std::span<const Arg> args, std::span<const Arg> outs,
                   const backend::Backend& backend, uint64_t key, const Trace& trace);
  /// Drops the traces and plans of these keys: no plan of theirs may be in use. Thread safe.
  void forget(std::span<const uint64_t> keys);

  const std::string& name() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace picokernel::driver
