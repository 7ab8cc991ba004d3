// What the printers of Python source share: names, lines matched with operations, scalars, sizes,
// views.
//
// Scalars that come from parameters, constants and sizes alone stay on the host: they are Python or
// NumPy numbers, computed with NumPy in every dialect. A parameter of type bool, i64 or f64 may
// arrive as a Python number, of other types it arrives as a NumPy scalar of its type.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/py_like/names.h"
#include "backend/py_like/sizes.h"

namespace picokernel::backend::py_like {

struct Dialect {
  std::string_view module;       // of array functions: "np", "mx"
  std::string_view op_category;  // of operations in a trace: "op", "op_lazy"
  bool host_elements;            // an element read from an array is a number on the host
};

/// By value: is it a number on the host?
std::vector<bool> host_values(const ir::Module& m, bool host_elements);
/// "np.add", or "scipy.special.erf"; empty for ops that are printed in a form of their own, none
/// for ops that both lack.
std::optional<std::string_view> numpy_function(ir::Opcode opcode);
/// The same of MLX.
std::optional<std::string_view> mlx_function(ir::Opcode opcode);

struct Target {
  std::string_view name;  // for messages
  bool host_elements;
  std::optional<std::string_view> (*function)(ir::Opcode);  // of arrays, as numpy_function
};
/// Refuses the ops that the target has no function for and that `expansions` leave as they are.
std::vector<Diagnostic> check_spelling(const ir::Module& m,
                                       std::span<const passes::Pass> expansions,
                                       const Target& target);

class Printer {
 public:
  Printer(const ir::Module& m, Dialect dialect);
  virtual ~Printer() = default;
  Artifact print();

 protected:
  // The ops that dialects differ in, called in program order; then finish.
  virtual void compute(ir::OpId id) = 0;  // elementwise, not on the host
  virtual void scratch(ir::OpId id) = 0;
  virtual void read(ir::OpId id) = 0;
  virtual void write(ir::OpId id) = 0;
  virtual void results(ir::OpId id);  // of a module that returns some
  virtual void finish() {}
  // Elementwise, on the host.
  virtual void compute_host(ir::OpId id);

  void line(std::string_view category, const std::string& text, ir::OpId op = {});
  void return_line(const std::string& values);

  const ir::Module& m() const { return m_; }
  const ir::Op& op(ir::OpId id) const { return m_.ops[id]; }
  bool on_host(ir::ValueId v) const { return host_[v.value]; }
  bool is_literal(ir::ValueId v) const;
  /// The text that stands for a value or ref: a name, an expression, a literal.
  const std::string& text(ir::ValueId v) const { return texts_[v.value]; }
  void set_text(ir::ValueId v, std::string text) { texts_[v.value] = std::move(text); }
  /// A host scalar with its own type: literals as np.float32(2.5).
  std::string typed_host(ir::ValueId v) const;
  /// A shape as a tuple: of a parameter that has it, else of sizes.
  std::string shape(const ir::Type& type) const;
  std::string dtype(DType t) const;  // in the dialect's module
  Names& names() { return names_; }
  Sizes& sizes() { return sizes_; }
  const Dialect& dialect() const { return dialect_; }

 private:
  std::vector<std::string> name_params();
  std::string chosen(ir::ValueId v) const;
  // May the cast meet a Python int out of range? NumPy raises for it; a NumPy scalar wraps.
  bool wraps(const ir::Op& cast) const;
  bool uses_scipy() const;
  void print_op(ir::OpId id);

  const ir::Module& m_;
  const Dialect dialect_;
  Names names_;
  const std::vector<std::string> params_;
  Sizes sizes_;
  const std::vector<bool> host_;
  std::vector<std::string> texts_;
  Artifact artifact_;
  uint32_t lines_ = 0;
};

}  // namespace picokernel::backend::py_like
