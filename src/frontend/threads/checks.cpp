// Assertions, what is raised, and indices: what a guarded kernel reports to its launch.
#include "frontend/threads/compiler.h"

namespace picokernel::frontend::threads {

using ir::Opcode;
using ir::ValueId;

std::vector<Node> with_checks(std::span<const Node> statements, bool guarded, bool kernel) {
  std::vector<Node> out;
  for (const Node& s : statements) {
    if (s.is("Assert")) {
      if (!guarded) continue;
      const Node raise{.kind = "Raise",
                       .where = s.where,
                       .text = "AssertionError",
                       .fields = {{.kind = "Text", .text = s.text}}};
      const Node failed{
          .kind = "UnaryOp", .where = s.where, .fields = {{.kind = "Text", .text = "Not"}, s[0]}};
      out.push_back(branch(failed, with_checks(std::span(&raise, 1), true, kernel), {}, s.where));
    } else if (s.is("Raise")) {
      if (!guarded)
        throw CompileError(
            Diagnostic{.location = s.where,
                       .message = "`raise` is for kernels that are checked",
                       .notes = {"a launch reports it then, as the exception that is raised",
                                 "hint: @simt.jit(check=True), or store a code into an array"}});
      out.push_back(s);
      if (kernel)
        out.push_back({.kind = "Return", .where = s.where, .fields = {{.kind = "Nothing"}}});
    } else {
      Node copy = s;
      for (Node& field : copy.fields)
        if (field.is("Block") && (s.is("If") || s.is("For") || s.is("While")))
          field.fields = with_checks(field.fields, guarded, kernel);
      out.push_back(std::move(copy));
    }
  }
  if (out.empty() && !statements.empty()) out.push_back({.kind = "Pass"});
  return out;
}

// Of the thread in the grid: in front of all else.
ValueId Compiler::number_in_grid() {
  std::array<ValueId, 3> thread, block, threads, blocks;
  for (uint64_t axis = 0; axis < 3; ++axis) {
    thread[axis] = thread_value(Opcode::thread_id, axis).id;
    block[axis] = thread_value(Opcode::block_id, axis).id;
    threads[axis] = thread_value(Opcode::block_dim, axis).id;
    blocks[axis] = thread_value(Opcode::grid_dim, axis).id;
  }
  if (number_in_grid_.valid()) return number_in_grid_;
  in_block(ir::Module::body(), [&] {
    const auto numbered = [&](const std::array<ValueId, 3>& id, const std::array<ValueId, 3>& of) {
      const ValueId row = b_.value(Opcode::add, {b_.value(Opcode::mul, {id[2], of[1]}), id[1]});
      return b_.value(Opcode::add, {b_.value(Opcode::mul, {row, of[0]}), id[0]});
    };
    const ValueId in_block = numbered(thread, threads), of_grid = numbered(block, blocks);
    const ValueId plane = b_.value(Opcode::mul, {threads[0], threads[1]});
    const ValueId count = b_.value(Opcode::mul, {plane, threads[2]});
    const ValueId before = b_.value(Opcode::mul, {of_grid, count});
    number_in_grid_ = b_.value(Opcode::add, {before, in_block});
  });
  return number_in_grid_;
}

// The least key wins, whatever the order of threads; who is the first to claim tells the rest.
void Compiler::report(Site site, ValueId index, ValueId size) {
  const auto number = static_cast<int64_t>(sites_.size());
  if (number < kMaxSites) sites_.push_back(std::move(site));
  const ValueId first = b_.value(Opcode::mul, {number_in_grid(), i64(kMaxSites)});
  const ValueId key = b_.value(Opcode::add, {first, i64(std::min(number, kMaxSites - 1))});
  b_.value(Opcode::atomic_minimum, {report_, i64(kLeastKey), key});
  if (!index.valid()) return;
  const ValueId none = i64(-1);
  const ValueId before = b_.value(Opcode::atomic_cas, {report_, i64(kClaimedKey), none, key});
  const ValueId claimed = b_.value(Opcode::eq, {before, none});
  const ir::BlockId yes = b_.new_block(), no = b_.new_block();
  in_block(yes, [&] {
    b_.store(index, report_, i64(kIndex));
    b_.store(size, report_, i64(kSize));
  });
  b_.op_with_regions(Opcode::if_, {claimed}, {yes, no});
}

// Whether the access may be made.
ValueId Compiler::guard(const Array& a, size_t d, ValueId at, const Node& where) {
  const ValueId size = a.shape[d], zero = i64(0);
  const ValueId low = b_.value(Opcode::ge, {at, zero}), high = b_.value(Opcode::lt, {at, size});
  const ValueId inside = b_.value(Opcode::and_, {low, high});
  const ir::BlockId yes = b_.new_block(), no = b_.new_block();
  in_block(no, [&] {
    // As the user counts: from the end.
    const ValueId negative = b_.value(Opcode::lt, {at, zero});
    const ValueId shown =
        b_.value(Opcode::select, {negative, b_.value(Opcode::sub, {at, size}), at});
    report({.where = where.where, .array = state_.m.values[a.pointer].name, .axis = a.axes[d]},
           shown, size);
  });
  b_.op_with_regions(Opcode::if_, {inside}, {yes, no});
  return inside;
}

}  // namespace picokernel::frontend::threads
