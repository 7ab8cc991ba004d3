// A kernel of threads that can be launched: compiled once for each kind of arguments and backend.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "backend/backend.h"
#include "driver/compile.h"
#include "driver/kernel.h"
#include "frontend/threads/threads.h"

namespace picokernel::driver {

class ThreadKernel {
 public:
  /// A checked kernel reports what it raises and indices out of bounds, on every backend.
  ThreadKernel(frontend::threads::Program program, FloatMode floats, bool check)
      : program_(std::move(program)), floats_(floats), check_(check) {}

  /// Checks the arguments, then runs the kernel for each thread of the grid; a grid without blocks
  /// runs nothing. Throws CompileError, LaunchError, and KernelError where a check of the backend
  /// fails. Thread safe.
  void launch(std::span<const Arg> args, const runtime::Grid& grid, const backend::Backend& backend,
              uint64_t seed) const;
  /// The kernel as the front end made it, or what the backend emits.
  ir::Module module(std::span<const Arg> args, const backend::Backend* emitted_by) const;
  /// What the backend prints; of native code its loops. Throws CompileError, LaunchError if it
  /// knows no kernels of threads.
  std::string source(std::span<const Arg> args, const backend::Backend& backend) const;

  const std::string& name() const { return program_[0].name; }
  const std::vector<std::string>& parameters() const { return program_[0].parameters; }

 private:
  struct Variant {
    const backend::Backend* backend = nullptr;
    std::vector<frontend::threads::Argument> kinds;
    std::shared_ptr<const ir::Module> module;
    std::shared_ptr<const Compiled> compiled;
    std::vector<bool> written;  // by argument
    std::vector<frontend::threads::Site> sites;
  };
  using Key = std::pair<const backend::Backend*, std::vector<frontend::threads::Argument>>;

  const Variant& variant(std::span<const Arg> args, const backend::Backend& backend) const;
  std::string describe() const;
  frontend::threads::Options options_for(const backend::Backend* backend) const;
  /// Throws KernelError for what the launch has reported.
  void raise_reported(std::span<const int64_t> report, const Variant& v,
                      const runtime::Grid& grid) const;

  const frontend::threads::Program program_;
  const FloatMode floats_;
  const bool check_;
  mutable std::mutex mutex_;
  mutable std::map<Key, std::unique_ptr<const Variant>> variants_;
  mutable std::atomic<const Variant*> last_ = nullptr;  // of the last launch; none is ever dropped
};

}  // namespace picokernel::driver
