// Printed Python source as a function, and its instrumented twin: the same text with a stamp
// between the operations, made at the first call that somebody records.

#include "ir/text.h"
#include "kernel_object.h"
#include "mlx_lending.h"
#include "runtime/fp_control.h"
#include "support/check.h"

namespace picokernel::python {

namespace {

PyObject* stamp(PyObject*, PyObject*) noexcept {
  if (trace::Stamps* const run = trace::Stamps::current()) run->stamp();
  Py_RETURN_NONE;
}

PyMethodDef stamp_definition = {"_s", stamp, METH_NOARGS, nullptr};

enum class Form { plain, stamped, split };

nb::object open_text(const Entry& entry, Form form) {
  PyObject* opened = own_attribute("picokernel.sources", "opened");
  if (opened == nullptr) throw ErrorSet{};
  const backend::Artifact& artifact = entry.plan->artifact();
  const runtime::FpControlScope fp_control;  // Python reads the source's constants
  nb::object result;
  try {
    if (form == Form::plain) {
      result = nb::borrow(opened)(artifact.code, artifact.entry, entry.backend->name);
    } else {
      nb::list lines, lazy;
      for (const backend::PrintedOp& op : artifact.operations) {
        lines.append(op.line);
        if (form == Form::split && op.category == "op_lazy") lazy.append(op.line);
      }
      const nb::object stamps = nb::steal(PyCFunction_New(&stamp_definition, nullptr));
      result = nb::borrow(opened)(artifact.code, artifact.entry, entry.backend->name, stamps, lines,
                                  lazy);
    }
  } catch (nb::python_error& e) {
    e.restore();
    throw ErrorSet{};
  }
  return result;
}

// NumPy has no error function: its source imports SciPy's. Whoever lacks it learns which line asks
// for it.
void require_imports(const Entry& entry) {
  const backend::Artifact& artifact = entry.plan->artifact();
  if (!artifact.code.starts_with("import scipy.special")) return;
  try {
    nb::module_::import_("scipy.special");
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_ImportError)) throw;
    const ir::Module& m = entry.plan->emitted();
    Diagnostic refused{.message = "backend " + std::string(entry.backend->name) +
                                  " computes erf and erfc by SciPy, which cannot be imported",
                       .notes = {e.what(), "hint: pip install scipy, or use backend=\"cpu\""}};
    ir::walk(m, [&](ir::OpId id) {
      const ir::Op& op = m.ops[id];
      if (op.opcode == ir::Opcode::erf || op.opcode == ir::Opcode::erfc)
        if (!refused.location.known()) refused.location = m.location(op);
    });
    throw CompileError(std::move(refused));
  }
}

trace::Category category_named(std::string_view name) {
  for (size_t i = 0; i < trace::kCategoryCount; ++i)
    if (trace::category_name(static_cast<trace::Category>(i)) == name)
      return static_cast<trace::Category>(i);
  PK_UNREACHABLE("a printed operation of category ", name);
}

// The values of the size symbols, from the arguments' shapes.
std::vector<int64_t> symbols_of(const ir::Module& m, const std::vector<Layout>& layouts) {
  std::vector<int64_t> symbols(m.sizes.symbol_count(), 0);
  for (size_t i = 0; i < std::min(layouts.size(), m.params().size()); ++i) {
    const std::vector<SizeId>& shape = m.type(m.params()[i]).shape;
    for (size_t d = 0; d < std::min(shape.size(), layouts[i].shape.size()); ++d)
      if (const SizeNode& n = m.sizes[shape[d]]; n.kind == SizeKind::symbol)
        symbols[static_cast<size_t>(n.constant)] = layouts[i].shape[d];
  }
  return symbols;
}

int64_t elements_of(const ir::Module& m, ir::ValueId v, std::span<const int64_t> symbols) {
  int64_t n = 1;
  for (const SizeId size : m.type(v).shape) n *= m.sizes.eval(size, symbols);
  return n;
}

// Arrays read and written by one operation; a copy to or from a device moves its array once.
int64_t bytes_of(const ir::Module& m, const ir::Op& op, trace::Category category,
                 std::span<const int64_t> symbols) {
  const auto size = [&](ir::ValueId v) {
    if (m.type(v).is_scalar()) return int64_t{0};
    return elements_of(m, v, symbols) * static_cast<int64_t>(size_of(m.type(v).dtype));
  };
  if (category == trace::Category::h2d || category == trace::Category::d2h)
    return size(op.operands.at(0));
  int64_t bytes = 0;
  for (const ir::ValueId v : op.operands) bytes += size(v);
  for (const ir::ValueId v : op.results) bytes += size(v);
  return bytes;
}

// The array is not copied at all.
bool is_lent(const Entry& entry, const ir::Module& m, ir::ValueId parameter) {
  const auto& params = m.params();
  const auto at = std::find(params.begin(), params.end(), parameter);
  const auto i = static_cast<size_t>(at - params.begin());
  return i < entry.layouts.size() && lends_to_mlx(entry, i);
}

// The user's line: of an allocation that of the operation behind it, which wants it; of a copy of a
// result that of its value, where that has one.
Location place_of(const ir::Module& m, std::span<const backend::PrintedOp> from) {
  if (!from[0].op.valid()) return {};
  const ir::Op& op = m.ops[from[0].op];
  if (m.location(op).known()) return m.location(op);
  if (op.opcode == ir::Opcode::scratch && from.size() > 1) return place_of(m, from.subspan(1));
  const ir::Op* value = op.opcode == ir::Opcode::write ? m.def(op.operands[1]) : nullptr;
  return value != nullptr ? m.location(*value) : Location{};
}

