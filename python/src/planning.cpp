// Traces, plans and the entries that calls find.
#include "planning.h"

#include <algorithm>

#include "frontend/tracer.h"
#include "support/check.h"

namespace picokernel::python {

PyObject* retrace_signal = nullptr;

TraceContext& trace_in_progress() {
  thread_local TraceContext context;
  return context;
}

namespace {

// What one planning hands to the trace and back.
struct Planning {
  KernelObject* self;
  const Bound& bound;
  FixedState& fixed;
  const std::vector<PyObject*>& hidden_objects;
  bool outs_given;
  std::string& changed;  // a captured name that was bound to another object during the trace
};

void check_outs(const KernelState& k, const Note& note) {
  if (note.hands_back_argument)
    throw_launch_error(
        describe_kernel(k) + " returns one of its arguments itself, so out= is not possible",
        {"hint: pass the array as that argument"});
}

class TraceScope {
 public:
  TraceScope(KernelState& k, FixedState& fixed) : outer_(trace_in_progress()) {
    trace_in_progress() = {&k, &fixed};
    ++trace_depth;
    special.fetch_add(1, std::memory_order_relaxed);
  }
  ~TraceScope() {
    special.fetch_sub(1, std::memory_order_relaxed);
    --trace_depth;
    trace_in_progress() = outer_;
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  TraceContext outer_;
};

// Something else was captured while the function was traced, by another thread or by itself: it is
// traced again, without the arrays that it seems to have made.
bool captures_changed(const Planning& p, size_t hidden_before) {
  const Watch* w = first_change(*p.fixed.captures);
  if (w == nullptr) return false;
  p.fixed.hidden.resize(hidden_before);
  p.changed = w->shown;
  PyErr_SetNone(retrace_signal);
  return true;
}

// Runs the Python function on traced arrays, with the interpreter lock held. Python's errors leave
// as ErrorSet.
driver::Traced trace_function(const Planning& p, std::span<const frontend::ArgSpec> specs) {
  KernelState& k = *p.self->state;
  const TraceScope scope(k, p.fixed);
  const size_t hidden_before = p.fixed.hidden.size();
  try {
    auto* tracer = new frontend::Tracer(k.name, specs, k.place, k.floats);
    const nb::object tracer_object = nb::cast(tracer, nb::rv_policy::take_ownership);
    nb::list values, hidden;
    size_t n = 0;
    for (size_t i = 0; i < p.bound.values.size(); ++i) {
      if (is_constant(k, i, p.bound.values[i]))
        values.append(nb::borrow(p.bound.values[i]));
      else
        values.append(tracer->argument(n++));
    }
    for (size_t i = 0; i < p.hidden_objects.size(); ++i)
      hidden.append(nb::make_tuple(nb::borrow(p.hidden_objects[i]), tracer->argument(n++),
                                   p.fixed.hidden[i].constant.is_valid()));
    const nb::object result = nb::borrow(reinterpret_cast<PyObject*>(p.self))
                                  .attr("_trace")(tracer_object, values, hidden);
    auto note = std::make_shared<Note>();
    note->kind = static_cast<Note::Kind>(nb::cast<int>(result[1]));
    note->slots = nb::cast<std::vector<int>>(result[2]);
    note->hands_back_argument =
        std::any_of(note->slots.begin(), note->slots.end(), [](int s) { return s < 0; });
    if (captures_changed(p, hidden_before)) throw ErrorSet{};
    if (p.outs_given) check_outs(k, *note);
    return {.graph = std::move(nb::cast<ir::Module&>(result[0])), .note = note};
  } catch (nb::python_error& e) {
    if (!e.matches(retrace_signal) || !captures_changed(p, hidden_before)) e.restore();
    throw ErrorSet{};
  }
}

Entry& entry_for(KernelState& k, const driver::Plan& plan, const backend::Backend& backend,
                 FixedState& fixed, std::vector<nb::object> constants,
                 std::span<const driver::Arg> args) {
  if (const auto known = fixed.entries.find({&plan, &backend}); known != fixed.entries.end()) {
    // Equal constants may be other objects now; calls compare pointers.
    std::swap(known->second->constants, constants);
    return *known->second;
  }
  auto entry = std::make_unique<Entry>();
  entry->plan = &plan;
  entry->backend = &backend;
  entry->fixed = &fixed;
  entry->note = static_cast<const Note*>(plan.note());
  // Below some microseconds of work, handing the lock over costs more than it gives.
  constexpr int64_t kLongBytes = int64_t{512} << 10;
  entry->release_lock = plan.bytes() >= kLongBytes;
  entry->layouts = layouts_of(args);
  for (const driver::Arg& a : args) {
    uint64_t n = 1;
    for (size_t d = 0; d < a.rank; ++d) n *= static_cast<uint64_t>(a.shape[d]);
    entry->work.arg = std::max(entry->work.arg, n);
  }
  entry->span = trace::intern(k.name);
  entry->work.location = trace::intern(to_string(k.place));
  entry->trace_backend = trace::intern_backend(backend.name);
  for (size_t i = 0; i < args.size(); ++i)
    if (backend.name == "mlx" && std::any_of(args[i].strides, args[i].strides + args[i].rank,
                                             [](int64_t s) { return s < 0; }))
      entry->reversed.push_back(i);
  if (prints_source(plan.backend())) entry->source = open_source(k, *entry);
  entry->writes_out_only = entry->note->kind == Note::Kind::value &&
                           !entry->note->hands_back_argument && entry->source == nullptr &&
                           !entry->release_lock;
  entry->constants = std::move(constants);
  // Opening source runs Python code, and so other threads.
  const auto [known, added] = fixed.entries.emplace(std::pair(&plan, &backend), std::move(entry));
  k.entry_count += added;
  return *known->second;
}

void read_outs(const KernelState& k, const Bound& b, Planned& p) {
  if (b.out == nullptr) return;
  const bool many = PyTuple_Check(b.out);
  const Py_ssize_t n = many ? PyTuple_GET_SIZE(b.out) : 1;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* const out = many ? PyTuple_GET_ITEM(b.out, i) : b.out;
    driver::Arg arg{.name = "out"};
    if (out == Py_None) {
      p.outs.push_back(arg);
      p.out_objects.push_back(nullptr);
      continue;
    }
    PyObject* plain = out;
    if (read_array(out, arg) != Read::done) {
      const std::string what = many ? "out[" + std::to_string(i) + "]" : "out";
      if (!PyArray_Check(out))
        throw_launch_error(what + " of " + describe_kernel(k) + " is a " + Py_TYPE(out)->tp_name,
                           {"out= takes a NumPy array, or a tuple of arrays and None"});
      plain = plain_argument(out, what + " of " + describe_kernel(k), true);
      if (plain == nullptr) throw ErrorSet{};
      p.kept.push_back(nb::steal(plain));
      read_array(plain, arg);
    }
    p.outs.push_back(arg);
    p.out_objects.push_back(plain);
  }
}

}  // namespace

std::vector<Layout> layouts_of(std::span<const driver::Arg> args) {
  std::vector<Layout> layouts;
  for (const driver::Arg& a : args) {
    Layout layout{.arg = a,
                  .shape = std::vector<int64_t>(a.shape, a.shape + a.rank),
                  .strides = std::vector<int64_t>(a.strides, a.strides + a.rank)};
    layout.arg.data = nullptr;
    layout.arg.name = nullptr;
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

Planned plan_call(KernelObject* self, const Bound& b, const backend::Backend& backend, bool to_run,
                  const backend::Backend* called) {
  KernelState& k = *self->state;
  constexpr int kMaxTraces = 16;  // each trace that starts again has fixed or added an argument
  std::string changed;
  for (int attempt = 0;; ++attempt) {
    Planned p;
    FixedState& fixed = fixed_state(self, b, p.pin);
    std::vector<nb::object> constants;
    for (size_t i = 0; i < b.values.size(); ++i) {
      PyObject* value = b.values[i];
      if (is_constant(k, i, value)) {
        constants.resize(b.values.size());
        constants[i] = nb::borrow(value);
        continue;
      }
      driver::Arg arg;
      if (read_argument(value, arg) != Read::done) {
        value = plain_argument(value, describe_argument(k, i), true);
        if (value == nullptr) throw ErrorSet{};
        p.kept.push_back(nb::steal(value));
        if (read_argument(value, arg) != Read::done)
          PK_UNREACHABLE("a plain argument is difficult");
      }
      arg.name = utf8(k.parameters[i].name.ptr());
      p.args.push_back(arg);
      p.objects.push_back(value);
    }
    const size_t own = p.objects.size();
    for (const Hidden& h : fixed.hidden) {
      PyObject* value = fixed.object(h);
      const std::string name =
          h.constant.is_valid() ? "constant" : fixed.captures->watches[h.watch].shown;
      const std::string what = h.constant.is_valid() ? "an array made in " + describe_kernel(k)
                                                     : "the captured array '" + name + "'";
      driver::Arg arg;
      if (value == nullptr || read_array(value, arg) != Read::done) {
        value = plain_argument(value, what, false);
        if (value == nullptr) throw ErrorSet{};
        p.kept.push_back(nb::steal(value));
        read_array(value, arg);
      } else {
        p.kept.push_back(nb::borrow(value));
      }
      arg.name = p.names.emplace_back(name).c_str();
      p.args.push_back(arg);
      p.objects.push_back(value);
    }
    read_outs(k, b, p);

    const std::vector<PyObject*> hidden(p.objects.begin() + static_cast<ptrdiff_t>(own),
                                        p.objects.end());
    const Planning planning{self, b, fixed, hidden, b.out != nullptr, changed};
    const auto plan_with = [&](std::span<const driver::Arg> outs) -> const driver::Plan& {
      // Traces of other threads may hold the driver's lock and wait for the interpreter's.
      const nb::gil_scoped_release unlocked;
      return k.kernel->plan(p.args, outs, backend, fixed.key,
                            [&](std::span<const frontend::ArgSpec> specs) {
                              const nb::gil_scoped_acquire locked;
                              return trace_function(planning, specs);
                            });
    };
    const driver::Plan* plan = nullptr;
    try {
      const auto missing = [](const PyObject* out) { return out == nullptr; };
      if (std::any_of(p.out_objects.begin(), p.out_objects.end(), missing)) {
        const std::span<const driver::OutputSpec> specs = plan_with({}).outputs();
        for (size_t i = 0; i < std::min(specs.size(), p.out_objects.size()); ++i) {
          if (p.out_objects[i] != nullptr) continue;
          p.out_objects[i] = new_output(specs[i]);
          if (p.out_objects[i] == nullptr) throw ErrorSet{};
          p.kept.push_back(nb::steal(p.out_objects[i]));
          read_array(p.out_objects[i], p.outs[i]);
        }
      }
      plan = &plan_with(p.outs);
    } catch (const ErrorSet&) {
      if (!PyErr_ExceptionMatches(retrace_signal)) throw;
      PyErr_Clear();
      if (attempt != kMaxTraces) continue;
      if (!changed.empty())
        throw CompileError(Diagnostic{
            .location = k.place,
            .message = "'" + changed + "' changes each time that kernel `" + k.name + "` is traced",
            .notes = {"kernels read globals, they do not assign them: the function runs only when "
                      "the kernel is compiled"}});
      throw CompileError(Diagnostic{
          .location = k.place,
          .message = "kernel `" + k.name + "` meets another array each time that it is traced",
          .notes = {"an array that the function makes is a constant and has to be the same in each "
                    "trace",
                    "hint: pass it as an argument"}});
    }
    p.plan = plan;
    if (!to_run) return p;
    p.entry = &entry_for(k, *plan, called != nullptr ? *called : backend, fixed,
                         std::move(constants), p.args);
    if (b.out != nullptr) check_outs(k, *p.entry->note);
    p.outs.resize(plan->outputs().size());
    p.out_objects.resize(plan->outputs().size() + 1, nullptr);  // never empty
    for (size_t i = 0; i < p.objects.size(); ++i)
      if (!plan->written()[i] && PyArray_Check(p.objects[i]))
        PyArray_DiscardWritebackIfCopy(reinterpret_cast<PyArrayObject*>(p.objects[i]));
    return p;
  }
}

Entry& entry_of_known_trace(KernelState& k, FixedState& fixed, std::vector<nb::object> constants,
                            const backend::Backend& backend, std::span<const driver::Arg> args,
                            std::span<const driver::Arg> outs) {
  const auto plan = [&]() -> const driver::Plan& {
    const nb::gil_scoped_release unlocked;
    return k.kernel->plan(args, outs, backend, fixed.key,
                          [](std::span<const frontend::ArgSpec>) -> driver::Traced {
                            throw LaunchError("this kind of call has not been traced");
                          });
  };
  return entry_for(k, plan(), backend, fixed, std::move(constants), args);
}

}  // namespace picokernel::python
