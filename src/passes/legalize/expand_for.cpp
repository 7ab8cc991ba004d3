// Loops count 0, 1, 2, ...: no index runs past its type, and the number of turns is known first.
#include "ir/rewriter.h"
#include "passes/legalize/math/formula.h"
#include "passes/legalize/passes.h"

namespace picokernel::passes {
namespace {

using namespace ir;
using math::Value;

// len(range(from, to, step)); 2^63 - 1 stands for more, which nobody sees the end of.
Value turns(Value from, Value to, Value step) {
  const auto wide = [](Value v) { return cast(v, DType::u64); };
  const Value up = step > 0;
  const Value runs = select(up, from < to, (step < 0) & (from > to));
  const Value distance = select(up, wide(to) - wide(from), wide(from) - wide(to));
  const Value pace = select(up, wide(step), -wide(step));
  const Value safe = select(pace == 0, wide(step).like(1), pace);
  const Value count = distance.formula().op(Opcode::floordiv, {distance - 1, safe}) + 1;
  const Value most = count.like(INT64_MAX);
  return select(runs, cast(select(count > most, most, count), DType::i64), from.like(0));
}

bool is_one(const Module& m, ValueId v) {
  const Op* op = m.def(v);
  return op != nullptr && op->opcode == Opcode::constant && op->attribute == 1;
}

}  // namespace

Module expand_for(const Module& m, const Target&) {
  const Rewriter::Visit visit = [&](Rewriter& r, OpId id) -> std::optional<std::vector<ValueId>> {
    const Op& op = m.ops[id];
    if (op.opcode != Opcode::for_ || is_one(m, ForView{op}.step())) return std::nullopt;
    const ForView loop{op};
    Builder& b = r.builder();
    std::vector<ValueId> operands = r.mapped(op.operands);
    const ValueId from = operands[0], step = operands[2];
    math::Formula formula(b);
    operands[1] = formula.emit(turns(formula.of(from), formula.of(operands[1]), formula.of(step)));
    operands[0] = b.constant(Scalar::of(int64_t{0}));
    operands[2] = b.constant(Scalar::of(int64_t{1}));
    const std::vector<ValueId>& params = m.blocks[loop.body()].params;
    const BlockId outer = b.insertion_block(), body = b.new_block();
    b.set_insertion_block(body);
    const ValueId turn = b.block_param(body, {.dtype = DType::i64});
    for (const ValueId p : std::span(params).subspan(1))
      r.map(p, b.block_param(body, m.type(p), m.values[p].name));
    math::Formula inside(b);
    const ValueId index = inside.emit(inside.of(from) + inside.of(turn) * inside.of(step));
    b.module().values[index].name = m.values[params[0]].name;
    r.map(params[0], index);
    const std::vector<ValueId> yields = r.splice(loop.body(), visit);
    if (!yields.empty()) b.op(Opcode::yield, yields);
    b.set_insertion_block(outer);
    return b.module().ops[b.op_with_regions(Opcode::for_, std::move(operands), {body})].results;
  };
  return Rewriter(m).run(visit);
}

}  // namespace picokernel::passes
