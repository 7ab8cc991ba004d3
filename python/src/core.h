// What the files of the binding share: errors, conversions and the parts of the module.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <picokernel/diagnostic.h>

#include "backend/backend.h"
#include "driver/kernel.h"

namespace picokernel::python {

namespace nb = nanobind;

// The parts of the module, a file each.
void bind_backends(nb::module_& m);
void bind_cache(nb::module_& m);
void bind_errors();
void bind_ir(nb::module_& m);
void bind_kernel(nb::module_& m);
void bind_memory(nb::module_& m);
void bind_profile(nb::module_& m);
void bind_simt(nb::module_& m);
void bind_tracer(nb::module_& m);

/// Thrown when the Python error indicator of this thread, which holds the interpreter lock, is set.
struct ErrorSet {};

/// Inside a catch block: turns the exception in flight into a Python error. What happened inside of
/// picokernel to find a user's error leaves no traceback.
void set_python_error() noexcept;
/// The attribute of one of our own Python modules, looked up once. Borrowed; null with an error
/// set.
PyObject* own_attribute(const char* module, const char* name);
[[noreturn]] void throw_launch_error(std::string message, std::vector<std::string> notes = {});

/// (file, line, column, end_column)
Location to_location(nb::handle tuple);

/// The backend of that name; throws LaunchError with the known ones. Also checks that it is live.
const backend::Backend& backend_named(std::string_view name);
/// The one that a kernel of threads runs on; `decorated` is what its decorator names, or empty.
const backend::Backend& backend_of_threads(const std::string& decorated);
/// Empty when this process can run it, else why not: what the core says, and for source backends
/// whether their library can be imported.
std::string why_not_live(const backend::Backend& backend);
bool prints_source(const backend::Backend& backend);

}  // namespace picokernel::python
