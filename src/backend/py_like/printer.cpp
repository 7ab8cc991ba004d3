// Printing what all dialects print alike.
#include "backend/py_like/printer.h"

#include <algorithm>

#include "backend/py_like/literals.h"
#include "support/check.h"

namespace picokernel::backend::py_like {

using namespace ir;

namespace {
// Globals of a printed source.
constexpr std::string_view kTaken[] = {"np", "mx", "ml_dtypes", "scipy", "scratch", "min", "max"};

// Cells of functions.def.
constexpr std::string_view kForm = "";
constexpr std::nullopt_t kNone = std::nullopt;
}  // namespace

std::vector<bool> host_values(const Module& m, bool host_elements) {
  std::vector<bool> host(m.values.size());
  for (const ValueId v : m.params()) host[v.value] = m.type(v).is_scalar();
  walk(m, [&](OpId id) {
    const Op& op = m.ops[id];
    bool on_host = op.opcode == Opcode::constant || op.opcode == Opcode::size;
    if (op.opcode == Opcode::read) on_host = host_elements && m.type(op.results[0]).is_scalar();
    if (info(op.opcode).elementwise() && !on_host)
      on_host = std::ranges::all_of(op.operands, [&](ValueId v) { return host[v.value]; });
    for (const ValueId v : op.results) host[v.value] = on_host;
  });
  return host;
}

std::optional<std::string_view> numpy_function(Opcode opcode) {
  switch (opcode) {
#define PK_FUNCTION(op, numpy, mlx) \
  case Opcode::op:                  \
    return numpy;
#include "backend/py_like/functions.def"
  }
  PK_UNREACHABLE();
}

std::optional<std::string_view> mlx_function(Opcode opcode) {
  switch (opcode) {
#define PK_FUNCTION(op, numpy, mlx) \
  case Opcode::op:                  \
    return mlx;
#include "backend/py_like/functions.def"
  }
  PK_UNREACHABLE();
}

std::vector<Diagnostic> check_spelling(const Module& m, std::span<const passes::Pass> expansions,
                                       const Target& target) {
  const auto lacking = [&](const Module& graph) {
    std::vector<OpId> found;
    const std::vector<bool> host = host_values(graph, target.host_elements);
    walk(graph, [&](OpId id) {
      const Op& op = graph.ops[id];
      if (!info(op.opcode).elementwise()) return;
      if (!(host[op.results[0].value] ? numpy_function : target.function)(op.opcode))
        found.push_back(id);
    });
    return found;
  };
  if (lacking(m).empty()) return {};
  // Expansions may replace them, and what is left keeps the user's place.
  Module expanded = m;
  for (const passes::Pass& pass : expansions) expanded = pass.run(expanded, {});
  std::vector<Diagnostic> refused;
  for (const OpId id : lacking(expanded)) {
    const Op& op = expanded.ops[id];
    const std::string name(info(op.opcode).name);
    const DType dtype = expanded.type(op.operands[0]).dtype;
    refused.push_back({.location = expanded.location(op),
                       .message = std::string(target.name) + " has no " + name + " of " +
                                  std::string(numpy_name(dtype)),
                       .notes = {name + " is " + std::string(info(op.opcode).meaning),
                                 "use backend=\"cpu\", or compute it outside of the kernel"}});
  }
  return refused;
}

Printer::Printer(const Module& m, Dialect dialect)
    : m_(m),
      dialect_(dialect),
      params_(name_params()),
      sizes_(m, params_),
      host_(host_values(m, dialect.host_elements)),
      texts_(m.values.size()) {
  for (size_t i = 0; i < params_.size(); ++i) set_text(m.params()[i], params_[i]);
}

std::vector<std::string> Printer::name_params() {
  for (const std::string_view name : kTaken) names_.reserve(name);
  std::vector<std::string> params;
  for (const ValueId v : m_.params()) {
    const std::string& name = m_.values[v].name;
    params.push_back(names_.unique(name.empty() ? "p" + std::to_string(params.size()) : name));
  }
  return params;
}

void Printer::line(std::string_view category, const std::string& text, OpId op) {
  artifact_.code += "    " + text + "\n";
  artifact_.operations.push_back({.category = category, .line = ++lines_, .op = op});
}

void Printer::return_line(const std::string& values) {
  artifact_.code += "    return " + values + "\n";
  ++lines_;
}

Artifact Printer::print() {
  Names globals;
  for (const std::string_view name : kTaken) globals.reserve(name);
  artifact_.entry = globals.unique(m_.name);
  if (uses_scipy()) {
    artifact_.code = "import scipy.special\n\n";
    lines_ = 2;
  }
  artifact_.code += "def " + artifact_.entry + "(";
  for (size_t i = 0; i < params_.size(); ++i) artifact_.code += (i ? ", " : "") + params_[i];
  artifact_.code += "):\n";
  const uint32_t head = ++lines_;
  for (const OpId id : m_.blocks[Module::body()].ops) print_op(id);
  finish();
  if (lines_ == head) artifact_.code += "    pass\n";
  return std::move(artifact_);
}

bool Printer::uses_scipy() const {
  bool found = false;
  walk(m_, [&](OpId id) {
    const Op& op = m_.ops[id];
    if (!info(op.opcode).elementwise()) return;
    const bool of_numpy = dialect_.module == "np" || on_host(op.results[0]);
    found = found || (of_numpy && numpy_function(op.opcode).value_or("").starts_with("scipy."));
  });
  return found;
}

void Printer::print_op(OpId id) {
  const Op& op = m_.ops[id];
  if (op.opcode == Opcode::constant) {
    set_text(op.results[0], literal(op.scalar(), dialect_.module));
  } else if (op.opcode == Opcode::size) {
    set_text(op.results[0], names_.temporary('s'));
    line(dialect_.op_category, text(op.results[0]) + " = " + sizes_.text(op.size()), id);
  } else if (op.opcode == Opcode::scratch) {
    scratch(id);
  } else if (op.opcode == Opcode::read) {
    read(id);
  } else if (op.opcode == Opcode::write) {
    write(id);
  } else if (info(op.opcode).elementwise()) {
    if (on_host(op.results[0]))
      compute_host(id);
    else
      compute(id);
  } else if (op.opcode == Opcode::return_) {
    if (!op.operands.empty()) results(id);
  } else {
    PK_CHECK(op.opcode == Opcode::view, info(op.opcode).name);
  }
}

void Printer::results(OpId) { PK_UNREACHABLE("bind_outputs has not run"); }

bool Printer::is_literal(ValueId v) const {
  return m_.def(v) != nullptr && m_.def(v)->opcode == Opcode::constant;
}

std::string Printer::typed_host(ValueId v) const {
  if (!is_literal(v)) return text(v);
  return dtype_name(m_.type(v).dtype, "np") + "(" + literal(m_.def(v)->scalar(), "np") + ")";
}

// Either choice has the NumPy type: whoever takes the result need not ask.
std::string Printer::chosen(ValueId v) const {
  const bool may_be_python = m_.def(v) == nullptr || m_.def(v)->opcode == Opcode::size;
  return may_be_python ? dtype_name(m_.type(v).dtype, "np") + "(" + text(v) + ")" : typed_host(v);
}

bool Printer::wraps(const Op& cast) const {
  const ValueId v = cast.operands[0];
  const DType to = m_.type(cast.results[0]).dtype;
  if (m_.type(v).dtype != DType::i64 || !is_integer(to) || to == DType::i64) return false;
  const Op* def = m_.def(v);
  if (def != nullptr) return def->opcode == Opcode::size;
  const auto param = static_cast<uint32_t>(std::ranges::find(m_.params(), v) - m_.params().begin());
  return std::ranges::find(m_.range_checks, RangeCheck{param, to}) == m_.range_checks.end();
}

void Printer::compute_host(OpId id) {
  const Op& op = m_.ops[id];
  std::string value;
  if (op.opcode == Opcode::cast) {
    const std::string type = dtype_name(m_.type(op.results[0]).dtype, "np");
    if (wraps(op))
      value = "np.int64(" + text(op.operands[0]) + ").astype(" + type + ")";
    else
      value = type + "(" + text(op.operands[0]) + ")";
  } else if (op.opcode == Opcode::select) {
    value =
        chosen(op.operands[1]) + " if " + text(op.operands[0]) + " else " + chosen(op.operands[2]);
  } else if (op.opcode == Opcode::bitcast) {
    const std::string type = dtype_name(m_.type(op.results[0]).dtype, "np");
    value = chosen(op.operands[0]) + ".view(" + type + ")";
  } else {
    const std::string_view function = numpy_function(op.opcode).value_or("");
    PK_CHECK(!function.empty(), info(op.opcode).name);
    // One operand with a type is enough: literals beside it are weak.
    const bool typed = std::ranges::any_of(op.operands, [&](ValueId v) { return !is_literal(v); });
    value = std::string(function) + "(";
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const ValueId v = op.operands[i];
      value += (i ? ", " : "") +
               (typed && is_literal(v) ? literal(m_.def(v)->scalar(), "np") : typed_host(v));
    }
    value += ")";
  }
  set_text(op.results[0], names_.temporary('s'));
  line(dialect_.op_category, text(op.results[0]) + " = " + value, id);
}

std::string Printer::shape(const Type& type) const {
  // Outputs first: they come last.
  for (size_t i = params_.size(); i-- > 0;) {
    const Type& t = m_.type(m_.params()[i]);
    if (t.kind == TypeKind::ref && t.shape == type.shape) return params_[i] + ".shape";
  }
  return sizes_.shape(type.shape);
}

std::string Printer::dtype(DType t) const { return dtype_name(t, dialect_.module); }

}  // namespace picokernel::backend::py_like
