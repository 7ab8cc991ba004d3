// From a call's trace to one CUDA kernel that MLX runs.
#include "mlx_function.h"

#include <algorithm>

#include "driver/backends.h"
#include "driver/compile.h"
#include "kernel_object.h"
#include "trace/trace.h"

namespace picokernel::python {

namespace {

// Of the deepest expression of operations on arrays.
int64_t levels_of(const ir::Module& m) {
  std::vector<int64_t> levels(m.values.size());
  int64_t most = 0;
  ir::walk(m, [&](ir::OpId id) {
    const ir::Op& op = m.ops[id];
    if (!ir::info(op.opcode).elementwise() || m.type(op.results[0]).is_scalar()) return;
    int64_t& level = levels[op.results[0].value];
    for (const ir::ValueId v : op.operands) level = std::max(level, levels[v.value]);
    most = std::max(most, ++level);
  });
  return most;
}

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
  static const auto fused_levels =
      nb::cast<int64_t>(nb::module_::import_("picokernel.cuda_kernel").attr("fused_levels")());
  const auto empty = [](const driver::Arg& out) {
    return std::find(out.shape, out.shape + out.rank, 0) != out.shape + out.rank;
  };
  // On CUDA, empty arrays kill what mx.compile made.
  if (std::any_of(outs.begin(), outs.end(), empty)) return entry.source->function;
  if (fused_levels < 0 || outs.empty()) return entry.source->fused;
  if (entry.on_cuda.is_valid()) return entry.on_cuda;
  if (levels_of(entry.plan->emitted()) <= fused_levels) return entry.on_cuda = entry.source->fused;
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
