// The reference backend.
#include "backend/ref/ref.h"

#include "backend/ref/interpreter.h"
#include "backend/ref/thread_interpreter.h"
#include "ir/text.h"
#include "passes/legalize/passes.h"
#include "runtime/fp_control.h"

namespace picokernel::backend {
namespace {

class Interpreted : public runtime::Executable {
 public:
  explicit Interpreted(ir::Module m) : module_(std::move(m)) {}
  void launch(const uint64_t* params) override {
    const runtime::FpControlScope fp_control;
    run_kernel(module_, {params, module_.params().size()});
  }
  void launch(std::span<const uint64_t> params, std::span<const runtime::Reach> reach,
              const runtime::Grid& grid, uint64_t seed) override {
    const runtime::FpControlScope fp_control;
    run_threads(module_, params, reach, grid, seed);
  }

 private:
  const ir::Module module_;
};

std::vector<Diagnostic> check(const ir::Module&) { return {}; }
Artifact emit(const ir::Module& m) { return {.code = ir::print(m), .entry = m.name}; }
std::unique_ptr<runtime::Executable> open(const Artifact&, const ir::Module& m) {
  return std::make_unique<Interpreted>(m);
}
std::string why_not_live() { return {}; }

constexpr passes::Pass kLegalize[] = {
    {"expand_math", passes::expand_math, "functions are what their expansions compute"},
};

}  // namespace

const Backend ref_backend{
    .name = "ref",
    .summary = "the reference interpreter",
    .level = ir::Level::kernel,
    .legalize = kLegalize,
    .check = check,
    .emit = emit,
    .open = open,
    .why_not_live = why_not_live,
    .threads = Threads::interpreted,
};

}  // namespace picokernel::backend
