// The interpreter of kernels.
#include <deque>

#include "backend/ref/elements.h"
#include "backend/ref/interpreter.h"
#include "runtime/stop.h"
#include "support/check.h"

namespace picokernel::backend {
namespace {

using namespace ir;

class KernelInterpreter {
 public:
  explicit KernelInterpreter(const Module& m) : m_(m), values_(m.values.size(), 0) {}

  std::vector<Scalar> run(std::span<const uint64_t> params) {
    PK_CHECK(params.size() >= m_.params().size());
    for (size_t i = 0; i < m_.params().size(); ++i) bits(m_.params()[i]) = params[i];
    block(Module::body());
    std::vector<Scalar> results;
    for (const ValueId v : returned_) results.push_back(scalar(v));
    return results;
  }

 private:
  uint64_t& bits(ValueId v) { return values_[v.value]; }
  int64_t integer(ValueId v) { return static_cast<int64_t>(bits(v)); }
  Scalar scalar(ValueId v) { return {m_.type(v).dtype, bits(v)}; }

  std::byte* address(ValueId pointer, ValueId offset) {
    const auto size = static_cast<int64_t>(size_of(m_.type(pointer).dtype));
    return reinterpret_cast<std::byte*>(bits(pointer)) + integer(offset) * size;
  }

  // The operands of the block's yield, empty without one.
  std::vector<uint64_t> block(BlockId id) {
    std::vector<uint64_t> yields;
    for (const OpId op : m_.blocks[id].ops) execute(m_.ops[op], yields);
    return yields;
  }
  void bind(std::span<const ValueId> to, std::span<const uint64_t> from) {
    for (size_t i = 0; i < to.size(); ++i) bits(to[i]) = from[i];
  }
  std::vector<uint64_t> all(std::span<const ValueId> values) {
    std::vector<uint64_t> list;
    for (const ValueId v : values) list.push_back(bits(v));
    return list;
  }

  void execute(const Op& op, std::vector<uint64_t>& yields) {
    if (compute(m_, op, values_.data())) return;
    if (op.opcode == Opcode::load) {
      bits(op.results[0]) =
          load_element(m_.type(op.results[0]).dtype, address(op.operands[0], op.operands[1]));
    } else if (op.opcode == Opcode::store) {
      store_element(m_.type(op.operands[0]).dtype, bits(op.operands[0]),
                    address(op.operands[1], op.operands[2]));
    } else if (op.opcode == Opcode::alloc) {
      // Filled with 0xCD: nothing may rely on fresh memory.
      memory_.emplace_back(static_cast<size_t>(std::max<int64_t>(integer(op.operands[0]), 1)) *
                               size_of(m_.type(op.results[0]).dtype),
                           std::byte{0xCD});
      bits(op.results[0]) = reinterpret_cast<uint64_t>(memory_.back().data());
    } else if (op.opcode == Opcode::parallel) {
      parallel(ParallelView{op}, 0);
    } else if (op.opcode == Opcode::for_) {
      run_for(ForView{op});
    } else if (op.opcode == Opcode::while_) {
      const WhileView w{op};
      std::vector<uint64_t> carried = all(w.inits());
      while (true) {
        bind(m_.blocks[w.condition()].params, carried);
        if (block(w.condition())[0] == 0) break;
        look_for_stop();
        bind(m_.blocks[w.body()].params, carried);
        carried = block(w.body());
      }
      bind(op.results, carried);
    } else if (op.opcode == Opcode::if_) {
      const IfView i{op};
      bind(op.results, block(bits(i.condition()) != 0 ? i.then_block() : i.else_block()));
    } else if (op.opcode == Opcode::yield) {
      yields = all(op.operands);
    } else if (op.opcode == Opcode::return_) {
      returned_ = op.operands;
    } else {
      PK_UNREACHABLE(info(op.opcode).name);
    }
  }

  void parallel(ParallelView p, size_t dim) {
    if (dim == p.extents().size()) {
      block(p.body());
      look_for_stop();
      return;
    }
    const int64_t extent = integer(p.extents()[dim]);
    for (int64_t i = 0; i < extent; ++i) {
      bits(m_.blocks[p.body()].params[dim]) = static_cast<uint64_t>(i);
      parallel(p, dim + 1);
    }
  }

  void run_for(ForView f) {
    const int64_t from = integer(f.from()), to = integer(f.to()), step = integer(f.step());
    std::vector<uint64_t> carried = all(f.inits());
    // A zero step runs nothing: front ends report it.
    for (int64_t i = from; step > 0 ? i < to : step < 0 && i > to;) {
      bits(m_.blocks[f.body()].params[0]) = static_cast<uint64_t>(i);
      bind(std::span(m_.blocks[f.body()].params).subspan(1), carried);
      carried = block(f.body());
      look_for_stop();
      if (__builtin_add_overflow(i, step, &i)) break;
    }
    bind(f.op.results, carried);
  }

  void look_for_stop() {
    constexpr uint32_t kTurns = 1024;
    if (++turns_ % kTurns == 0 && runtime::stop_requested()) runtime::throw_stopped();
  }

  const Module& m_;
  uint32_t turns_ = 0;
  std::vector<uint64_t> values_;
  std::deque<std::vector<std::byte>> memory_;
  std::vector<ValueId> returned_;
};

}  // namespace

std::vector<Scalar> run_kernel(const Module& kernel, std::span<const uint64_t> params) {
  return KernelInterpreter(kernel).run(params);
}

}  // namespace picokernel::backend
