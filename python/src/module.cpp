// The module picokernel._core.
#define PK_IMPORT_NUMPY
#include "core.h"
#include "foreign.h"
#include "numpy_api.h"

namespace picokernel::python {
void init_binding(nb::module_& m);
}

NB_MODULE(_core, m) {
  using namespace picokernel::python;
  if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
#ifdef NDEBUG
  nanobind::set_leak_warnings(false);  // values kept beyond their trace are the user's business
#endif
  m.doc() = "The core of picokernel: compiler, backends and traces.";
  m.attr("__version__") = PICOKERNEL_VERSION;
  bind_errors();
  bind_backends(m);
  bind_ir(m);
  bind_tracer(m);
  bind_memory(m);
  bind_cache(m);
  bind_profile(m);
  init_binding(m);
  bind_kernel(m);
  bind_foreign(m);
  bind_simt(m);
}
