// Planning with stand-ins, and the call of the printed function on the library's arrays.
#include "own_arrays.h"

#include <algorithm>

#include "automatic.h"
#include "driver/backends.h"
#include "driver/deferred.h"
#include "mlx_arrays.h"
#include "mlx_bridge.h"
#include "mlx_function.h"

namespace picokernel::python {

namespace {

// "float32" of mlx.core.float32.
std::string dtype_name_of(PyObject* array) {
  const nb::object dtype = nb::steal(PyObject_GetAttrString(array, "dtype"));
  const nb::object text = nb::steal(dtype.is_valid() ? PyObject_Str(dtype.ptr()) : nullptr);
  if (!text.is_valid()) throw ErrorSet{};
  const auto name = nb::cast<std::string>(text);
  const std::string last = name.substr(name.rfind('.') + 1);
  return last == "bool_" ? "bool" : last;
}

std::string supported_types() {
  std::string text;
  for (size_t i = 0; i < kDTypeCount; ++i)
    text += (i == 0 ? "" : ", ") + std::string(numpy_name(static_cast<DType>(i)));
  return text;
}

// The n-th of addresses that nobody reads: beyond all of processes, and an array's reach apart.
void* unread_address(size_t n) {
  return reinterpret_cast<void*>((uintptr_t{1} << 62) + (uintptr_t{n} << 48));
}

}  // namespace

const backend::Backend* own_arrays_backend(const backend::Backend* named) {
  // Where the data is decides: nothing is copied there, and results stay lazy.
  const bool free = named == nullptr || named == &automatic_backend;
  return (free ? backend_named("mlx") : *named).own_arrays;
}

StandIns::StandIns(const KernelState& k, const Bound& b) : bound_(b) {
  for (size_t i = 0; i < bound_.values.size(); ++i)
    if (is_mlx_array(bound_.values[i]))
      bound_.values[i] = stand_in(bound_.values[i], describe_argument(k, i));
  if (b.out == nullptr) return;
  if (is_mlx_array(b.out)) bound_.out = stand_in(b.out, "out of " + describe_kernel(k));
  if (!PyTuple_Check(b.out)) return;
  const Py_ssize_t n = PyTuple_GET_SIZE(b.out);
  const nb::object outs = nb::steal(PyTuple_New(n));
  if (!outs.is_valid()) throw ErrorSet{};
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* out = PyTuple_GET_ITEM(b.out, i);
    if (is_mlx_array(out))
      out = stand_in(out, "out[" + std::to_string(i) + "] of " + describe_kernel(k));
    Py_INCREF(out);
    PyTuple_SET_ITEM(outs.ptr(), i, out);
  }
  bound_.kept.push_back(outs);
  bound_.out = outs.ptr();
}

PyObject* StandIns::original(PyObject* object) const {
  for (const auto& [theirs, ours] : arrays_)
    if (ours.ptr() == object) return theirs;
  return object;
}

// Borrowed from `arrays_`.
PyObject* StandIns::stand_in(PyObject* array, const std::string& what) {
  for (const auto& [theirs, ours] : arrays_)
    if (theirs == array) return ours.ptr();
  const std::string name = dtype_name_of(array);
  const std::optional<DType> dtype = dtype_from_numpy(name);
  if (!dtype)
    throw_launch_error(what + " is an mlx.core.array of dtype " + name,
                       {"supported: " + supported_types(), "hint: x.astype(mx.float32)"});
  const nb::object shape = nb::steal(PyObject_GetAttrString(array, "shape"));
  if (!shape.is_valid() || !PyTuple_Check(shape.ptr())) throw ErrorSet{};
  const Py_ssize_t rank = PyTuple_GET_SIZE(shape.ptr());
  if (rank > NPY_MAXDIMS)
    throw_launch_error(what + " is an mlx.core.array of " + std::to_string(rank) + " dimensions",
                       {"at most " + std::to_string(NPY_MAXDIMS) + " can be read"});
  npy_intp dims[NPY_MAXDIMS];
  for (Py_ssize_t d = 0; d < rank; ++d) {
    dims[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape.ptr(), d));
    if (dims[d] == -1 && PyErr_Occurred() != nullptr) throw ErrorSet{};
  }
  PyObject* made =
      PyArray_New(&PyArray_Type, static_cast<int>(rank), dims, number_of_dtype(*dtype), nullptr,
                  unread_address(arrays_.size()), 0, NPY_ARRAY_CARRAY, nullptr);
  if (made == nullptr) throw ErrorSet{};
  arrays_.emplace_back(array, nb::steal(made));
  return made;
}

