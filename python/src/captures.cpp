// What a function captures: looked at anew by each call, and walked again when it is something
// else.
#include <algorithm>
#include <bit>

#include "planning.h"

namespace picokernel::python {

namespace {

bool equal_numbers(PyObject* a, PyObject* b) noexcept {
  if (a == nullptr || b == nullptr || Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
  }
  return (PyLong_CheckExact(a) || PyUnicode_CheckExact(a)) &&
         PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

bool is_array(const nb::object& o) noexcept { return o.is_valid() && PyArray_CheckExact(o.ptr()); }

// Runs no Python code; null, too, where that would take some.
nb::object peek(const Watch& w) noexcept {
  if (w.unchanged()) return w.value;
  if (w.kind == Watch::Kind::dict) return w.current();
  return w.kind == Watch::Kind::cell ? nb::borrow(PyCell_GET(w.container.ptr())) : nb::object();
}

// What a class holds under a name, if reading the attribute gives that or, for a static method, the
// function in it.
nb::object raw_attribute(const Watch& w) noexcept {
  if (!PyType_Check(w.container.ptr()) ||
      Py_TYPE(w.container.ptr())->tp_getattro != PyType_Type.tp_getattro ||
      _PyType_Lookup(Py_TYPE(w.container.ptr()), w.name.ptr()) != nullptr)
    return {};
  PyObject* const raw =
      _PyType_Lookup(reinterpret_cast<PyTypeObject*>(w.container.ptr()), w.name.ptr());
  const bool tells =
      raw != nullptr && (raw == w.value.ptr() || Py_IS_TYPE(raw, &PyStaticMethod_Type));
  return tells ? nb::borrow(raw) : nb::object();
}

}  // namespace

PyObject* Watch::look_up() const noexcept {
  PyObject* const found = PyDict_GetItemWithError(container.ptr(), name.ptr());
  if (found == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  Py_ssize_t at = 0, before = 0;
  PyObject *met = nullptr, *now = nullptr;
  for (; PyDict_Next(container.ptr(), &at, &met, &now); before = at)
    if (now == found && PyUnicode_CheckExact(met) && PyUnicode_Compare(met, name.ptr()) == 0) {
      position = before;
      key = nb::borrow(met);
      break;
    }
  return found;
}

nb::object Watch::current() const noexcept {
  if (kind == Kind::dict) return nb::borrow(look_up());
  if (kind == Kind::cell) return nb::borrow(PyCell_GET(container.ptr()));
  nb::object now = nb::steal(PyObject_GetAttr(container.ptr(), name.ptr()));
  if (!now.is_valid()) PyErr_Clear();
  return now;
}

bool renew(Captures& c, std::vector<nb::object>& replaced) {
  std::vector<std::pair<Watch*, nb::object>> changed;
  std::vector<std::pair<PyObject*, PyObject*>> arrays;  // before and now
  for (Watch& w : c.watches) {
    nb::object now = peek(w);
    const bool array = is_array(w.value);
    if (!now.is(w.value) && !(array && is_array(now)) && !equal_numbers(now.ptr(), w.value.ptr()))
      return false;
    if (array) arrays.emplace_back(w.value.ptr(), now.ptr());
    if (!now.is(w.value)) changed.emplace_back(&w, std::move(now));
  }
  // An array under two names is one argument.
  for (size_t i = 0; i < arrays.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if ((arrays[i].first == arrays[j].first) != (arrays[i].second == arrays[j].second))
        return false;
  for (auto& [watch, now] : changed) {
    std::swap(watch->value, now);
    replaced.push_back(std::move(now));
  }
  return true;
}

const Watch* first_change(const Captures& c) noexcept {
  for (const Watch& w : c.watches)
    if (!w.unchanged() && !w.current().is(w.value)) return &w;
  return nullptr;
}

std::unique_ptr<Captures> walk(const nb::object& roots) {
  PyObject* function = own_attribute("picokernel.captures", "captures");
  if (function == nullptr) throw ErrorSet{};
  const nb::object absent = nb::borrow(own_attribute("picokernel.captures", "absent"));
  const nb::object found = nb::steal(PyObject_CallOneArg(function, roots.ptr()));
  if (!found.is_valid()) throw ErrorSet{};
  auto captures = std::make_unique<Captures>();
  captures->roots = roots;
  captures->key = found[1];
  captures->arrays = nb::cast<std::vector<size_t>>(found[2]);
  captures->by_constants = nb::dict();
  for (const nb::handle item : nb::borrow<nb::list>(found[0])) {
    Watch w;
    w.container = item[0];
    w.kind = PyDict_Check(w.container.ptr())   ? Watch::Kind::dict
             : PyCell_Check(w.container.ptr()) ? Watch::Kind::cell
                                               : Watch::Kind::attribute;
    if (const nb::object name = item[1]; !name.is_none()) w.name = name;
    if (const nb::object value = item[2]; !value.is(absent)) w.value = value;
    w.shown = nb::cast<std::string>(item[3]);
    if (w.kind == Watch::Kind::attribute) w.raw = raw_attribute(w);
    if (w.kind != Watch::Kind::dict)
      captures->elsewhere.push_back(captures->watches.size());
    else if (std::ranges::find(captures->dicts, w.container.ptr(),
                               &std::pair<PyObject*, uint64_t>::first) == captures->dicts.end())
      captures->dicts.emplace_back(w.container.ptr(), 0);
    captures->watches.push_back(std::move(w));
  }
  return captures;
}

}  // namespace picokernel::python
