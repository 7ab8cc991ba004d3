// Printing MLX source. Arrays are immutable values there; scratch is a Python variable that is
// rebound.
#include "backend/mlx/mlx.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "backend/py_like/literals.h"
#include "backend/py_like/printer.h"
#include "passes/common/passes.h"
#include "passes/graph/passes.h"
#include "passes/graph/storage.h"
#include "passes/legalize/passes.h"
#include "support/check.h"

namespace picokernel::backend {
namespace {

using namespace ir;
using py_like::literal;
using py_like::mlx_function;

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& item : list) text += (text.empty() ? "" : ", ") + item;
  return text;
}

class MlxPrinter : public py_like::Printer {
 public:
  MlxPrinter(const Module& m, bool own_arrays)
      : Printer(m, {.module = "mx", .op_category = "op_lazy", .host_elements = false}),
        own_arrays_(own_arrays) {
    walk(m, [&](OpId id) {
      if (m.ops[id].opcode == Opcode::write) written_.insert(m.ops[id].operands[0]);
      for (const ValueId v : m.ops[id].operands) ++uses_[v];
      position_[id] = position_.size();
      if (m.ops[id].opcode == Opcode::write && is_view(m.ops[id].operands[0]))
        last_part_written_[passes::root_of(m, m.ops[id].operands[0])] = position_[id];
    });
  }

 private:
  bool is_view(ValueId ref) const {
    return m().def(ref) != nullptr && m().def(ref)->opcode == Opcode::view;
  }
  std::string fresh() { return names().temporary('v'); }
  void lazy(ValueId v, const std::string& value, OpId id) {
    set_text(v, fresh());
    line("op_lazy", text(v) + " = " + value, id);
  }

  // MLX makes float32 of float64 unless told not to. Neither side's buffers know bfloat16. Memory
  // may be shared where nothing is written to it.
  std::string from_host(ValueId ref) const {
    const DType t = m().type(ref).dtype;
    const std::string& array = text(ref);
    if (t == DType::bf16) return "mx.array(" + array + ".view(np.uint16)).view(mx.bfloat16)";
    return (written_.contains(ref) ? "mx.array(" : "mx.asarray(") + array +
           (t == DType::f64 ? ", dtype=mx.float64)" : ")");
  }

  // Scratch: a variable, bound at its first write.

  void scratch(OpId) override {}

  std::string part(ValueId ref) {
    const Op& view = *m().def(ref);
    const ValueId source = view.operands[0];
    const std::string base = is_view(source) ? part(source) : variable(source, m().values[ref].op);
    py_like::ViewText v = view_text(sizes(), m(), m().maps[view.map()], m().type(source));
    v.scalar = false;  // an index of numbers alone gives an array of rank 0 here
    return view_of(base, v, "mx");
  }
  const std::string& variable(ValueId scratch, OpId id) {
    if (text(scratch).empty()) {  // the content is undefined
      const Type& type = m().type(scratch);
      lazy(scratch, "mx.zeros(" + shape(type) + ", " + dtype(type.dtype) + ")", id);
    }
    return text(scratch);
  }
  // Storing to a part changes the Python object, which other names may share.
  bool part_written_after(ValueId scratch, OpId id) const {
    const auto last = last_part_written_.find(scratch);
    return last != last_part_written_.end() && last->second > position_.at(id);
  }

  // Its name may be the variable's own.
  bool is_read_of_scratch(ValueId v) const {
    const Op* def = m().def(v);
    return def != nullptr && def->opcode == Opcode::read && m().def(def->operands[0]) != nullptr;
  }

  // The caller's array itself stands for it.
  bool is_read_of_param(ValueId v) const {
    const Op* def = m().def(v);
    return own_arrays_ && def != nullptr && def->opcode == Opcode::read &&
           m().def(def->operands[0]) == nullptr && !written_.contains(def->operands[0]);
  }

