// The tracer and its values, for picokernel/traced.py.

#include "frontend/tracer.h"

#include "core.h"

namespace picokernel::python {

using frontend::Tracer;
using frontend::Value;

namespace {

Value literal(nb::handle number) {
  PyObject* const o = number.ptr();
  Value v{.kind = Value::Kind::literal, .weak = true};
  if (PyBool_Check(o)) {
    v.literal = o == Py_True;
  } else if (PyFloat_Check(o)) {
    v.literal = PyFloat_AS_DOUBLE(o);
  } else if (PyComplex_Check(o)) {
    const Py_complex c = PyComplex_AsCComplex(o);
    v.literal = std::complex<double>(c.real, c.imag);
  } else if (PyLong_Check(o)) {
    int overflow = 0;
    const int64_t value = PyLong_AsLongLongAndOverflow(o, &overflow);
    v.literal = value;
    if (overflow > 0) {
      const uint64_t large = PyLong_AsUnsignedLongLong(o);
      if (PyErr_Occurred()) throw nb::python_error();
      v.literal = large;
    } else if (overflow < 0) {
      PyErr_SetString(PyExc_OverflowError, "too small for int64");
      throw nb::python_error();
    }
  } else {
    throw nb::type_error("a Python number is needed");
  }
  return v;
}

DType dtype_named(std::string_view name) {
  const auto dtype = dtype_from_numpy(name);
  if (!dtype) throw nb::value_error(("no dtype " + std::string(name)).c_str());
  return *dtype;
}

// Sizes that the trace fixes as ints, the others as values.
nb::list shape(Tracer& t, Value v, nb::handle where) {
  nb::list sizes;
  for (const SizeId size : t.shape(v)) {
    if (const auto constant = t.module().sizes.as_constant(size))
      sizes.append(*constant);
    else
      sizes.append(t.size(size, to_location(where)));
  }
  return sizes;
}

std::vector<frontend::Index> indices_of(const nb::list& list) {
  using frontend::Index;
  const auto integer = [](nb::handle h) {
    if (nb::isinstance<Value>(h)) return nb::cast<Value>(h);
    return Value{.kind = Value::Kind::literal, .weak = true, .literal = nb::cast<int64_t>(h)};
  };
  const auto bound = [&](nb::handle h) {
    return h.is_none() ? std::nullopt : std::optional(integer(h));
  };
  std::vector<Index> indices;
  for (const nb::handle h : list) {
    if (h.is_none())
      indices.push_back({.kind = Index::Kind::newaxis});
    else if (h.ptr() == Py_Ellipsis)
      indices.push_back({.kind = Index::Kind::ellipsis});
    else if (PySlice_Check(h.ptr()))
      indices.push_back({.start = bound(h.attr("start")),
                         .stop = bound(h.attr("stop")),
                         .step = h.attr("step").is_none() ? 1 : nb::cast<int64_t>(h.attr("step"))});
    else
      indices.push_back({.kind = Index::Kind::integer, .integer = integer(h)});
  }
  return indices;
}

}  // namespace

void bind_tracer(nb::module_& m) {
  nb::class_<Value>(m, "Value", "A value of a trace.")
      .def_prop_ro("kind",
                   [](const Value& v) {
                     return v.kind == Value::Kind::ref     ? "ref"
                            : v.kind == Value::Kind::value ? "value"
                                                           : "literal";
                   })
      .def_ro("weak", &Value::weak);
  m.def("literal", &literal,
        "The value of a Python number; OverflowError if an int fits neither int64 nor uint64.");

  nb::class_<Tracer>(m, "Tracer",
                     "Builds the graph of one kernel. Places are (file, line, column, end column).")
      .def("apply", [](Tracer& t, std::string_view name, const std::vector<Value>& operands,
                       nb::handle where) { return t.apply(name, operands, to_location(where)); })
      .def("cast",
           [](Tracer& t, Value v, std::string_view dtype, nb::handle where) {
             return t.cast(v, dtype_named(dtype), to_location(where));
           })
      .def("store", [](Tracer& t, Value target, Value v,
                       nb::handle where) { t.store(target, v, to_location(where)); })
      .def("store_out", [](Tracer& t, Value target, Value v,
                           nb::handle where) { t.store_out(target, v, to_location(where)); })
      .def("storage",
           [](Tracer& t, Value v, nb::handle where) { return t.storage(v, to_location(where)); })
      .def(
          "index",
          [](Tracer& t, Value v, nb::list indices, nb::handle where) {
            return t.index(v, indices_of(indices), to_location(where));
          },
          "Each index: a slice of ints and None, an int, None or Ellipsis.")
      .def("transpose", [](Tracer& t, Value v, const std::vector<size_t>& axes,
                           nb::handle where) { return t.transpose(v, axes, to_location(where)); })
      .def("decide",
           [](Tracer& t, Value v, nb::handle where) -> nb::object {
             const auto decided = t.decide(v, to_location(where));
             return decided ? nb::object(nb::bool_(*decided)) : nb::object(nb::none());
           })
      .def("real",
           [](Tracer& t, Value v, nb::handle where) { return t.real(v, to_location(where)); })
      .def("imag",
           [](Tracer& t, Value v, nb::handle where) { return t.imag(v, to_location(where)); })
      .def("dtype", [](const Tracer& t, Value v) { return numpy_name(t.dtype(v)); })
      .def("ndim", [](const Tracer& t, Value v) { return t.shape(v).size(); })
      .def("shape", &shape)
      .def("finish", [](Tracer& t, const std::vector<Value>& returned, nb::handle where) {
        return t.finish(returned, to_location(where));
      });

  nb::list names;
  for (const std::string_view name : Tracer::known_ufuncs()) names.append(name);
  m.attr("known_ufuncs") = nb::tuple(names);  // sorted
  nb::list dtypes;
  for (size_t i = 0; i < kDTypeCount; ++i) dtypes.append(numpy_name(static_cast<DType>(i)));
  m.attr("dtype_names") = nb::tuple(dtypes);
}

}  // namespace picokernel::python
