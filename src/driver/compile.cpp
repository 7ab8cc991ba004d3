// The pipelines.
#include "driver/compile.h"

#include <algorithm>

#include "ir/text.h"
#include "ir/verifier.h"
#include "passes/common/passes.h"
#include "passes/graph/passes.h"
#include "passes/lower/lower_loops.h"
#include "runtime/kernel_cache.h"
#include "support/check.h"
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
constexpr Pass kKernel[] = {PK_PASS(simplify), PK_PASS(cse), PK_PASS(dce)};
constexpr Pass kLower[] = {PK_PASS(lower_loops)};
constexpr Pass kBindKernel[] = {PK_PASS(bind_outputs), PK_PASS(fold), PK_PASS(simplify),
                                PK_PASS(cse), PK_PASS(dce)};

#undef PK_PASS

runtime::KernelCache<Compiled>& cache() {
  static auto* instance = new runtime::KernelCache<Compiled>("kernels");
  return *instance;
}

std::string describe(const passes::LaunchClass& launch) {
  std::string text = launch.nontemporal ? "nontemporal" : "";
  for (const passes::NestClass& nest : launch.nests) {
    text += " (" + std::to_string(nest.rank);
    if (nest.period != 0) text += " period " + std::to_string(nest.period);
    for (const auto& strides : nest.strides) {
      text += " ";
      for (const passes::Stride s : strides) text += "01sp"[static_cast<size_t>(s)];
    }
    for (size_t a = 0; a < nest.neighbours.size(); ++a)
      if (const passes::Neighbour& n = nest.neighbours[a]; n.leader != a)
        text += " " + std::to_string(a) + "=" + std::to_string(n.leader) + "+" +
                std::to_string(n.delta);
    text += ")";
  }
  return text;
}

// Native code knows nothing of names and lines: equal kernels share it. Printed source shows the
// user's names, and its operations lead back to the user's lines.
runtime::CacheKey key_of(const backend::Backend& backend, const ir::Module& graph,
                         const passes::LaunchClass& launch) {
  runtime::CacheKey key;
  key.add("backend", std::string(backend.name) + (backend.returns_results ? ", results" : ""));
  if (backend.target != nullptr) key.add("target", backend.target());
  const bool source = backend.level == ir::Level::graph;
  key.add("graph", ir::print(graph, {.locations = source, .names = source}));
  key.add("launch class", describe(launch));
  return key;
}

}  // namespace

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

ir::Module lower_for(const backend::Backend& backend, ir::Module m,
                     const passes::LaunchClass* launch, Observer observer, void* context) {
  const passes::Target target{.backend = backend.name, .launch = launch};
  const auto run = [&](std::span<const Pass> pipeline) {
    m = run_passes(std::move(m), pipeline, target, observer, context);
  };
  if (m.level == ir::Level::graph) {
    run(graph_pipeline(backend));
    if (backend.level == ir::Level::kernel) {
      run(kLower);
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

std::shared_ptr<const Compiled> compile(const backend::Backend& backend, const Prepared& prepared,
                                        const passes::LaunchClass& launch) {
  const runtime::CacheKey key = key_of(backend, prepared.graph, launch);
  return cache().get_or_build(key, [&] {
    const trace::Span span(
        trace::Category::compile,
        trace::enabled() ? trace::intern("compile " + std::string(backend.name)) : 0);
    const passes::Target target{.backend = backend.name, .launch = &launch};
    auto compiled = std::make_shared<Compiled>();
    compiled->emitted = prepared.graph;
    if (backend.level == ir::Level::kernel) {
      compiled->emitted = run_passes(std::move(compiled->emitted), kLower, target);
      compiled->emitted = run_passes(std::move(compiled->emitted), kKernel, target);
    }
    compiled->emitted = run_passes(std::move(compiled->emitted), backend.legalize, target);
    {
      const trace::Span emit(
          trace::Category::compile,
          trace::enabled() ? trace::intern("emit " + std::string(backend.name)) : 0);
      compiled->artifact = backend.emit(compiled->emitted);
    }
    if (backend.open != nullptr) {
      const trace::Span open(
          trace::Category::compile,
          trace::enabled() ? trace::intern("open " + std::string(backend.name)) : 0);
      compiled->executable = backend.open(compiled->artifact, compiled->emitted);
    }
    return compiled;
  });
}

}  // namespace picokernel::driver