namespace {

// What the call gives back: results of its own, or arrays of out=, which are bound to them.
PyObject* handed_back(const Entry& entry, const Bound& b, const std::vector<nb::object>& values,
                      const std::vector<PyObject*>& originals) {
  std::vector<PyObject*> outs(values.size() + 1, nullptr);
  const bool many = b.out != nullptr && PyTuple_Check(b.out);
  for (size_t i = 0; i < values.size(); ++i) {
    PyObject* const out = many ? PyTuple_GET_ITEM(b.out, static_cast<Py_ssize_t>(i)) : b.out;
    const bool own = out == nullptr || out == Py_None;
    outs[i] = own ? values[i].ptr() : out;
    if (!own) put_back(out, values[i]);
  }
  return results(*entry.note, originals.data(), outs.data(), false);
}

// What backend="auto" chose for the call that comes now, and why.
void note_choice(const backend::Backend* named, const Entry& entry) {
  static const trace::NameId why = trace::intern("auto: mlx, for that is where the arrays are");
  if (named == &automatic_backend)
    trace::instant(trace::Category::call, why, 0, entry.trace_backend);
}

void refuse_complex128(const KernelState& k, std::span<const driver::Arg> outs) {
  for (const driver::Arg& out : outs)
    if (out.dtype == DType::c128)
      throw_launch_error("a result of " + describe_kernel(k) + " is complex128, which MLX lacks",
                         {"complex64 arrays are fine", "hint: z.astype(np.complex64)"});
}

struct Call {
  StandIns stand_ins;
  Planned planned;
  std::vector<PyObject*> originals;  // of the arguments
  std::vector<driver::Arg> outs;     // complete, at addresses that nobody reads

  Call(KernelObject* self, const Bound& b, const backend::Backend& backend,
       const backend::Backend& called)
      : stand_ins(*self->state, b),
        planned(plan_call(self, stand_ins.bound(), backend, true, &called)) {
    const Entry& entry = *planned.entry;
    remember(*self->state, planned.entry);
    for (PyObject* object : planned.objects) originals.push_back(stand_ins.original(object));
    outs = planned.outs;
    const std::span<const driver::OutputSpec> specs = entry.plan->outputs();
    for (size_t i = 0; i < outs.size(); ++i) {
      if (outs[i].data != nullptr) continue;
      outs[i] = {.dtype = specs[i].dtype,
                 .rank = static_cast<uint8_t>(specs[i].shape.size()),
                 .data = unread_address(planned.args.size() + i),
                 .shape = specs[i].shape.data(),
                 .strides = specs[i].strides.data()};
    }
    refuse_complex128(*self->state, outs);
    entry.plan->inputs_to_copy(planned.args, outs);  // its checks; MLX copies nothing
  }
};

// What the printed function of `entry` gives for these objects; those that it writes are bound
// anew.
std::vector<nb::object> run_printed(const Entry& entry, std::span<const driver::Arg> args,
                                    std::span<const driver::Arg> outs,
                                    const std::vector<PyObject*>& objects,
                                    const nb::object& function) {
  std::vector<PyObject*> given = objects;
  std::vector<nb::object> kept;
  for (size_t i = 0; i < given.size(); ++i) {
    if (args[i].dtype == DType::c128 && is_mlx_array(given[i])) continue;  // pairs already
    if (is_complex(args[i].dtype))
      kept.push_back(pairs_of(given[i], args[i].dtype));
    else if (PyArray_Check(given[i]))
      kept.push_back(copied_to_library(given[i]));
    else
      continue;
    given[i] = kept.back().ptr();
  }
  const nb::object tuple = nb::steal(run_source(entry, args, given.data(), nullptr, 0, function));
  if (!tuple.is_valid()) throw ErrorSet{};
  for (size_t i = 0; i < given.size(); ++i)
    if (entry.plan->written()[i] && given[i] != objects[i])
      put_back(objects[i], is_complex(args[i].dtype) ? complex_of_pairs(nb::borrow(given[i]))
                                                     : nb::borrow(given[i]));
  std::vector<nb::object> values;
  for (size_t i = 0; i < outs.size(); ++i) {
    values.push_back(nb::borrow(PyTuple_GET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i))));
    if (is_complex(outs[i].dtype)) values.back() = complex_of_pairs(values.back());
  }
  return values;
}

PyObject* call_printed(KernelObject* self, const Bound& b, const backend::Backend& backend) {
  static const trace::NameId fused = trace::intern("one kernel of MLX");
  const Call call(self, b, backend, backend);
  Entry& entry = *call.planned.entry;
  const bool split = trace::enabled() && trace::splitting();  // one operation after the other
  if (split) prepare_twin(entry);
  note_choice(named_backend_for(*self->state, b), entry);
  const trace::KernelSpan span(trace::Category::call, entry.span, entry.work, entry.trace_backend);
  const auto run_by = [&](const nb::object& function) {
    return run_printed(entry, call.planned.args, call.outs, call.originals, function);
  };
  std::vector<nb::object> values;
  if (split) {
    values = run_by({});
  } else {
    const trace::Span lazy(trace::Category::op_lazy, fused);
    values = run_by(function_on_mlx(entry, call.outs));
  }
  return handed_back(entry, b, values, call.originals);
}

