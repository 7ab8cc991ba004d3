// From a call's trace to one CUDA kernel that MLX runs.
#include "mlx_function.h"

#include "driver/backends.h"
#include "driver/compile.h"
#include "kernel_object.h"
#include "trace/trace.h"

namespace picokernel::python {

namespace {

// A CudaKernel of Python, or None.
nb::object printed_kernel(const Entry& entry, size_t results) {
  static const trace::NameId name = trace::intern("print a CUDA kernel for MLX");
  const backend::Backend& cuda = *driver::find_backend("cuda");
  const ir::Module& traced = entry.plan->traced();
  const std::vector<bool>& written = entry.plan->written();
  if (std::find(written.begin(), written.end(), true) != written.end()) return nb::none();
  const trace::Span span(trace::Category::compile, name);
  if (!cuda.check(traced).empty()) return nb::none();
  const backend::Artifact artifact = cuda.emit(driver::lower_for(cuda, traced));
  nb::list numbers;
  for (const ir::ValueId v : traced.params()) {
    const ir::Type& t = traced.type(v);
    numbers.append(t.is_scalar() ? nb::cast(numpy_name(t.dtype)) : nb::none());
  }
  const nb::object make = nb::module_::import_("picokernel.cuda_kernel").attr("CudaKernel");
  return make(artifact.code, artifact.entry, numbers, results, entry.source->function,
              entry.source->fused);
}

}  // namespace

const nb::object& function_on_mlx(Entry& entry, std::span<const driver::Arg> outs) {
  static const bool has_cuda = [] {
    return nb::cast<bool>(nb::module_::import_("picokernel.cuda_kernel").attr("available")());
  }();
  const auto empty = [](const driver::Arg& out) {
    return std::find(out.shape, out.shape + out.rank, 0) != out.shape + out.rank;
  };
  // On CUDA, empty arrays kill what mx.compile made.
  if (std::any_of(outs.begin(), outs.end(), empty)) return entry.source->function;
  if (!has_cuda || outs.empty()) return entry.source->fused;
  if (entry.on_cuda.is_valid()) return entry.on_cuda;
  nb::object& kernel = entry.source->cuda;
  if (!kernel.is_valid()) kernel = printed_kernel(entry, outs.size());
  if (kernel.is_none()) return entry.on_cuda = entry.source->fused;
  nb::list sizes, shapes, dtypes;
  for (const int64_t size : entry.plan->cost().second) sizes.append(size);
  for (const driver::Arg& out : outs) {
    nb::list shape;
    for (size_t d = 0; d < out.rank; ++d) shape.append(out.shape[d]);
    if (is_complex(out.dtype)) shape.append(2);
    shapes.append(nb::tuple(shape));
    dtypes.append(numpy_name(real_of(out.dtype)));
  }
  return entry.on_cuda = kernel.attr("bound")(sizes, shapes, dtypes);
}

}  // namespace picokernel::python