  void read(OpId id) override {
    const ValueId ref = op(id).operands[0], v = op(id).results[0];
    if (m().def(ref) == nullptr && own_arrays_) {
      if (written_.contains(ref))
        lazy(v, text(ref) + "[...]", id);  // its name is bound to another value at the end
      else
        set_text(v, text(ref));
    } else if (m().def(ref) == nullptr) {
      PK_CHECK(outputs_.empty(),
               "a parameter is read after one was written: isolate_params has not run");
      set_text(v, fresh());
      line("h2d", text(v) + " = " + from_host(ref), id);
    } else if (is_view(ref)) {
      lazy(v, part(ref), id);
    } else if (part_written_after(ref, id)) {
      lazy(v, variable(ref, id) + "[...]", id);
    } else {
      set_text(v, variable(ref, id));
    }
  }

  void write(OpId id) override {
    const ValueId ref = op(id).operands[0], v = op(id).operands[1];
    if (m().def(ref) == nullptr) {
      outputs_.push_back(id);
    } else if (is_view(ref)) {
      const std::string value = operand(v, false);
      line("op_lazy", part(ref) + " = " + value, id);
    } else {
      const std::string value = operand(v, true);
      const Type& type = m().type(ref);
      if (m().type(v).shape != type.shape)
        lazy(ref, "mx.broadcast_to(" + value + ", " + shape(type) + ")", id);
      else if (part_written_after(ref, id) &&
               (uses_[v] > 1 || is_read_of_scratch(v) || is_read_of_param(v)))
        lazy(ref, value + "[...]", id);
      else
        set_text(ref, value);
    }
  }

  // Operations

  bool is_negative_zero(ValueId v) const {
    return is_literal(v) && literal(m().def(v)->scalar(), "mx") == "-0.0";
  }
  // A number of the host as an array of its type.
  std::string number(ValueId v) {
    const DType t = m().type(v).dtype;
    if (is_literal(v)) {
      const Scalar s = m().def(v)->scalar();
      // A Python int of that size is a C++ exception in MLX.
      if (t == DType::u64 && s.as<int64_t>() < 0)
        return "mx.array(np.uint64(" + literal(s, "mx") + "))";
      // mx.compile for CPUs would print the int -0.
      if (is_negative_zero(v)) return "mx.negative(mx.array(0.0, dtype=" + dtype(t) + "))";
      return "mx.array(" + literal(s, "mx") + ", dtype=" + dtype(t) + ")";
    }
    std::string& name = numbers_[v];
    if (name.empty()) {
      const auto direct = casts_.find(v);
      const bool cast = direct != casts_.end();
      name = fresh();
      line("op_lazy",
           name + " = mx.array(" + text(cast ? op(direct->second).operands[0] : v) +
               ", dtype=" + dtype(t) + ")",
           cast ? direct->second : m().values[v].op);
    }
    return name;
  }
  // An operand; `typed`: no array stands beside it that would give a literal its type.
  std::string operand(ValueId v, bool typed) {
    if (on_host(v) &&
        (typed || !is_literal(v) || is_negative_zero(v) || number(v).starts_with("mx.array(np.")))
      return number(v);
    return text(v);
  }

  void compute(OpId id) override {
    const Op& o = op(id);
    const ValueId v = o.results[0], x = o.operands[0];
    const DType t = m().type(x).dtype;
    if (o.opcode == Opcode::cast)
      return lazy(v, text(x) + ".astype(" + dtype(m().type(v).dtype) + ")", id);
    if (o.opcode == Opcode::bitcast)
      return lazy(v, text(x) + ".view(" + dtype(m().type(v).dtype) + ")", id);
    if (o.opcode == Opcode::signbit) {
      const std::string bits = fresh();
      line("op_lazy",
           bits + " = " + text(x) + ".view(" + dtype(t == DType::f64 ? DType::i64 : DType::i32) +
               ")",
           id);
      return lazy(v, "mx.less(" + bits + ", 0)", id);
    }
    const std::string_view function = mlx_function(o.opcode).value_or("");
    PK_CHECK(!function.empty(), info(o.opcode).name);
    // A select's condition says nothing about the type.
    const size_t first = o.opcode == Opcode::select ? 1 : 0;
    const bool beside_array = !std::ranges::all_of(std::span(o.operands).subspan(first),
                                                   [&](ValueId each) { return on_host(each); });
    std::vector<std::string> operands;
    for (size_t i = 0; i < o.operands.size(); ++i)
      operands.push_back(operand(o.operands[i], i < first || !beside_array));
    lazy(v, std::string(function) + "(" + joined(operands) + ")", id);
  }