// ---- Our native code in MLX's graph ----------------------------------------------------------

// At the n-th address that nobody reads, and those after it.
std::vector<driver::Arg> args_of(const std::vector<Layout>& layouts, size_t n = 0) {
  std::vector<driver::Arg> args;
  args.reserve(layouts.size());
  for (const Layout& layout : layouts) {
    args.push_back(layout.arg);
    args.back().data = unread_address(n++);
    args.back().shape = layout.shape.data();
    args.back().strides = layout.strides.data();
  }
  return args;
}

// What the printed form of a call needs, for its gradient and vmap.
struct Printable : Remains {
  Pin pin;  // of the entry; ends before `kernel`
  nb::object kernel;
  const Entry* entry = nullptr;
  std::vector<nb::object> numbers;  // in order

  Printable(KernelObject* self, const Entry& e)
      : pin(e.fixed->uses), kernel(nb::borrow(reinterpret_cast<PyObject*>(self))), entry(&e) {}
  ~Printable() override { pin = Pin(); }
  // Results, then what it writes.
  std::vector<nb::object> run(const graph::Bridge& bridge, const void* const* inputs,
                              std::span<const uint64_t> bits) const;
};

std::vector<nb::object> Printable::run(const graph::Bridge& bridge, const void* const* inputs,
                                       std::span<const uint64_t> bits) const {
  std::vector<driver::Arg> args = args_of(entry->layouts);
  const std::vector<driver::Arg> outs = args_of(entry->deferred_outs, args.size());
  std::vector<PyObject*> objects;
  std::vector<nb::object> kept;
  size_t number = 0;
  for (driver::Arg& arg : args) {
    if (arg.kind == driver::Arg::Kind::scalar) {
      arg.bits = bits[number];
      kept.push_back(numbers[number++]);
    } else {
      kept.push_back(new_mlx_array());
      bridge.rebind(array_in(kept.back().ptr()), *inputs++);
    }
    objects.push_back(kept.back().ptr());
  }
  KernelState& k = *reinterpret_cast<KernelObject*>(kernel.ptr())->state;
  const Entry& printed =
      entry_of_known_trace(k, *entry->fixed, entry->constants, *entry->backend, args, outs);
  std::vector<nb::object> values =
      run_printed(printed, args, outs, objects, printed.source->function);
  for (size_t i = 0; i < objects.size(); ++i)
    if (printed.plan->written()[i]) values.push_back(kept[i]);
  return values;
}

class PythonCall final : public driver::Deferred {
 public:
  PythonCall(const graph::Bridge& bridge, std::span<const driver::Arg> args,
             std::unique_ptr<Printable> printable)
      : Deferred(printable->entry->deferred, args),
        bridge_(bridge),
        printable_(std::move(printable)) {}
  ~PythonCall() override { bury(std::move(printable_)); }

  const char* replay(const void* const* inputs, void* const* outputs) noexcept override {
    const nb::gil_scoped_acquire locked;
    thread_local std::string reason;
    try {
      const std::vector<nb::object> values = printable_->run(bridge_, inputs, numbers_);
      for (size_t i = 0; i < values.size(); ++i)
        bridge_.rebind(outputs[i], array_in(values[i].ptr()));
      return nullptr;
    } catch (const ErrorSet&) {
      const nb::python_error error;
      reason = nb::cast<std::string>(nb::str(error.value()));
    } catch (const std::exception& e) {
      reason = e.what();
    }
    return reason.c_str();
  }

 private:
  const graph::Bridge& bridge_;
  std::unique_ptr<Printable> printable_;
};

// New arrays: the results, then what is written. `objects`: the arguments, those of MLX's that are
// arrays.
std::vector<nb::object> enqueued(KernelObject* self, const Entry& entry,
                                 const graph::Bridge& bridge, std::span<const driver::Arg> args,
                                 PyObject* const* objects) {
  static const trace::NameId enqueue = trace::intern("enqueue native code");
  const trace::Span lazy(trace::Category::op_lazy, enqueue);
  auto printable = std::make_unique<Printable>(self, entry);
  std::vector<const void*> inputs;
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].kind == driver::Arg::Kind::array)
      inputs.push_back(array_in(objects[i]));
    else
      printable->numbers.push_back(nb::borrow(objects[i]));
  std::vector<nb::object> values;
  std::vector<void*> outputs;
  for (size_t i = 0; i < entry.deferred->outputs.size(); ++i) {
    values.push_back(new_mlx_array());
    outputs.push_back(array_in(values.back().ptr()));
  }
  auto* const call = new PythonCall(bridge, args, std::move(printable));
  if (const char* reason = bridge.enqueue(call, inputs.data(), inputs.size(), outputs.data()))
    throw_launch_error(describe_kernel(*self->state) + ": " + reason);
  return values;
}

