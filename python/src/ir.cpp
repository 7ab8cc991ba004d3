// Modules as text, passes, and plans to look at.

#include "core.h"
#include "driver/backends.h"
#include "driver/compile.h"
#include "ir/text.h"
#include "passes/pass.h"
#include "plan_view.h"

namespace picokernel::python {

namespace {

nb::object text_or_bytes(const backend::Backend& backend, const std::string& code) {
  if (backend.binary) return nb::bytes(code.data(), code.size());
  return nb::cast(code);
}

// Object code is shown as assembly, what is interpreted as IR.
nb::object source_of(const PlanView& view) {
  if (view.backend->open != nullptr) return nb::cast(ir::print(view.plan->emitted()));
  return text_or_bytes(*view.backend, view.plan->artifact().code);
}

// (bytes read, bytes written, [(operation, type of its first operand, elements)]) of a launch.
nb::tuple work_of(const PlanView& view) {
  const auto [cost, symbols] = view.plan->cost();
  nb::list operations;
  for (const ir::Cost::Operation& o : cost.operations)
    operations.append(nb::make_tuple(ir::info(o.opcode).name, numpy_name(o.dtype),
                                     cost.sizes.eval(o.elements, symbols)));
  return nb::make_tuple(cost.sizes.eval(cost.bytes_read, symbols),
                        cost.sizes.eval(cost.bytes_written, symbols), operations);
}

}  // namespace

void bind_ir(nb::module_& m) {
  nb::class_<ir::Module>(m, "Module", "A function of the IR. str() gives its text.")
      .def_prop_ro("name", [](const ir::Module& x) { return x.name; })
      .def_prop_ro(
          "level",
          [](const ir::Module& x) { return x.level == ir::Level::kernel ? "kernel" : "graph"; })
      .def(
          "text",
          [](const ir::Module& x, bool locations, bool names) {
            return ir::print(x, {.locations = locations, .names = names});
          },
          nb::arg("locations") = false, nb::arg("names") = true)
      .def("__str__", [](const ir::Module& x) { return ir::print(x); });
  m.def(
      "parse", [](std::string_view text, const std::string& file) { return ir::parse(text, file); },
      nb::arg("text"), nb::arg("file") = "<string>",
      "The functions of a text. Raises CompileError with all that is wrong.");
  m.def(
      "run_pass",
      [](const ir::Module& x, std::string_view name) {
        const passes::Pass* pass = passes::find_pass(name);
        if (pass == nullptr) throw_launch_error("there is no pass '" + std::string(name) + "'");
        return driver::run_passes(x, {pass, 1}, {});
      },
      "The module after one pass.");
  m.def(
      "passes",
      [] {
        nb::dict all;
        for (const passes::Pass& p : passes::all_passes()) all[nb::cast(p.name)] = p.summary;
        return all;
      },
      "All passes by name, with what they do.");
  m.def(
      "emit",
      [](const ir::Module& x, std::string_view name) {
        const backend::Backend& backend = backend_to_look_at(name);
        const ir::Module lowered = driver::lower_for(backend, x);
        if (backend.open != nullptr) return nb::object(nb::cast(ir::print(lowered)));
        return text_or_bytes(backend, backend.emit(lowered).code);
      },
      "What a backend prints for a module: the text of source backends, IR for the others.");

  nb::class_<PlanView>(m, "Plan", "How one kind of call was compiled.")
      .def_prop_ro("graph", [](const PlanView& v) { return ir::print(v.plan->traced()); })
      .def_prop_ro("emitted", [](const PlanView& v) { return ir::print(v.plan->emitted()); })
      .def_prop_ro("backend", [](const PlanView& v) { return v.backend->name; })
      .def_prop_ro("source", &source_of)
      .def_prop_ro("work", &work_of);
}

}  // namespace picokernel::python
