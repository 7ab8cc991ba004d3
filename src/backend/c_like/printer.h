// Prints a kernel as a function of a language of the C family.
//
// The kernel is legalized: results are written parameters, integers do not overflow, shifts are
// shorter than their type, casts stay in range, half types are loaded, stored, selected and moved
// as bits only, loops count from 0 by
// 1. Each floating-point operation is a statement of its own; integers and conditions that are used
// once stand where they are used.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/c_like/dialect.h"
#include "backend/c_like/names.h"

namespace picokernel::backend::c_like {

/// The name of the kernel's function.
std::string function_name(const ir::Module& m);

/// Does the kernel of threads use shared memory of the launch's size?
bool uses_dynamic(const ir::Module& m);

/// What of a kernel of threads is not printed: atomics on fewer than 4 bytes, local arrays whose
/// size is no constant.
std::vector<Diagnostic> check_threads(const ir::Module& m, std::string_view backend);

class Printer {
 public:
  Printer(const ir::Module& m, const Dialect& dialect);
  /// "void pk_f(const float *x, int64_t n)".
  std::string signature();
  /// The function, signature and body; before it the functions that its atomics call.
  std::string function();

 private:
  // How a value is written where it is used.
  struct Text {
    std::string text;
    enum Level : uint8_t { atom, unary, binary } level = atom;
    uint8_t depth = 0;
  };

  void count_uses(ir::BlockId id, const ir::Op* owner);
  const ir::Op* constant_of(ir::ValueId v) const;
  bool sees_several_types() const;
  std::string declared(ir::ValueId v) const;  // its type, with a space or star behind
  std::string element_pointer(const ir::Type& t, bool constant) const;
  const std::string& name(ir::ValueId v, std::string_view wish = {});
  std::string at(ir::ValueId v, Text::Level most) const;  // in parentheses if it binds less
  std::string variable(ir::ValueId v);                    // made if it is an expression

  void line(const std::string& text);
  void open(const std::string& text);
  void close(const std::string& text = "}");
  void block(ir::BlockId id);
  void statement(ir::OpId id);
  void elementwise(const ir::Op& op);
  Text expression(const ir::Op& op);
  std::string operand(const ir::Op& op, size_t i, Text::Level most);
  bool stands_inline(const ir::Op& op, const Text& text) const;
  void bitcast(const ir::Op& op);
  void constant(const ir::Op& op);
  void load(const ir::Op& op);
  void store(const ir::Op& op);
  void alloc(const ir::Op& op);
  void parallel(const ir::Op& op);
  void mark_line(const ir::Op& op);
  bool of_threads(const ir::Op& op);  // false: it is none of theirs
  void shared(const ir::Op& op);
  void local_array(const ir::Op& op);
  void declare_votes();
  void vote(const ir::Op& op);
  void atomic(const ir::Op& op);
  std::string helper(const ir::Op& op);  // the function that does it, made if it is the first
  void for_loop(const ir::Op& op);
  void while_loop(const ir::Op& op);
  void meeting_loop(const ir::Op& op);  // whose condition holds a barrier
  void branch(const ir::Op& op);
  void declare_carried(const ir::Op& op, std::span<const ir::ValueId> inits,
                       std::initializer_list<std::span<const ir::ValueId>> params);
  void hand_on(ir::BlockId region, std::span<const ir::ValueId> results);
  void free_memory(ir::BlockId id, bool again);

  const ir::Module& m_;
  const Dialect& dialect_;
  Names names_;
  std::vector<Text> texts_;            // by value; empty: not yet defined
  std::vector<uint32_t> uses_;         // by value
  std::vector<bool> stays_, mutable_;  // by value: needs a variable; a pointer written through
  std::vector<ir::BlockId> blocks_;    // by value: where it is defined
  bool several_types_ = false, allocates_ = false;
  std::string votes_;  // the block's counter, where there is one
  std::vector<std::string> helpers_;
  std::string helper_text_;
  bool marks_lines_ = false;               // a kernel of threads
  std::pair<std::string, uint32_t> line_;  // of the user's, marked last
  int indent_ = 0;
  std::string out_;
};

}  // namespace picokernel::backend::c_like
