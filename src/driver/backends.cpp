// The registration of backends: one line each.
#include "driver/backends.h"

#include <algorithm>

#include "backend/mlx/mlx.h"
#include "backend/numpy/numpy.h"
#include "backend/ref/ref.h"
#ifdef PICOKERNEL_HAVE_LLVM
#include "backend/cpu/cpu.h"
#endif

namespace picokernel::driver {
namespace {

constexpr const backend::Backend* kBackends[] = {
#ifdef PICOKERNEL_HAVE_LLVM
    &backend::cpu_backend,   &backend::llvm_backend, &backend::asm_backend,
#endif
    &backend::numpy_backend, &backend::mlx_backend,  &backend::ref_backend,
};

}  // namespace

std::span<const backend::Backend* const> all_backends() { return kBackends; }

const backend::Backend* find_backend(std::string_view name) {
  const auto found =
      std::ranges::find(kBackends, name, [](const backend::Backend* b) { return b->name; });
  return found == std::end(kBackends) ? nullptr : *found;
}

}  // namespace picokernel::driver