  // A cast that only arrays use is left to mx.array, where that converts as we do: integers wrap,
  // float64 rounds once.
  void compute_host(OpId id) override {
    const Op& o = op(id);
    const ValueId v = o.results[0];
    if (o.opcode == Opcode::cast && !is_literal(o.operands[0])) {
      const DType from = m().type(o.operands[0]).dtype, to = m().type(v).dtype;
      const bool same =
          is_bool(from) || (is_integer(from) && is_integer(to)) || (is_float(from) && is_float(to));
      bool arrays_only = true;
      walk(m(), [&](OpId user) {
        const Op& u = op(user);
        if (std::ranges::find(u.operands, v) != u.operands.end())
          arrays_only = arrays_only && info(u.opcode).elementwise() && !on_host(u.results[0]);
      });
      if (same && arrays_only) {
        casts_[v] = id;
        return;
      }
    }
    Printer::compute_host(id);
  }

  void results(OpId id) override { returned_ = op(id).operands; }

  // Each result is an array of its own; arguments are bound anew once nothing reads them any more.
  void finish_own_arrays() {
    std::vector<std::string> results;
    for (const ValueId v : returned_) {
      std::string value = on_host(v) ? number(v) : text(v);
      if (is_read_of_param(v) || std::ranges::find(results, value) != results.end()) {
        const std::string name = fresh();
        line("op_lazy", name + " = " + value + "[...]", m().values[v].op);
        value = name;
      }
      results.push_back(value);
    }
    for (const OpId id : outputs_) {
      const ValueId v = op(id).operands[1];
      line("op_lazy", text(op(id).operands[0]) + "[...] = " + (on_host(v) ? number(v) : text(v)),
           id);
    }
    if (results.empty()) return;
    return_line("(" + joined(results) + (results.size() > 1 ? ")" : ",)"));
  }

  void finish() override {
    if (own_arrays_) return finish_own_arrays();
    std::vector<std::string> results;
    for (const OpId id : outputs_) {
      const ValueId v = op(id).operands[1];
      if (!on_host(v) && std::ranges::find(results, text(v)) == results.end())
        results.push_back(text(v));
    }
    if (!results.empty()) line("sync", "mx.eval(" + joined(results) + ")");
    for (const OpId id : outputs_) {
      const ValueId v = op(id).operands[1];
      const std::string to = text(op(id).operands[0]);
      if (on_host(v))
        line("d2h", to + "[...] = " + typed_host(v), id);
      else if (m().type(v).dtype == DType::bf16)
        line("d2h", to + ".view(np.uint16)[...] = np.asarray(" + text(v) + ".view(mx.uint16))", id);
      else
        line("d2h", to + "[...] = np.asarray(" + text(v) + ")", id);
    }
  }

  const bool own_arrays_;
  std::vector<ValueId> returned_;
  std::set<ValueId> written_;  // refs
  std::map<ValueId, size_t> uses_;
  std::map<OpId, size_t> position_;
  std::map<ValueId, size_t>
      last_part_written_;                   // by scratch: position of the last write through a view
  std::map<ValueId, std::string> numbers_;  // numbers of the host that have become arrays
  std::map<ValueId, OpId> casts_;           // casts that mx.array does
  std::vector<OpId> outputs_;               // writes to parameters
};

