// What is fixed while tracing: constants among the arguments, and what the function captures.
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

// Equal numbers and texts in other objects are no change.
bool renew_equal(KernelState& k) noexcept {
  nb::object kept;
  for (Watch& w : k.watches) {
    PyObject* const now = w.current(kept);
    if (now == w.value) continue;
    if (!equal_numbers(now, w.value)) return false;
    Py_INCREF(now);
    Py_SETREF(w.value, now);
  }
  return true;
}

// Finds out what the function captures, again whenever something of that was bound to another
// object.
void walk_captures(KernelState& k) {
  PyObject* walk = own_attribute("picokernel.captures", "captures");
  if (walk == nullptr) throw ErrorSet{};
  const nb::object absent = nb::borrow(own_attribute("picokernel.captures", "absent"));
  const nb::object found = nb::steal(PyObject_CallOneArg(walk, k.roots));
  if (!found.is_valid()) throw ErrorSet{};
  std::vector<Watch> watches;
  for (const nb::handle item : nb::borrow<nb::list>(found[0])) {
    Watch w;
    w.container = nb::object(item[0]).release().ptr();
    nb::object name = item[1], value = item[2];
    w.kind = PyDict_Check(w.container)   ? Watch::Kind::dict
             : PyCell_Check(w.container) ? Watch::Kind::cell
                                         : Watch::Kind::attribute;
    w.name = name.is_none() ? nullptr : name.release().ptr();
    w.value = value.is(absent) ? nullptr : value.release().ptr();
    w.shown = nb::cast<std::string>(item[3]);
    watches.push_back(std::move(w));
  }
  std::swap(watches, k.watches);
  k.captured_arrays = nb::cast<std::vector<size_t>>(found[2]);
  Py_XSETREF(k.captured_key, nb::object(found[1]).release().ptr());
  k.recent = {};
  k.walked = true;
  for (const Watch& w : watches) {
    Py_XDECREF(w.container);
    Py_XDECREF(w.name);
    Py_XDECREF(w.value);
  }
}

// Functions among the arguments capture too.
void add_roots(KernelState& k, const nb::list& constants) {
  PyObject* functions_in = own_attribute("picokernel.captures", "functions_in");
  if (functions_in == nullptr) throw ErrorSet{};
  const nb::object functions = nb::steal(PyObject_CallOneArg(functions_in, constants.ptr()));
  if (!functions.is_valid()) throw ErrorSet{};
  for (const nb::handle function : functions) {
    bool known = false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(k.roots); ++i)
      known |= PyList_GET_ITEM(k.roots, i) == function.ptr();
    if (known) continue;
    if (PyList_Append(k.roots, function.ptr()) != 0) throw ErrorSet{};
    k.walked = false;
  }
}

}  // namespace

bool is_constant(const KernelState& k, size_t i, PyObject* value) {
  driver::Arg unused;
  return is_fixed_number(k.parameters[i], value) || read_argument(value, unused) == Read::constant;
}

FixedState& fixed_state(KernelState& k, const Bound& b) {
  nb::list constants, key;
  for (size_t i = 0; i < b.values.size(); ++i) {
    if (!is_constant(k, i, b.values[i])) continue;
    PyObject* freeze = own_attribute("picokernel.captures", "freeze");
    if (freeze == nullptr) throw ErrorSet{};
    constants.append(nb::borrow(b.values[i]));
    key.append(i);
    key.append(nb::borrow(freeze)(nb::borrow(b.values[i]), describe_argument(k, i)));
  }
  if (constants.size() != 0) add_roots(k, constants);
  nb::tuple whole;
  do {
    if (!k.walked || (!captures_unchanged(k) && !renew_equal(k))) walk_captures(k);
    whole = nb::make_tuple(nb::tuple(key), nb::borrow(k.captured_key));
    const nb::object index = nb::borrow(PyDict_GetItemWithError(k.keys, whole.ptr()));
    if (PyErr_Occurred()) throw ErrorSet{};
    // Comparing keys may run Python code, and so another thread that walks again.
    if (index.is_valid() && whole[1].ptr() == k.captured_key)
      return *k.fixed[nb::cast<size_t>(index)];
  } while (whole[1].ptr() != k.captured_key);
  auto state = std::make_unique<FixedState>();
  state->key = k.fixed.size();
  for (const size_t w : k.captured_arrays) state->hidden.push_back({.watch = w});
  if (PyDict_SetItem(k.keys, whole.ptr(), nb::int_(k.fixed.size()).ptr()) != 0) throw ErrorSet{};
  k.fixed.push_back(std::move(state));
  return *k.fixed.back();
}

}  // namespace picokernel::python
