// Printing NumPy source from destination-passing IR: each computed array is written by the op after
// it.
#include "backend/numpy/numpy.h"

#include "backend/py_like/printer.h"
#include "passes/common/passes.h"
#include "passes/graph/passes.h"
#include "passes/legalize/passes.h"
#include "support/check.h"

namespace picokernel::backend {
namespace {

using namespace ir;

class NumpyPrinter : public py_like::Printer {
 public:
  explicit NumpyPrinter(const Module& m)
      : Printer(m, {.module = "np", .op_category = "op", .host_elements = true}) {}

 private:
  // The array behind a ref, as an expression.
  std::string array(ValueId ref) {
    const Op* def = m().def(ref);
    if (def == nullptr || def->opcode != Opcode::view) return text(ref);
    return view_of(array(def->operands[0]), view(*def), "np");
  }
  py_like::ViewText view(const Op& op) {
    return view_text(sizes(), m(), m().maps[op.map()], m().type(op.operands[0]));
  }

  void scratch(OpId id) override {
    const ValueId v = op(id).results[0];
    const Type& type = m().type(v);
    set_text(v, names().temporary('t'));
    line("alloc",
         text(v) + " = scratch(" + std::to_string(scratches_++) + ", " + shape(type) + ", " +
             dtype(type.dtype) + ")",
         id);
  }

  void read(OpId id) override {
    const ValueId ref = op(id).operands[0], v = op(id).results[0];
    if (!m().type(v).is_scalar()) {
      set_text(v, array(ref));
      return;
    }
    // A snapshot: the element as a NumPy scalar.
    std::string element = array(ref) + "[()]";
    const Op* def = m().def(ref);
    if (def != nullptr && def->opcode == Opcode::view) {
      const py_like::ViewText picks = view(*def);
      if (picks.scalar && picks.one_index && !picks.index.empty())
        element = array(def->operands[0]) + "[" + picks.index + "]";
    }
    set_text(v, names().temporary('s'));
    line("op", text(v) + " = " + element, id);
  }

  void compute(OpId) override {}  // printed with its write

  void write(OpId id) override {
    const std::string to = array(op(id).operands[0]);
    const ValueId v = op(id).operands[1];
    const Op* value = m().def(v);
    if (on_host(v) || value->opcode == Opcode::read)
      return line("op", "np.copyto(" + to + ", " + text(v) + ")", id);
    const OpId computed = m().values[v].op;
    if (value->opcode == Opcode::cast) {
      const bool safe = same_kind(m().type(value->operands[0]).dtype, m().type(v).dtype);
      line("op",
           "np.copyto(" + to + ", " + text(value->operands[0]) +
               (safe ? ")" : ", casting=\"unsafe\")"),
           computed);
    } else if (value->opcode == Opcode::bitcast) {
      line("op",
           "np.copyto(" + to + ", " + text(value->operands[0]) + ".view(" +
               dtype(m().type(v).dtype) + "))",
           computed);
    } else if (value->opcode == Opcode::select) {
      PK_CHECK(text(value->operands[2]) == to, "select has not been split by assign_scratch");
      line("op",
           "np.copyto(" + to + ", " + text(value->operands[1]) +
               ", where=" + text(value->operands[0]) + ")",
           computed);
    } else {
      const std::string_view function = py_like::numpy_function(value->opcode).value_or("");
      PK_CHECK(!function.empty(), info(value->opcode).name);
      std::string call(function);
      call += "(";
      for (const ValueId operand : value->operands) call += text(operand) + ", ";
      line("op", call + "out=" + to + ")", computed);
    }
  }

  size_t scratches_ = 0;
};

constexpr passes::Pass kLegalize[] = {
    {"expand_halves", passes::expand_halves, "the same float32 functions as everywhere else"},
    {"expand_float_to_int", passes::expand_float_to_int,
     "NumPy leaves casts open that are out of range"},
    {"expand_int_pow", passes::expand_int_pow, "NumPy raises for negative exponents"},
    {"expand_neg", passes::expand_neg, "numpy.negative is wrong for some strides"},
    {"fold", passes::fold, "what the expansions made of constants"},
    {"cse", passes::cse, "what they made twice"},
    {"dce", passes::dce, "what they left over"},
    // Last: it fixes order and memory of what there is.
    {"assign_scratch", passes::assign_scratch, "every ufunc writes to out="},
};

std::vector<Diagnostic> check(const Module& m) {
  return py_like::check_spelling(
      m, std::span(kLegalize).first(std::size(kLegalize) - 1),
      {.name = "NumPy", .host_elements = true, .function = py_like::numpy_function});
}

}  // namespace

const Backend numpy_backend = {
    .name = "numpy",
    .summary = "NumPy source: ufuncs with out=",
    .level = Level::graph,
    .legalize = kLegalize,
    .check = check,
    .emit = [](const Module& m) { return NumpyPrinter(m).print(); },
    .open = nullptr,
    .why_not_live = [] { return std::string(); },
};

}  // namespace picokernel::backend
