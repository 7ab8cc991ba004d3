// From a traced graph to something that runs: the pipelines, and the cache of what they made.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "backend/backend.h"
#include "passes/lower/nests.h"

namespace picokernel::driver {

// A graph made ready for cutting into nests or for printing; the same for all launch classes.
struct Prepared {
  ir::Module traced;
  ir::Module graph;     // results bound to parameters, simplified, materialised for kernels
  passes::Nests nests;  // backends of kernel level
};

class Compiled {
 public:
  Compiled(ir::Module emitted, backend::Artifact artifact);
  /// From disk: `lower` makes again what the artifact was emitted from.
  Compiled(std::function<ir::Module()> lower, backend::Artifact artifact);

  /// What the artifact was emitted from.
  const ir::Module& emitted() const;
  const backend::Artifact artifact;
  std::unique_ptr<runtime::Executable> executable;  // null for source backends

 private:
  mutable std::function<ir::Module()> lower_;  // null: emitted_ is there
  mutable std::once_flag lowered_;
  mutable ir::Module emitted_;
};

/// The passes that come before the backend's own on a traced graph, in order.
std::span<const passes::Pass> graph_pipeline(const backend::Backend& backend);
/// The passes after lower_loops.
std::span<const passes::Pass> kernel_pipeline();

// Sees every pass that runs: its name and the module after it.
using Observer = void (*)(void* context, std::string_view pass, const ir::Module& m);

/// Runs passes in order, each a traced span; verifies after each in debug builds, at the end
/// always.
ir::Module run_passes(ir::Module m, std::span<const passes::Pass> pipeline,
                      const passes::Target& target, Observer observer = nullptr,
                      void* context = nullptr);

/// Everything from a traced graph (or a kernel) to what `backend` emits.
ir::Module lower_for(const backend::Backend& backend, ir::Module m,
                     const passes::LaunchClass* launch = nullptr, Observer observer = nullptr,
                     void* context = nullptr);

/// Throws CompileError if the backend cannot do something in the graph.
std::shared_ptr<const Prepared> prepare(const backend::Backend& backend, ir::Module traced);
/// From the process's cache, from disk, or made: two kernels with one text share it.
std::shared_ptr<const Compiled> compile(const backend::Backend& backend,
                                        std::shared_ptr<const Prepared> prepared,
                                        const passes::LaunchClass& launch);

/// The same for a kernel of threads. Throws LaunchError if the backend runs none, CompileError if
/// it cannot run this one.
std::shared_ptr<const Compiled> compile_threads(const backend::Backend& backend,
                                                std::shared_ptr<const ir::Module> kernel);
/// What `backend` emits for a kernel of threads.
ir::Module lower_threads_for(const backend::Backend& backend, ir::Module kernel);

}  // namespace picokernel::driver