std::vector<Diagnostic> check_precision_and_stores(const Module& traced) {
  const Module m = passes::compose_views(traced, {});
  std::vector<Diagnostic> found;
  const std::vector<bool> host = py_like::host_values(m, false);
  const std::vector<std::string> names(m.params().size());  // only the form of views matters here
  py_like::Sizes sizes(m, names);
  walk(m, [&](OpId id) {
    const Op& op = m.ops[id];
    const auto refuse = [&](std::string message, std::vector<std::string> notes) {
      found.push_back(
          {.location = m.location(op), .message = std::move(message), .notes = std::move(notes)});
    };
    const bool single = op.opcode == Opcode::exp || op.opcode == Opcode::sin ||
                        op.opcode == Opcode::cos || op.opcode == Opcode::erf;
    if (single && m.type(op.results[0]).dtype == DType::f64 && !host[op.results[0].value])
      refuse(std::string(info(op.opcode).name) + " of float64 is computed in float32 by MLX",
             {"float32 arrays are fine here", "use backend=\"cpu\" or float32"});
    if (op.opcode != Opcode::write) return;
    const Op* view = m.def(op.operands[0]);
    if (view == nullptr || view->opcode != Opcode::view) return;
    if (!view_text(sizes, m, m.maps[view->map()], m.type(view->operands[0])).one_index)
      refuse("MLX stores through slices only, not through transposed or repeated views",
             {"store to a slice of the array itself, or use backend=\"cpu\""});
  });
  return found;
}

constexpr passes::Pass kLegalize[] = {
    {"expand_halves", passes::expand_halves, "MLX rounds functions of halves in its own way"},
    {"expand_double_to_half", passes::expand_double_to_half, "MLX rounds twice"},
    {"expand_float_to_int", passes::expand_float_to_int,
     "MLX leaves casts open that are out of range"},
    {"expand_int_pow", passes::expand_int_pow, "MLX gives 0 for negative exponents"},
    {"expand_int_division", passes::expand_int_division,
     "MIN // -1 kills the process, x % 0 gives x"},
    {"expand_float_division", passes::expand_float_division,
     "MLX rounds the quotient before its floor, and has no fmod"},
    {"expand_functions", passes::expand_functions, "MLX has no exp2, cbrt and hypot"},
    {"expand_inexact", passes::expand_inexact,
     "exp overflows early, erf(1e-10) is 0, sin(-0.0) 0.0"},
    {"expand_copysign", passes::expand_copysign, "MLX has none"},
    {"expand_fmin_fmax", passes::expand_fmin_fmax, "MLX has none"},
    {"expand_popcount", passes::expand_popcount, "MLX has none"},
    {"expand_shifts", passes::expand_shifts, "MLX takes counts modulo the width"},
    {"fold", passes::fold, "what the expansions made of constants"},
    {"cse", passes::cse, "what they made twice"},
    {"dce", passes::dce, "what they left over"},
    // Last: the printer relies on its form.
    {"isolate_params", passes::isolate_params, "copies in come first, copies out last"},
};

std::vector<Diagnostic> check(const Module& m) {
  std::vector<Diagnostic> found =
      py_like::check_spelling(m, std::span(kLegalize).first(std::size(kLegalize) - 1),
                              {.name = "MLX", .host_elements = false, .function = mlx_function});
  std::ranges::move(check_precision_and_stores(m), std::back_inserter(found));
  return found;
}

}  // namespace

const Backend mlx_backend = {
    .name = "mlx",
    .summary = "MLX source: lazy operations, NumPy arrays in and out",
    .level = Level::graph,
    .legalize = kLegalize,
    .check = check,
    .emit = [](const Module& m) { return MlxPrinter(m, false).print(); },
    .open = nullptr,
    .why_not_live = [] { return std::string(); },
    .own_arrays = &mlx_own_arrays_backend,
};

const Backend mlx_own_arrays_backend = {
    .name = "mlx",
    .summary = "MLX source: lazy operations, MLX arrays in and out",
    .level = Level::graph,
    .legalize = kLegalize,
    .check = check,
    .emit = [](const Module& m) { return MlxPrinter(m, true).print(); },
    .open = nullptr,
    .why_not_live = [] { return std::string(); },
    .returns_results = true,
};

}  // namespace picokernel::backend
