// Opening the bridge, and what it must not do itself: hold and drop Python's objects.
#include "mlx_bridge.h"

#include <memory>
#include <mutex>
#include <utility>

#include <dlfcn.h>

#include "trace/trace.h"

namespace picokernel::python {

namespace {

using graph::Bridge;

// The bridge of the library at `path`, or why it is none.
const Bridge* opened(const std::string& path, std::string& reason) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    reason = dlerror();
    return nullptr;
  }
  const auto entry =
      reinterpret_cast<decltype(&picokernel_mlx_bridge)>(dlsym(library, "picokernel_mlx_bridge"));
  const Bridge* const bridge = entry == nullptr ? nullptr : entry();
  reason = "it is of another build";
  if (bridge == nullptr || bridge->size != sizeof(Bridge)) return nullptr;
  const nb::module_ mx = nb::module_::import_("mlx.core");
  reason = "MLX's library is not that of its Python module";
  if (nb::cast<std::string>(mx.attr("__version__")) != bridge->mlx_version()) return nullptr;
  // Where Python keeps the array of C++ is nanobind's business: known to be inside of the object.
  const nb::object probe = mx.attr("zeros")(nb::make_tuple(3), mx.attr("int16"));
  const auto* const begin = reinterpret_cast<const char*>(probe.ptr());
  const auto* const at = static_cast<const char*>(array_in(probe.ptr()));
  reason = "this MLX's Python arrays have an unknown layout";
  if (at < begin + sizeof(PyObject) ||
      at + 2 * sizeof(void*) > begin + Py_TYPE(probe.ptr())->tp_basicsize)
    return nullptr;
  return bridge->is_array(at) ? bridge : nullptr;
}

const Bridge* found(std::string& reason) {
  static const trace::NameId name = trace::intern("open the bridge into MLX");
  const trace::Span span(trace::Category::compile, name);
  try {
    const nb::object library = nb::module_::import_("picokernel.mlx_bridge").attr("library");
    for (const bool anew : {false, true})
      if (const Bridge* bridge = opened(nb::cast<std::string>(library(anew)), reason))
        return bridge;
    return nullptr;
  } catch (nb::python_error& e) {
    reason = nb::cast<std::string>(nb::str(e.value()));
    return nullptr;
  }
}

struct Buried {
  std::mutex mutex;
  std::vector<std::unique_ptr<Remains>> list;
  bool scheduled = false;
};
Buried& buried() {
  static auto* instance = new Buried;
  return *instance;
}

int drop_buried(void*) {
  std::vector<std::unique_ptr<Remains>> list;
  {
    const std::lock_guard lock(buried().mutex);
    list.swap(buried().list);
    buried().scheduled = false;
  }
  return 0;
}

const Bridge* bridge = nullptr;

}  // namespace

const Bridge* known_mlx_bridge() noexcept { return bridge; }

const Bridge* mlx_bridge() {
  static bool asked = false;
  if (asked) return bridge;
  std::string reason;
  const Bridge* const now = found(reason);  // other threads wait there, too
  if (std::exchange(asked, true)) return bridge;
  bridge = now;
  if (bridge != nullptr) return bridge;
  const std::string text =
      "kernels on MLX arrays run as operations of MLX, not as native code inside its graph: " +
      reason +
      "\n  hint: install a C++ compiler (apt install g++) or name one by CXX; `picokernel doctor` "
      "says what was found";
  if (PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1) != 0) throw ErrorSet{};
  return nullptr;
}

bool on_mlx_cpu() {
  if (bridge != nullptr) return bridge->on_cpu();
  const nb::module_ mx = nb::module_::import_("mlx.core");
  return mx.attr("default_device")().attr("type").equal(mx.attr("cpu"));
}

const Bridge* built_mlx_bridge() {
  if (bridge == nullptr) {
    static const bool built = [] {
      try {
        return !nb::module_::import_("picokernel.mlx_bridge").attr("built")().is_none();
      } catch (const nb::python_error&) {
        return false;
      }
    }();
    if (!built || !on_mlx_cpu() || mlx_bridge() == nullptr) return nullptr;
  }
  return bridge->on_cpu() ? bridge : nullptr;
}

void* array_in(PyObject* array) noexcept { return nb::inst_ptr<void>(nb::handle(array)); }

nb::object new_mlx_array() {
  static PyObject* const type = own_attribute("mlx.core", "array");
  static PyObject* const zero = PyLong_FromLong(0);
  PyObject* const made = type == nullptr ? nullptr : PyObject_CallOneArg(type, zero);
  if (made == nullptr) throw ErrorSet{};
  return nb::steal(made);
}

void bury(std::unique_ptr<Remains> remains) noexcept {
  if (Py_IsInitialized() == 0) {
    static_cast<void>(remains.release());
    return;
  }
  if (PyGILState_Check() == 1) return;
  const std::lock_guard lock(buried().mutex);
  buried().list.push_back(std::move(remains));
  if (!buried().scheduled) buried().scheduled = Py_AddPendingCall(drop_buried, nullptr) == 0;
}

}  // namespace picokernel::python
