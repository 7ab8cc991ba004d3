// The cache on disk for the command line, and warnings of the core as Python's.
#include "core.h"
#include "runtime/disk_cache.h"
#include "support/warning.h"

namespace picokernel::python {

namespace {

// At the line that called the kernel. Where warnings are errors there is nobody to raise it to: the
// call has succeeded.
void warn_in_python(const std::string& message) noexcept {
  const nb::gil_scoped_acquire locked;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (PyErr_WarnEx(PyExc_RuntimeWarning, message.c_str(), 1) != 0) PyErr_WriteUnraisable(nullptr);
  PyErr_Restore(type, value, traceback);
}

}  // namespace

void bind_cache(nb::module_& m) {
  set_warning_handler(warn_in_python);
  m.def(
      "cache_contents",
      [] {
        const runtime::DiskCache disk = runtime::user_disk_cache();
        const runtime::DiskCache::Contents found = disk.contents();
        return nb::make_tuple(disk.folder(), found.problem, found.entries, found.bytes,
                              disk.most_bytes());
      },
      "Of the cache on disk: its folder, why it cannot be used or '', the number of kernels, their "
      "bytes, and the most bytes.");
  m.def(
      "clear_cache", [] { return runtime::user_disk_cache().clear(); },
      "Removes all kernels from the cache on disk; gives their number.");
}

}  // namespace picokernel::python