PyObject* call_deferred(KernelObject* self, const Bound& b, const backend::Backend& cpu,
                        const backend::Backend& called, const graph::Bridge& bridge) {
  const Call call(self, b, cpu, called);
  const std::vector<driver::Arg>& args = call.planned.args;
  Entry& entry = *call.planned.entry;
  note_choice(named_backend_for(*self->state, b), entry);
  const trace::KernelSpan span(trace::Category::call, entry.span, entry.work, entry.trace_backend);
  if (entry.deferred == nullptr) {
    entry.deferred_outs = layouts_of(call.outs);
    entry.deferred =
        std::make_shared<driver::DeferredPlans>(*entry.plan, self->state->name, args, call.outs);
  }
  std::vector<PyObject*> given = call.originals;
  std::vector<nb::object> kept;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].kind == driver::Arg::Kind::scalar || is_mlx_array(given[i])) continue;
    kept.push_back(args[i].dtype == DType::c128 ? pairs_of(given[i], DType::c128)
                                                : copied_to_library(given[i]));
    given[i] = kept.back().ptr();
  }
  std::vector<nb::object> values = enqueued(self, entry, bridge, args, given.data());
  size_t next = call.outs.size();
  for (size_t i = 0; i < args.size(); ++i) {
    if (!entry.plan->written()[i]) continue;
    PyObject* const original = call.originals[i];
    const nb::object& value = values[next++];
    if (is_mlx_array(original))
      bridge.rebind(array_in(original), array_in(value.ptr()));
    else
      put_back(original, value);
  }
  values.resize(call.outs.size());
  return handed_back(entry, b, values, call.originals);
}

// The argument is of the kind of that call's.
bool like(const graph::Bridge& bridge, PyObject* object, const Layout& layout, driver::Arg& arg) {
  if (layout.arg.kind == driver::Arg::Kind::scalar) {
    arg.kind = driver::Arg::Kind::array;
    return read_argument(object, arg) == Read::done && arg.kind == layout.arg.kind &&
           arg.dtype == layout.arg.dtype && arg.weak == layout.arg.weak;
  }
  graph::ArrayDescription d;
  return is_mlx_array(object) && bridge.describe(array_in(object), &d) &&
         d.dtype == layout.arg.dtype &&
         std::equal(d.shape, d.shape + d.rank, layout.shape.begin(), layout.shape.end());
}

}  // namespace

PyObject* call_like_before_on_own_arrays(KernelObject* self, PyObject* const* args, size_t count) {
  KernelState& k = *self->state;
  const graph::Bridge* const bridge = known_mlx_bridge();
  if (bridge == nullptr || count != k.parameters.size() || k.front() == nullptr) return nullptr;
  if (trace::enabled() && trace::splitting()) return nullptr;
  if (std::none_of(args, args + count, is_mlx_array) || !k.front()->unchanged()) return nullptr;
  const backend::Backend* const named = named_backend_of(k);
  if (own_arrays_backend(named) == nullptr || !bridge->on_cpu()) return nullptr;
  for (size_t i = 0; i < count; ++i)
    if (is_fixed_number(k.parameters[i], args[i])) return nullptr;
  for (const Entry* entry : k.front()->recent) {
    if (entry == nullptr) return nullptr;
    if (entry->deferred == nullptr || entry->layouts.size() != count ||
        entry->note->kind != Note::Kind::value ||
        entry->deferred->outputs.size() != entry->deferred_outs.size())  // it writes
      continue;
    std::vector<driver::Arg> given = args_of(entry->layouts);
    size_t alike = 0;
    while (alike < count && like(*bridge, args[alike], entry->layouts[alike], given[alike]))
      ++alike;
    if (alike != count) continue;
    entry->plan->inputs_to_copy(given, args_of(entry->deferred_outs, count));  // its checks
    note_choice(named, *entry);
    const trace::KernelSpan span(trace::Category::call, entry->span, entry->work,
                                 entry->trace_backend);
    return enqueued(self, *entry, *bridge, given, args).front().release().ptr();
  }
  return nullptr;
}

PyObject* call_on_own_arrays(KernelObject* self, const Bound& b, const backend::Backend& backend) {
  const backend::Backend* const cpu = driver::find_backend("cpu");
  const bool split = trace::enabled() && trace::splitting();
  const bool native = cpu != nullptr && why_not_live(*cpu).empty() && !split && on_mlx_cpu();
  if (const graph::Bridge* const bridge = native ? mlx_bridge() : nullptr)
    return call_deferred(self, b, *cpu, backend, *bridge);
  return call_printed(self, b, backend);
}

}  // namespace picokernel::python
