// What is fixed while tracing: constants among the arguments, and what the function captures.
#include <algorithm>

#include "planning.h"

namespace picokernel::python {

namespace {

// What a kernel keeps. More than these many different constants and captures, or kinds of call, and
// those that were not used for longest are forgotten, with their traces and plans.
constexpr size_t kMaxStates = 256;
constexpr size_t kMaxEntries = 1024;

// The kernel, and the functions among its constants, which capture too.
nb::list roots_of(KernelObject* self, const nb::list& constants) {
  nb::list roots;
  roots.append(nb::borrow(reinterpret_cast<PyObject*>(self)));
  if (constants.size() == 0) return roots;
  PyObject* functions_in = own_attribute("picokernel.captures", "functions_in");
  if (functions_in == nullptr) throw ErrorSet{};
  const nb::object functions = nb::steal(PyObject_CallOneArg(functions_in, constants.ptr()));
  if (!functions.is_valid()) throw ErrorSet{};
  for (const nb::handle function : functions) roots.append(function);
  return roots;
}

bool same_objects(const nb::object& a, const nb::object& b) noexcept {
  const Py_ssize_t n = PyList_GET_SIZE(a.ptr());
  if (n != PyList_GET_SIZE(b.ptr())) return false;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (PyList_GET_ITEM(a.ptr(), i) != PyList_GET_ITEM(b.ptr(), i)) return false;
  return true;
}

// The number under a key, which becomes `fresh` if there is none. May run Python code.
uint64_t number_of(const nb::object& dict, const nb::object& key, uint64_t fresh) {
  PyObject* number = PyDict_SetDefault(dict.ptr(), key.ptr(), nb::int_(fresh).ptr());
  if (number == nullptr) throw ErrorSet{};
  return nb::cast<uint64_t>(nb::handle(number));
}

// What the function captures now. `replaced`: see renew.
Captures& captures_now(KernelState& k, const nb::list& roots, std::vector<nb::object>& replaced,
                       Pin& pin) {
  const auto pinned = [&](Captures& c) -> Captures& {
    pin = Pin(c.uses);
    return c;
  };
  for (const auto& c : k.captures)
    if (same_objects(c->roots, roots) && c->unchanged()) return pinned(*c);
  for (const auto& c : k.captures)
    if (same_objects(c->roots, roots) && renew(*c, replaced)) return pinned(*c);
  std::unique_ptr<Captures> fresh = walk(roots);
  fresh->number = number_of(k.by_key, fresh->key, ++k.last_number);
  for (const auto& c : k.captures) {
    if (c->number != fresh->number) continue;
    std::swap(c->watches, fresh->watches);
    std::swap(c->dicts, fresh->dicts);
    return pinned(*c);
  }
  return pinned(*k.captures.emplace_back(std::move(fresh)));
}

// Forgets what was not used for longest while there is too much.
void make_room(KernelState& k) {
  if (k.state_count <= kMaxStates && k.entry_count <= kMaxEntries) return;
  // The calls that hit it at once do not say so.
  if (const Entry* latest = k.front()->recent[0]) latest->fixed->last_use = ++k.clock;
  // First out of reach, with no Python code in between; then dropped, which may run some.
  std::vector<std::pair<nb::object, nb::object>> listed;  // a dict and a key in it
  std::vector<std::unique_ptr<FixedState>> states;
  std::vector<std::unique_ptr<Captures>> captures;
  std::vector<uint64_t> keys;
  while (k.state_count > kMaxStates || k.entry_count > kMaxEntries) {
    FixedState* oldest = nullptr;
    uint64_t number = 0;
    for (const auto& c : k.captures)
      for (const auto& [n, state] : c->states)
        if (c->uses == 0 && state->uses == 0 &&
            (oldest == nullptr || state->last_use < oldest->last_use)) {
          oldest = state.get();
          number = n;
        }
    if (oldest == nullptr) break;
    Captures& c = *oldest->captures;
    const auto gone = std::remove_if(c.recent.begin(), c.recent.end(), [&](const Entry* e) {
      return e != nullptr && e->fixed == oldest;
    });
    std::fill(gone, c.recent.end(), nullptr);
    --k.state_count;
    k.entry_count -= oldest->entries.size();
    keys.push_back(oldest->key);
    if (oldest->constants.is_valid()) listed.emplace_back(c.by_constants, oldest->constants);
    states.push_back(std::move(c.states.at(number)));
    c.states.erase(number);
    if (!c.states.empty()) continue;
    listed.emplace_back(k.by_key, c.key);
    const auto place = std::ranges::find(k.captures, &c, &std::unique_ptr<Captures>::get);
    captures.push_back(std::move(*place));
    k.captures.erase(place);
  }
  for (const auto& [dict, key] : listed)
    if (PyDict_DelItem(dict.ptr(), key.ptr()) != 0) PyErr_Clear();
  states.clear();  // opened sources, before the plans that they are known by
  captures.clear();
  // Traces of other threads may hold the driver's lock and wait for the interpreter's.
  const nb::gil_scoped_release unlocked;
  k.kernel->forget(keys);
}

}  // namespace

bool is_constant(const KernelState& k, size_t i, PyObject* value) {
  driver::Arg unused;
  return is_fixed_number(k.parameters[i], value) || read_argument(value, unused) == Read::constant;
}

FixedState& fixed_state(KernelObject* self, const Bound& b, Pin& pin) {
  KernelState& k = *self->state;
  make_room(k);
  nb::list constants, key;
  for (size_t i = 0; i < b.values.size(); ++i) {
    if (!is_constant(k, i, b.values[i])) continue;
    PyObject* freeze = own_attribute("picokernel.captures", "freeze");
    if (freeze == nullptr) throw ErrorSet{};
    constants.append(nb::borrow(b.values[i]));
    key.append(i);
    key.append(nb::borrow(freeze)(nb::borrow(b.values[i]), describe_argument(k, i)));
  }
  const nb::list roots = roots_of(self, constants);
  std::vector<nb::object> replaced;
  Captures& captures = captures_now(k, roots, replaced, pin);
  uint64_t number = 0;
  nb::object frozen;
  if (key.size() != 0) {
    frozen = nb::tuple(key);
    number = number_of(captures.by_constants, frozen, ++k.last_number);
  }
  std::unique_ptr<FixedState>& state = captures.states[number];
  if (state == nullptr) {
    state = std::make_unique<FixedState>();
    state->captures = &captures;
    state->key = ++k.last_number;
    state->constants = frozen;
    for (const size_t w : captures.arrays) state->hidden.push_back({.watch = w, .constant = {}});
    ++k.state_count;
  }
  state->last_use = ++k.clock;
  pin = Pin(state->uses);
  return *state;
}

}  // namespace picokernel::python
