#include "mlx_lending.h"

#include <algorithm>

#include "mlx_arrays.h"
#include "mlx_bridge.h"

namespace picokernel::python {

namespace {

constexpr int64_t kLeastBytes = 65536;  // a copy of less takes no longer

struct Lent : Remains {
  nb::object array;
  explicit Lent(nb::object a) : array(std::move(a)) {}
};

struct Range {
  uintptr_t begin, end;
  bool overlaps(const Range& r) const { return begin < r.end && r.begin < end; }
};
Range range_of(const driver::Arg& a) {
  Range r{reinterpret_cast<uintptr_t>(a.data), reinterpret_cast<uintptr_t>(a.data)};
  for (size_t d = 0; d < a.rank; ++d) {
    if (a.shape[d] == 0) return {0, 0};
    const int64_t reach = (a.shape[d] - 1) * a.strides[d];
    (reach < 0 ? r.begin : r.end) += static_cast<uintptr_t>(reach);
  }
  r.end += size_of(a.dtype);
  return r;
}

bool is_contiguous(const driver::Arg& a) {
  int64_t stride = static_cast<int64_t>(size_of(a.dtype));
  for (size_t d = a.rank; d-- > 0; stride *= a.shape[d])
    if (a.shape[d] != 1 && a.strides[d] != stride) return false;
  return stride >= kLeastBytes;
}
bool may_be_lent(const Entry& entry, size_t i, const driver::Arg& a) {
  return a.kind == driver::Arg::Kind::array && !entry.plan->written()[i] &&
         a.dtype != DType::bf16 && is_contiguous(a);
}

// MLX's operations share memory with NumPy there by themselves (mx.asarray).
bool metal_shares_memory() {
  static const bool found = [] {
    const nb::module_ mx = nb::module_::import_("mlx.core");
    return nb::hasattr(mx, "metal") && nb::cast<bool>(mx.attr("metal").attr("is_available")());
  }();
  return found;
}

// The same array in MLX; null: this MLX cannot have it.
nb::object lent(const graph::Bridge& bridge, PyArrayObject* array, DType dtype) {
  const int rank = PyArray_NDIM(array);
  const std::vector<int64_t> shape(PyArray_DIMS(array), PyArray_DIMS(array) + rank);
  nb::object made = new_mlx_array();
  std::unique_ptr<Remains> owner =
      std::make_unique<Lent>(nb::borrow(reinterpret_cast<PyObject*>(array)));
  const auto release = [](void* o) { bury(std::unique_ptr<Remains>(static_cast<Remains*>(o))); };
  if (!bridge.adopt(array_in(made.ptr()), PyArray_DATA(array), dtype, shape.size(), shape.data(),
                    release, owner.get()))
    return {};
  static_cast<void>(owner.release());
  return made;
}

}  // namespace

bool lends_to_mlx(const Entry& entry, size_t i) {
  if (entry.backend->name != "mlx" || entry.plan->backend().returns_results) return false;
  driver::Arg a = entry.layouts[i].arg;
  a.shape = entry.layouts[i].shape.data();
  a.strides = entry.layouts[i].strides.data();
  return may_be_lent(entry, i, a) && built_mlx_bridge() != nullptr;
}

void lend_to_mlx(const Entry& entry, std::span<const driver::Arg> args,
                 std::span<const driver::Arg> outs, std::vector<PyObject*>& given,
                 std::vector<nb::object>& kept) {
  std::vector<Range> written;
  for (const driver::Arg& out : outs) written.push_back(range_of(out));
  for (size_t i = 0; i < args.size(); ++i)
    if (entry.plan->written()[i]) written.push_back(range_of(args[i]));
  const graph::Bridge* bridge = nullptr;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].kind != driver::Arg::Kind::array || !PyArray_Check(given[i])) continue;
    auto* const array = reinterpret_cast<PyArrayObject*>(given[i]);
    const auto overlaps = [mine = range_of(args[i])](const Range& r) { return r.overlaps(mine); };
    nb::object other;
    if (std::any_of(written.begin(), written.end(), overlaps)) {
      if (entry.plan->written()[i] || !metal_shares_memory()) continue;
      other = nb::steal(PyArray_NewCopy(array, NPY_CORDER));
      if (!other.is_valid()) throw ErrorSet{};
    } else {
      if (!may_be_lent(entry, i, args[i]) || !PyArray_ISALIGNED(array)) continue;
      if (bridge == nullptr && (bridge = built_mlx_bridge()) == nullptr) return;
      other = lent(*bridge, array, real_of(args[i].dtype));
    }
    if (!other.is_valid()) return;
    given[i] = other.ptr();
    kept.push_back(std::move(other));
  }
}

}  // namespace picokernel::python
