// Kernels of threads, for picokernel/simt: syntax trees as tuples, and launches.
#include <charconv>
#include <cstdlib>

#include "arguments.h"
#include "core.h"
#include "driver/thread_kernel.h"
#include "ir/text.h"
#include "plan_view.h"

namespace picokernel::python {

namespace {

using frontend::threads::Function;
using frontend::threads::Node;

Location location(const std::string& file, nb::handle place) {
  return {.file = file,
          .line = nb::cast<uint32_t>(place[0]),
          .column = nb::cast<uint32_t>(place[1]),
          .end_column = nb::cast<uint32_t>(place[2])};
}

// Numbers travel as text: (0, 0.0 and False are equal in Python, and so are 0.0 and -0.0).
frontend::Literal literal(const std::string& type, const std::string& text, const Location& where) {
  if (type == "bool") return text == "True";
  int64_t whole = 0;
  uint64_t large = 0;
  const char *begin = text.data(), *end = begin + text.size();
  if (std::from_chars(begin, end, whole).ptr == end) {
    if (std::from_chars(begin, end, whole).ec == std::errc{}) return whole;
    if (std::from_chars(begin, end, large).ec == std::errc{}) return large;
    throw CompileError(
        Diagnostic{.location = where,
                   .message = "the integer " + text + " fits neither int64 nor uint64",
                   .notes = {"hint: write a float if rounding is fine"}});
  }
  return std::strtod(text.c_str(), nullptr);
}

// (kind, text, (line, column, end column), fields); of a Number the fields are its digits.
Node node(const std::string& file, nb::handle tuple) {
  Node n{.kind = nb::cast<std::string>(tuple[0]),
         .where = location(file, tuple[2]),
         .text = nb::cast<std::string>(tuple[1])};
  if (n.is("Number")) {
    n.literal = literal(n.text, nb::cast<std::string>(tuple[3]), n.where);
  } else if (n.is("Function")) {
    n.literal = nb::cast<int64_t>(tuple[3]);
  } else {
    for (const nb::handle field : tuple[3]) n.fields.push_back(node(file, field));
  }
  return n;
}

// ((name, file, place, parameters, statements, captured), ...)
frontend::threads::Program program(nb::handle tuple) {
  frontend::threads::Program all;
  for (const nb::handle f : tuple) {
    const auto file = nb::cast<std::string>(f[1]);
    Function made{.name = nb::cast<std::string>(f[0]),
                  .where = location(file, f[2]),
                  .parameters = nb::cast<std::vector<std::string>>(f[3]),
                  .captured = nb::cast<size_t>(f[5])};
    for (const nb::handle s : f[4]) made.body.push_back(node(file, s));
    all.push_back(std::move(made));
  }
  return all;
}

// The arguments of a launch, and what keeps them alive.
struct Arguments {
  std::vector<driver::Arg> list;
  std::vector<nb::object> kept;

  Arguments(const driver::ThreadKernel& k, nb::handle tuple) {
    for (const nb::handle object : tuple) {
      driver::Arg& arg = list.emplace_back();
      if (PyBool_Check(object.ptr())) {
        arg = {.kind = driver::Arg::Kind::scalar, .dtype = DType::b1, .weak = true};
        arg.bits = object.ptr() == Py_True;
        continue;
      }
      if (read_argument(object.ptr(), arg) == Read::done && !is_complex_number(arg)) continue;
      kept.push_back(plain(k, object));
      arg = {};
      if (read_argument(kept.back().ptr(), arg) != Read::done) refuse(k, object);
    }
  }
  void write_back() const {
    for (const nb::object& o : kept)
      if (PyArray_Check(o.ptr()) &&
          PyArray_ResolveWritebackIfCopy(reinterpret_cast<PyArrayObject*>(o.ptr())) < 0)
        throw ErrorSet{};
  }

 private:
  static bool is_complex_number(const driver::Arg& a) { return is_complex(a.dtype) && a.rank == 0; }
  std::string label(const driver::ThreadKernel& k) const {
    const size_t i = list.size() - 1;
    const std::string name =
        i < k.parameters().size() ? " '" + k.parameters()[i] + "'" : std::string();
    return "argument " + std::to_string(i + 1) + name + " of kernel '" + k.name() + "'";
  }
  [[noreturn]] void refuse(const driver::ThreadKernel& k, nb::handle object) const {
    throw_launch_error(
        label(k) + " is a " + Py_TYPE(object.ptr())->tp_name,
        {"kernels of threads take NumPy arrays and real numbers", "hint: pass np.asarray(x)"});
  }
  nb::object plain(const driver::ThreadKernel& k, nb::handle object) const {
    const bool number = PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr());
    if (!number && !PyArray_Check(object.ptr())) refuse(k, object);
    const nb::object made = nb::steal(plain_argument(object.ptr(), label(k), true));
    if (!made.is_valid()) throw ErrorSet{};
    return made;
  }
};

std::array<int64_t, 3> dimensions(nb::handle tuple) {
  return {nb::cast<int64_t>(tuple[0]), nb::cast<int64_t>(tuple[1]), nb::cast<int64_t>(tuple[2])};
}

}  // namespace

// A kernel with its grid, called with arguments.
struct Launch {
  const driver::ThreadKernel& kernel;
  std::string backend;
  runtime::Grid grid;
  uint64_t seed;

  void operator()(nb::handle args) const {
    const backend::Backend& chosen = backend_of_threads(backend);
    const Arguments arguments(kernel, args);
    {
      const nb::gil_scoped_release unlocked;
      kernel.launch(arguments.list, grid, chosen, seed);
    }
    arguments.write_back();
  }
};

void bind_simt(nb::module_& m) {
  using driver::ThreadKernel;
  m.def("_read_as_array", [](nb::handle subclass) {
    read_as_array(reinterpret_cast<PyTypeObject*>(subclass.ptr()));
  });
  nb::class_<ThreadKernel>(m, "ThreadKernel", "A kernel of threads: of a program, as tuples.")
      .def("__init__",
           [](ThreadKernel* self, nb::handle functions, bool fastmath, bool check) {
             new (self) ThreadKernel(
                 program(functions),
                 {.accuracy = fastmath ? Accuracy::fast : Accuracy::strict, .fastmath = fastmath},
                 check);
           })
      .def(
          "text",
          [](const ThreadKernel& k, const std::string& backend, nb::handle args) {
            const backend::Backend* const emitter =
                backend.empty() ? nullptr : &backend_to_look_at(backend);
            return ir::print(k.module(Arguments(k, args).list, emitter));
          },
          "The IR: as the front end makes it, or as a backend gets it.")
      .def(
          "source",
          [](const ThreadKernel& k, const std::string& backend, nb::handle args) {
            return k.source(Arguments(k, args).list, backend_to_look_at(backend));
          },
          "What a backend prints.");
  nb::class_<Launch>(m, "ThreadLaunch", "A kernel of threads with its grid.")
      .def(
          "__init__",
          [](Launch* self, const ThreadKernel& k, std::string decorated, nb::handle blocks,
             nb::handle threads, int64_t shared_bytes, uint64_t seed) {
            new (self) Launch{k,
                              std::move(decorated),
                              {dimensions(blocks), dimensions(threads), shared_bytes},
                              seed};
          },
          nb::keep_alive<1, 2>())
      .def("__call__", [](const Launch& l, nb::args args) { l(args); });
}

}  // namespace picokernel::python
