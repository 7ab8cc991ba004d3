// The pipelines.
#include "driver/compile.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "driver/backends.h"
#include "driver/cache_log.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "passes/common/passes.h"
#include "passes/graph/passes.h"
#include "passes/lower/lower_loops.h"
#include "runtime/disk_cache.h"
#include "runtime/fp_control.h"
#include "runtime/kernel_cache.h"
#include "support/build_id.h"
#include "support/check.h"
#include "support/warning.h"
#include "trace/trace.h"

namespace picokernel::driver {
namespace {

using passes::Pass;

#define PK_PASS(name) Pass{#name, passes::name, ""}

// fold feeds simplify with constants; simplify leaves equal and unused ops for cse and dce, as
// compose_views leaves views.
constexpr Pass kSourceGraph[] = {PK_PASS(compose_views), PK_PASS(bind_outputs), PK_PASS(fold),
                                 PK_PASS(simplify),      PK_PASS(cse),          PK_PASS(dce)};
// For functions that return their results.
constexpr Pass kValueGraph[] = {PK_PASS(fold), PK_PASS(simplify), PK_PASS(cse), PK_PASS(dce)};
// materialize last: whether a read is stale depends on which reads and writes are left.
constexpr Pass kKernelGraph[] = {PK_PASS(compose_views), PK_PASS(bind_outputs), PK_PASS(fold),
                                 PK_PASS(simplify),      PK_PASS(cse),          PK_PASS(dce),
                                 PK_PASS(materialize)};
// simplify: on scalars there are no shapes to keep. cse merges offsets of accesses with equal
// strides; dce drops scalars that no loop uses.
// contract: after cse, for a product that two ops share stays one.
constexpr Pass kKernel[] = {PK_PASS(simplify), PK_PASS(cse), PK_PASS(contract), PK_PASS(dce)};
constexpr Pass kLower[] = {PK_PASS(lower_loops)};
constexpr Pass kLowerArrays[] = {PK_PASS(lower_arrays)};
constexpr Pass kBindKernel[] = {PK_PASS(bind_outputs), PK_PASS(fold),     PK_PASS(simplify),
                                PK_PASS(cse),          PK_PASS(contract), PK_PASS(dce)};

constexpr Pass kLowerThreads[] = {PK_PASS(lower_threads)};
constexpr Pass kThreads[] = {PK_PASS(fold), PK_PASS(simplify), PK_PASS(cse), PK_PASS(contract),
                             PK_PASS(dce)};

#undef PK_PASS

std::string thread_backends() {
  std::string text;
  for (const backend::Backend* b : all_backends())
    if (b->threads != backend::Threads::none && !b->prints_only)
      text += (text.empty() ? "" : ", ") + std::string(b->name);
  return text;
}

std::span<const Pass> lowering(const backend::Backend& backend) {
  return backend.takes_arrays ? kLowerArrays : kLower;
}

runtime::KernelCache<Compiled>& cache() {
  static auto* instance = new runtime::KernelCache<Compiled>("kernels in memory");
  return *instance;
}
// When the library is loaded: no fork finds it half made.
[[maybe_unused]] const auto& kMadeEarly = cache();

std::string describe(const passes::LaunchClass& launch) {
  std::string text = launch.nontemporal ? "nontemporal" : "";
  for (const passes::NestClass& nest : launch.nests) {
    text += " (" + std::to_string(nest.rank);
    if (nest.period != 0) text += " period " + std::to_string(nest.period);
    for (const auto& strides : nest.strides) {
      text += " ";
      for (const passes::Stride s : strides) text += "01sp234"[static_cast<size_t>(s)];
    }
    for (size_t a = 0; a < nest.neighbours.size(); ++a)
      if (const passes::Neighbour& n = nest.neighbours[a]; n.leader != a)
        text += " " + std::to_string(a) + "=" + std::to_string(n.leader) + "+" +
                std::to_string(n.delta);
    text += ")";
  }
  return text;
}

// Native code knows nothing of names and lines: equal kernels share it. Printed text shows the
// user's names, and the operations of Python source lead back to the user's lines.
runtime::CacheKey key_of(const backend::Backend& backend, const ir::Module& m, bool locations,
                         bool names) {
  runtime::CacheKey key;
  key.add("backend", std::string(backend.name) + (backend.returns_results ? ", results" : ""));
  if (backend.storable) key.add("build of the core", build_id());
  if (backend.target != nullptr) key.add("target", backend.target());
  key.add("graph", ir::print(m, {.locations = locations, .names = names}));
  return key;
}

trace::Span span(std::string_view what, const backend::Backend& backend) {
  return trace::Span(
      trace::Category::compile,
      trace::enabled() ? trace::intern(std::string(what) + " " + std::string(backend.name)) : 0);
}

ir::Module lower_nests(const backend::Backend& backend, const Prepared& prepared,
                       const passes::LaunchClass& launch) {
  const passes::Target target{.backend = backend.name, .launch = &launch};
  ir::Module m = prepared.graph;
  if (backend.level == ir::Level::kernel) {
    m = run_passes(std::move(m), lowering(backend), target);
    m = run_passes(std::move(m), kKernel, target);
  }
  return run_passes(std::move(m), backend.legalize, target);
}

std::shared_ptr<Compiled> make(const backend::Backend& backend,
                               const std::function<ir::Module()>& lower) {
  const trace::Span whole = span("compile", backend);
  ir::Module emitted = lower();
  backend::Artifact artifact;
  {
    const trace::Span emit = span("emit", backend);
    artifact = backend.emit(emitted);
  }
  auto compiled = std::make_shared<Compiled>(std::move(emitted), std::move(artifact));
  if (backend.open != nullptr) {
    const trace::Span open = span("open", backend);
    compiled->executable = backend.open(compiled->artifact, compiled->emitted());
  }
  return compiled;
}

// What a storable backend needs of an artifact.
std::string pack(const backend::Artifact& artifact) {
  return artifact.entry + '\0' + artifact.code;
}

// Null if it is not there, or if what is there cannot be opened.
std::shared_ptr<Compiled> load(const backend::Backend& backend, const runtime::DiskCache& disk,
                               std::string_view key, const std::function<ir::Module()>& lower) {
  const trace::Span whole = span("load from disk", backend);
  const std::optional<std::string> packed = disk.load(key);
  if (!packed) return nullptr;
  const size_t end = packed->find('\0');
  if (end == packed->npos) return nullptr;
  auto compiled = std::make_shared<Compiled>(
      lower, backend::Artifact{.code = packed->substr(end + 1), .entry = packed->substr(0, end)});
  try {
    compiled->executable = backend.open(compiled->artifact, {});
  } catch (const InternalError&) {
    return nullptr;
  }
  return compiled;
}

}  // namespace

Compiled::Compiled(ir::Module emitted, backend::Artifact artifact)
    : artifact(std::move(artifact)), emitted_(std::move(emitted)) {}
Compiled::Compiled(std::function<ir::Module()> lower, backend::Artifact artifact)
    : artifact(std::move(artifact)), lower_(std::move(lower)) {}

const ir::Module& Compiled::emitted() const {
  std::call_once(lowered_, [&] {
    const runtime::FpControlScope fp_control;  // constants are folded here
    if (lower_ != nullptr) emitted_ = lower_();
    lower_ = nullptr;
  });
  return emitted_;
}

std::span<const Pass> graph_pipeline(const backend::Backend& backend) {
  if (backend.returns_results) return kValueGraph;
  if (backend.level == ir::Level::graph) return kSourceGraph;
  return kKernelGraph;
}
std::span<const Pass> kernel_pipeline() { return kKernel; }

ir::Module run_passes(ir::Module m, std::span<const Pass> pipeline, const passes::Target& target,
                      Observer observer, void* context) {
  for (const Pass& pass : pipeline) {
    {
      const trace::Span span(
          trace::Category::compile,
          trace::enabled() ? trace::intern("pass " + std::string(pass.name)) : 0);
      m = pass.run(m, target);
    }
#ifndef NDEBUG
    ir::verify_or_throw(m, pass.name);
#endif
    if (observer != nullptr) observer(context, pass.name, m);
  }
  ir::verify_or_throw(m, "the passes of " + std::string(target.backend));
  return m;
}

// Grids are launched by compile_threads.
void refuse_threads(const backend::Backend& backend, const ir::Module& m) {
  ir::walk(m, [&](ir::OpId id) {
    const ir::Op& op = m.ops[id];
    if (ir::info(op.opcode).of_threads())
      throw CompileError(Diagnostic{
          .location = m.location(op),
          .message = "backend " + std::string(backend.name) + " runs no kernels of threads",
          .notes = {std::string(ir::info(op.opcode).name) + " is " +
                    std::string(ir::info(op.opcode).meaning)}});
  });
}

ir::Module lower_for(const backend::Backend& backend, ir::Module m,
                     const passes::LaunchClass* launch, Observer observer, void* context) {
  refuse_threads(backend, m);
  if (backend.target != nullptr) check_environment();
  const passes::Target target{.backend = backend.name, .launch = launch};
  const auto run = [&](std::span<const Pass> pipeline) {
    m = run_passes(std::move(m), pipeline, target, observer, context);
  };
  if (m.level == ir::Level::graph) {
    run(graph_pipeline(backend));
    if (backend.level == ir::Level::kernel) {
      run(lowering(backend));
      run(kKernel);
    }
  } else {
    run(kBindKernel);
  }
  run(backend.legalize);
  return m;
}

std::shared_ptr<const Prepared> prepare(const backend::Backend& backend, ir::Module traced) {
  auto prepared = std::make_shared<Prepared>();
  std::vector<Diagnostic> refused;
  for (Diagnostic& d : backend.check(traced)) {  // one user operation may be several ops
    const auto same = [&](const Diagnostic& known) {
      return known.message == d.message && known.location == d.location;
    };
    if (std::ranges::none_of(refused, same)) refused.push_back(std::move(d));
  }
  if (!refused.empty()) throw CompileError(std::move(refused));
  prepared->graph = run_passes(traced, graph_pipeline(backend), {.backend = backend.name});
  prepared->traced = std::move(traced);
  if (backend.level == ir::Level::kernel) prepared->nests = passes::find_nests(prepared->graph);
  return prepared;
}

namespace {

// From the process's cache, from disk, or made by `lower` and the backend.
std::shared_ptr<const Compiled> compiled_by(const backend::Backend& backend,
                                            const runtime::CacheKey& key, const std::string& name,
                                            const std::function<ir::Module()>& lower) {
  runtime::CacheLookup lookup;
  Found found = Found::in_memory;
  std::string problem;
  const auto build = [&] {
    found = Found::nowhere;
    if (!backend.storable || build_id().empty()) return make(backend, lower);
    const runtime::DiskCache disk = runtime::user_disk_cache();
    // With its name, which debuggers show.
    const runtime::CacheKey disk_key = runtime::CacheKey(key).add("kernel", name);
    const std::string key_bytes = to_bytes(disk_key);
    if (auto stored = load(backend, disk, key_bytes, lower)) {
      found = Found::on_disk;
      return stored;
    }
    if (logs_lookups()) lookup.difference = nearest_on_disk(disk, disk_key, lookup.difference);
    auto made = make(backend, lower);
    problem = disk.store(key_bytes, pack(made->artifact));
    return made;
  };
  auto compiled = cache().get_or_build(key, build, logs_lookups() ? &lookup : nullptr);
  record_lookup(name, backend.name, found, lookup.difference);
  // Only here, where no other thread waits for this one.
  static std::atomic_flag told;
  if (!problem.empty() && !told.test_and_set())
    warn("compiled kernels are kept in memory only. " + problem +
         " (PICOKERNEL_CACHE_DIR names another folder; PICOKERNEL_CACHE_SIZE=0 keeps nothing on "
         "disk)");
  return compiled;
}

}  // namespace

std::shared_ptr<const Compiled> compile(const backend::Backend& backend,
                                        std::shared_ptr<const Prepared> prepared,
                                        const passes::LaunchClass& launch) {
  if (backend.target != nullptr) check_environment();
  const bool source = backend.level == ir::Level::graph;
  runtime::CacheKey key = key_of(backend, prepared->graph, source, source || backend.prints_only);
  key.add("launch class", describe(launch));
  return compiled_by(backend, key, prepared->graph.name, [&backend, prepared, launch] {
    return lower_nests(backend, *prepared, launch);
  });
}

ir::Module lower_threads_for(const backend::Backend& backend, ir::Module kernel) {
  const passes::Target target{.backend = backend.name};
  if (backend.threads == backend::Threads::loops)
    kernel = run_passes(std::move(kernel), kLowerThreads, target);
  kernel = run_passes(std::move(kernel), kThreads, target);
  return run_passes(std::move(kernel), backend.legalize, target);
}

std::shared_ptr<const Compiled> compile_threads(const backend::Backend& backend,
                                                std::shared_ptr<const ir::Module> kernel) {
  if (backend.threads == backend::Threads::none || backend.prints_only)
    throw LaunchError(Diagnostic{
        .message = "backend '" + std::string(backend.name) + "' runs no kernels of threads",
        .notes = {"these do: " + thread_backends(), "hint: @simt.jit(backend=\"ref\")"}});
  if (backend.threads == backend::Threads::loops)
    if (std::optional<Diagnostic> problem = passes::why_not_loops(*kernel)) {
      problem->message =
          "backend '" + std::string(backend.name) + "' does not run " + problem->message;
      problem->notes.push_back("hint: backend 'ref' does, slowly: @simt.jit(backend=\"ref\")");
      throw CompileError(std::move(*problem));
    }
  if (backend.threads == backend::Threads::grid)
    if (std::vector<Diagnostic> refused = backend.check(lower_threads_for(backend, *kernel));
        !refused.empty())
      throw CompileError(std::move(refused));
  if (backend.target != nullptr) check_environment();
  // What is interpreted reports the user's names and lines.
  const bool shown = backend.threads == backend::Threads::interpreted;
  runtime::CacheKey key = key_of(backend, *kernel, shown, shown);
  key.add("threads", "a grid");
  return compiled_by(backend, key, kernel->name,
                     [&backend, kernel] { return lower_threads_for(backend, *kernel); });
}

}  // namespace picokernel::driver
