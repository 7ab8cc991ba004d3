// The registration of backends: one line each.
#include "driver/backends.h"

#include <algorithm>
#include <cstdlib>

#include <picokernel/diagnostic.h>

#include "backend/c/c.h"
#include "backend/cuda/cuda.h"
#include "backend/mlx/mlx.h"
#include "backend/numpy/numpy.h"
#include "backend/opencl/opencl.h"
#include "backend/ref/ref.h"
#ifdef PICOKERNEL_HAVE_LLVM
#include "backend/cpu/cpu.h"
#endif

namespace picokernel::driver {
namespace {

constexpr const backend::Backend* kBackends[] = {
#ifdef PICOKERNEL_HAVE_LLVM
    &backend::cpu_backend,   &backend::llvm_backend,   &backend::asm_backend, &backend::obj_backend,
#endif
    &backend::numpy_backend, &backend::mlx_backend,    &backend::ref_backend, &backend::c_backend,
    &backend::cuda_backend,  &backend::opencl_backend,
};

}  // namespace

std::span<const backend::Backend* const> all_backends() { return kBackends; }

const backend::Backend* find_backend(std::string_view name) {
  const auto found =
      std::ranges::find(kBackends, name, [](const backend::Backend* b) { return b->name; });
  return found == std::end(kBackends) ? nullptr : *found;
}

void check_environment() {
  const char* variable = std::getenv("PICOKERNEL_CPU");
  const backend::Backend* cpu = find_backend("cpu");
  if (variable == nullptr || *variable == '\0' || cpu == nullptr) return;
  if (const std::string reason = cpu->why_not_live(); !reason.empty())
    throw LaunchError(Diagnostic{.message = "backend `cpu` cannot run here: " + reason,
                                 .notes = {"unset: what this CPU can do"}});
}

}  // namespace picokernel::driver
