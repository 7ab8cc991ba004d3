// C++ exceptions as Python's, by picokernel/errors.py.

#include <new>

#include "core.h"
#include "runtime/stop.h"

namespace picokernel::python {

namespace {

nb::object build(const char* kind, const std::vector<Diagnostic>& diagnostics) {
  nb::list list;
  for (const Diagnostic& d : diagnostics) {
    const char* severity = d.severity == Severity::error     ? "error"
                           : d.severity == Severity::warning ? "warning"
                                                             : "note";
    nb::list notes;
    for (const std::string& note : d.notes) notes.append(note);
    list.append(nb::make_tuple(severity, d.location.file, d.location.line, d.location.column,
                               d.location.end_column, d.message, nb::tuple(notes)));
  }
  const nb::module_ errors = nb::module_::import_("picokernel.errors");
  return errors.attr("from_diagnostics")(errors.attr(kind), list);
}

void raise(const char* kind, const Error& error) {
  const nb::object exception = build(kind, error.diagnostics());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

void drop_own_traceback() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* base = own_attribute("picokernel.errors", "Error");
  if (base == nullptr) PyErr_Clear();
  if (base != nullptr && value != nullptr && PyObject_IsInstance(value, base) == 1) {
    PyException_SetTraceback(value, Py_None);
    Py_CLEAR(traceback);
  }
  PyErr_Restore(type, value, traceback);
}

}  // namespace

void set_python_error() noexcept {
  try {
    try {
      throw;
    } catch (const ErrorSet&) {
    } catch (nb::python_error& e) {
      e.restore();
    } catch (const nb::builtin_exception& e) {
      PyErr_SetString(
          e.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_ValueError,
          e.what());
    } catch (const CompileError& e) {
      raise("CompileError", e);
    } catch (const LaunchError& e) {
      raise("LaunchError", e);
    } catch (const KernelError& e) {
      raise("KernelError", e);
    } catch (const InternalError& e) {
      raise("InternalError", e);
    } catch (const Stopped& e) {
      if (PyErr_Occurred() == nullptr) raise("Error", e);  // what signal_raised has set
    } catch (const Error& e) {
      raise("Error", e);
    } catch (const std::bad_alloc&) {
      PyErr_NoMemory();
    } catch (const std::exception& e) {
      PyErr_SetString(PyExc_RuntimeError, e.what());
    } catch (...) {
      PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
    }
    drop_own_traceback();
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

namespace {

unsigned long main_thread = 0;

// What Python does between two lines of the main thread. A handler that raises leaves the error
// set. Other threads handle no signals, and would only wait for the interpreter's lock.
bool signal_raised() {
  if (PyThread_get_thread_ident() != main_thread) return false;
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return raised;
}

}  // namespace

void bind_errors() {
  main_thread = nb::cast<unsigned long>(
      nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  runtime::set_stop_question(signal_raised);
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    // Others are nanobind's business.
    try {
      std::rethrow_exception(error);
    } catch (const Error&) {
      set_python_error();
    }
  });
}

PyObject* own_attribute(const char* module, const char* name) {
  // Modules keep what they define: borrowed from them.
  const nb::object m = nb::steal(PyImport_ImportModule(module));
  if (!m.is_valid()) return nullptr;
  PyObject* attribute = PyObject_GetAttrString(m.ptr(), name);
  Py_XDECREF(attribute);
  return attribute;
}

void throw_launch_error(std::string message, std::vector<std::string> notes) {
  throw LaunchError(Diagnostic{.message = std::move(message), .notes = std::move(notes)});
}

Location to_location(nb::handle tuple) {
  return {.file = nb::cast<std::string>(tuple[0]),
          .line = nb::cast<uint32_t>(tuple[1]),
          .column = nb::cast<uint32_t>(tuple[2]),
          .end_column = nb::cast<uint32_t>(tuple[3])};
}

}  // namespace picokernel::python