trace::TableId table_for(const Entry& entry, bool split) {
  const backend::Artifact& artifact = entry.plan->artifact();
  const ir::Module& m = entry.plan->emitted();
  const std::vector<int64_t> symbols = symbols_of(m, entry.layouts);
  auto& tables = entry.source->tables;
  if (const auto known = tables.find({split, symbols}); known != tables.end()) return known->second;
  std::vector<std::string> lines;
  for (size_t at = 0; at < artifact.code.size();) {
    const size_t end = std::min(artifact.code.find('\n', at), artifact.code.size());
    lines.push_back(artifact.code.substr(at, end - at));
    at = end + 1;
  }
  std::vector<trace::OpInfo> ops;
  Location last_place;  // a result that is copied as it is comes from there
  for (size_t i = 0; i < artifact.operations.size(); ++i) {
    const backend::PrintedOp& printed = artifact.operations[i];
    std::string text = lines.at(printed.line - 1);
    text.erase(0, text.find_first_not_of(' '));
    const bool evaluated = split && printed.category == "op_lazy";
    trace::OpInfo info{.category = category_named(evaluated ? "op" : printed.category),
                       .name = trace::intern(text),
                       .printed_line = printed.line,
                       .printed_text = text};
    if (printed.op.valid()) {
      const ir::Op& op = m.ops[printed.op];
      info.ir_op = ir::print_op(m, printed.op);
      const Location place = place_of(m, std::span(artifact.operations).subspan(i));
      if (place.known()) last_place = place;
      info.user_location = to_string(last_place);
      if (info.category != trace::Category::h2d || !is_lent(entry, m, op.operands.at(0)))
        info.bytes = bytes_of(m, op, info.category, symbols);
      if (ir::info(op.opcode).elementwise() && !op.results.empty())
        info.operations = elements_of(m, op.results[0], symbols);
    }
    ops.push_back(std::move(info));
  }
  return tables[{split, symbols}] = trace::register_ops(std::move(ops), entry.backend->name);
}

}  // namespace

std::shared_ptr<SourceKernel> open_source(KernelState& k, const Entry& entry) {
  std::weak_ptr<SourceKernel>& known = k.sources[&entry.plan->artifact()];
  if (std::shared_ptr<SourceKernel> source = known.lock()) return source;
  static const trace::NameId name = trace::intern("open source");
  const trace::Span span(trace::Category::compile, name);
  require_imports(entry);
  auto made = std::make_shared<SourceKernel>();
  made->function = open_text(entry, Form::plain);
  if (entry.plan->backend().returns_results) {
    PyObject* fused = own_attribute("picokernel.sources", "fused");
    if (fused == nullptr) throw ErrorSet{};
    try {
      made->fused = nb::borrow(fused)(entry.plan->artifact().code, entry.plan->artifact().entry);
    } catch (nb::python_error& e) {
      e.restore();
      throw ErrorSet{};
    }
  }
  std::erase_if(k.sources, [](const auto& source) { return source.second.expired(); });
  k.sources[&entry.plan->artifact()] = made;
  return made;
}

void prepare_twin(Entry& entry) {
  const bool split = trace::splitting();
  Entry::Twin& twin = entry.twins[split];
  if (twin.ready) return;
  static const trace::NameId name = trace::intern("instrument source");
  const trace::Span span(trace::Category::compile, name);
  nb::object& function = entry.source->twins[split];
  if (!function.is_valid()) function = open_text(entry, split ? Form::split : Form::stamped);
  twin = {true, table_for(entry, split)};
}

namespace {

// Throws LaunchError where MLX lacks what the source does.
PyObject* run_function(const nb::object& function, const std::vector<PyObject*>& arguments) {
  PyObject* const result =
      PyObject_Vectorcall(function.ptr(), arguments.data(), arguments.size(), nullptr);
  if (result != nullptr || PyErr_ExceptionMatches(PyExc_ValueError) == 0) return result;
  nb::python_error error;
  if (nb::cast<std::string>(nb::str(error.value())).find("float64 is not supported on the GPU") ==
      std::string::npos)
    return error.restore(), nullptr;
  throw_launch_error("MLX computes float64 on CPUs only, and its device is a GPU",
                     {"hint: x.astype(np.float32), np.complex64(z) for a complex number, or "
                      "backend=\"cpu\""});
}

}  // namespace

PyObject* run_source(const Entry& entry, std::span<const driver::Arg> args,
                     PyObject* const* objects, PyObject* const* outs, size_t out_count,
                     const nb::object& other) {
  std::vector<PyObject*> all(objects, objects + args.size());
  all.insert(all.end(), outs, outs + out_count);
  std::vector<nb::object> kept;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].kind != driver::Arg::Kind::scalar || args[i].dtype != DType::u64 || !args[i].weak)
      continue;
    // The sources take Python's ints for int64.
    PyObject* number = PyArrayScalar_New(UInt64);
    if (number == nullptr) return nullptr;
    PyArrayScalar_VAL(number, UInt64) = args[i].bits;
    kept.push_back(nb::steal(number));
    all[i] = number;
  }
  const runtime::FpControlScope fp_control;
  if (other.is_valid()) return run_function(other, all);
  const bool split = trace::splitting();
  const Entry::Twin& twin = entry.twins[split];
  if (!twin.ready || !trace::enabled()) return run_function(entry.source->function, all);
  trace::Stamps stamps(twin.ops);
  return run_function(entry.source->twins[split], all);
}

}  // namespace picokernel::python
