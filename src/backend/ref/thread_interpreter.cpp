// A frame for each thread of one block at a time.
#include "backend/ref/thread_interpreter.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "backend/ref/coroutine.h"
#include "backend/ref/elements.h"
#include "backend/ref/race_detector.h"
#include "runtime/stop.h"
#include "support/check.h"

namespace picokernel::backend {
namespace {

using namespace ir;

// An array of the interpreter's own: shared or local.
struct Store {
  Store(size_t size, size_t cells)
      : bytes(std::max<size_t>(size, 1), std::byte{0xCD}), history(cells) {}
  std::vector<std::byte> bytes;
  RaceDetector history;
};

// What a pointer points to.
struct Memory {
  std::byte* data = nullptr;  // of offset 0
  Reach reach;                // in elements
  RaceDetector* history = nullptr;
  // Cells of the history for an element: dynamic shared memory is seen as several types, byte by
  // byte.
  size_t cells = 1;
  bool starts_undefined = false;
};

struct Thread {
  int64_t number = 0;  // in the block, x fastest
  std::array<int64_t, 3> id{};
  std::vector<uint64_t> values;  // by value: bits; of pointers, which of `memories`
  std::coroutine_handle<> resume;
  const Op* waits = nullptr;  // the barrier that it has reached
  bool done = false;
};

std::string text(const std::array<int64_t, 3>& id) {
  return "(" + std::to_string(id[0]) + ", " + std::to_string(id[1]) + ", " + std::to_string(id[2]) +
         ")";
}

class Interpreter {
 public:
  Interpreter(const Module& m, std::span<const uint64_t> params, std::span<const Reach> reach,
              const Grid& grid, uint64_t seed)
      : m_(m), params_(params), reach_(reach), grid_(grid), random_(seed) {
    PK_CHECK(params.size() >= m.params().size() && reach.size() >= m.params().size());
    for (const Reach& r : reach)
      histories_.emplace_back(static_cast<size_t>(std::max<int64_t>(r.high - r.low, 0)));
  }

  void run() {
    const auto& [x, y, z] = grid_.blocks;
    std::vector<int64_t> order(static_cast<size_t>(x * y * z));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (const int64_t b : order) {
      block_number_ = b;
      run_block();
    }
  }

 private:
  // ---- Blocks and turns

  void run_block() {
    epoch_ = 0;
    begin_with_memory();
    std::vector<Thread> threads(static_cast<size_t>(threads_of_a_block()));
    std::vector<Region> bodies;
    bodies.reserve(threads.size());
    std::vector<size_t> ready(threads.size());
    for (size_t i = 0; i < threads.size(); ++i) {
      Thread& t = threads[i];
      t.number = static_cast<int64_t>(i);
      t.id = id_of(t.number, grid_.threads);
      t.values = initial_;
      bodies.push_back(region(t, Module::body()));
      t.resume = bodies.back().handle();
      ready[i] = i;
    }
    size_t ended = 0;
    while (ended < threads.size()) {
      if (ready.empty()) {
        pass_barrier(threads);
        ready.resize(threads.size());
        std::iota(ready.begin(), ready.end(), size_t{0});
      }
      size_t& pick = ready[std::uniform_int_distribution<size_t>(0, ready.size() - 1)(random_)];
      Thread& t = threads[pick];
      look_for_stop();
      t.resume.resume();
      t.done = bodies[pick].done();
      if (t.done) bodies[pick].rethrow();
      ended += t.done;
      if (!t.done && t.waits == nullptr) continue;  // it let others go first
      pick = ready.back();
      ready.pop_back();
    }
  }

  // All threads of the block wait, or have ended.
  void pass_barrier(std::vector<Thread>& threads) {
    const auto waiting = std::ranges::find(threads, false, &Thread::done);
    const Op& op = *waiting->waits;
    const auto other =
        std::ranges::find_if(threads, [&](const Thread& t) { return t.waits != &op; });
    if (other != threads.end())
      fail(op,
           describe(*waiting) + " waits at this barrier, and " + describe(*other) +
               (other->done ? " has ended" : " waits at another one" + place(*other->waits)),
           {"all threads of a block have to reach the same barriers",
            "hint: take it out of the branch or loop that depends on the thread"});
    const int64_t yes =
        op.operands.empty() ? 0 : std::ranges::count_if(threads, [&](const Thread& t) {
          return t.values[op.operands[0].value] != 0;
        });
    const bool all = yes == threads_of_a_block();
    for (Thread& t : threads) {
      t.waits = nullptr;
      if (op.results.empty()) continue;
      t.values[op.results[0].value] = op.opcode == Opcode::barrier_count
                                          ? static_cast<uint64_t>(yes)
                                      : op.opcode == Opcode::barrier_and ? all
                                                                         : yes != 0;
    }
    ++epoch_;
  }

  // Leaves the thread where it is, until it has its turn again.
  struct Turn {
    Thread& thread;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) const noexcept { thread.resume = h; }
    void await_resume() const noexcept {}
  };

  void look_for_stop() {
    constexpr uint64_t kOften = 1024;  // asking takes as long as many ops
    if (++turns_ % kOften == 0 && runtime::stop_requested()) runtime::throw_stopped();
  }

  // ---- Ops

  Region region(Thread& t, BlockId block) {
    std::vector<uint64_t> yields;
    for (const OpId id : m_.blocks[block].ops) {
      const Op& op = m_.ops[id];
      if (op.opcode == Opcode::for_) {
        const ForView f{op};
        const int64_t from = integer(t, f.from()), to = integer(t, f.to()),
                      step = integer(t, f.step());
        std::vector<uint64_t> carried = all(t, f.inits());
        // A zero step runs nothing: front ends report it.
        for (int64_t i = from; step > 0 ? i < to : step < 0 && i > to;) {
          look_for_stop();
          const std::span<const ValueId> params = m_.blocks[f.body()].params;
          t.values[params[0].value] = static_cast<uint64_t>(i);
          bind(t, params.subspan(1), carried);
          carried = co_await region(t, f.body());
          if (__builtin_add_overflow(i, step, &i)) break;
        }
        bind(t, op.results, carried);
      } else if (op.opcode == Opcode::while_) {
        const WhileView w{op};
        std::vector<uint64_t> carried = all(t, w.inits());
        while (true) {
          look_for_stop();
          bind(t, m_.blocks[w.condition()].params, carried);
          const std::vector<uint64_t> goes_on = co_await region(t, w.condition());
          if (goes_on[0] == 0) break;
          bind(t, m_.blocks[w.body()].params, carried);
          carried = co_await region(t, w.body());
        }
        bind(t, op.results, carried);
      } else if (op.opcode == Opcode::if_) {
        const IfView i{op};
        const bool taken = t.values[i.condition().value] != 0;
        const std::vector<uint64_t> results =
            co_await region(t, taken ? i.then_block() : i.else_block());
        bind(t, op.results, results);
      } else if (info(op.opcode).barrier()) {
        t.waits = &op;
        co_await Turn{t};
      } else if (info(op.opcode).atomic()) {
        co_await Turn{t};
        atomic(t, id);
      } else if (op.opcode == Opcode::yield) {
        yields = all(t, op.operands);
      } else if (!compute(m_, op, t.values.data())) {
        simple(t, id);
      }
    }
    co_return yields;
  }

  void simple(Thread& t, OpId id) {
    const Op& op = m_.ops[id];
    if (op.opcode == Opcode::load) {
      t.values[op.results[0].value] =
          load_element(m_.type(op.results[0]).dtype, read(t, id, op.operands[0], op.operands[1]));
    } else if (op.opcode == Opcode::store) {
      const uint64_t bits = t.values[op.operands[0].value];
      const DType dtype = m_.type(op.operands[0]).dtype;
      store_element(dtype, bits, write(t, id, op.operands[1], op.operands[2], bits, false));
    } else if (op.opcode == Opcode::alloc) {
      const auto count = static_cast<size_t>(std::max<int64_t>(integer(t, op.operands[0]), 0));
      t.values[op.results[0].value] = remember(count, size_of(m_.type(op.results[0]).dtype), 1);
    } else if (op.opcode == Opcode::check_index) {
      check_index(t, op);
    } else if (op.opcode == Opcode::thread_id) {
      t.values[op.results[0].value] = static_cast<uint64_t>(t.id[op.attribute]);
    } else if (op.opcode == Opcode::block_id) {
      t.values[op.results[0].value] =
          static_cast<uint64_t>(id_of(block_number_, grid_.blocks)[op.attribute]);
    } else if (op.opcode == Opcode::block_dim) {
      t.values[op.results[0].value] = static_cast<uint64_t>(grid_.threads[op.attribute]);
    } else if (op.opcode == Opcode::grid_dim) {
      t.values[op.results[0].value] = static_cast<uint64_t>(grid_.blocks[op.attribute]);
    } else if (op.opcode != Opcode::shared && op.opcode != Opcode::return_) {
      PK_UNREACHABLE(info(op.opcode).name);
    }
  }

  void atomic(Thread& t, OpId id) {
    const Op& op = m_.ops[id];
    const DType dtype = m_.type(op.results[0]).dtype;
    const std::byte* const from = address(t, op, op.operands[0], op.operands[1], "updates");
    const uint64_t before = load_element(dtype, from), operand = t.values[op.operands[2].value];
    const uint64_t after = op.opcode == Opcode::atomic_cas
                               ? before == operand ? t.values[op.operands[3].value] : before
                               : combined(op.opcode, dtype, before, operand);
    require_defined(t, id, op.operands[0], op.operands[1]);
    store_element(dtype, after, write(t, id, op.operands[0], op.operands[1], after, true));
    t.values[op.results[0].value] = before;
  }

  static uint64_t combined(Opcode opcode, DType dtype, uint64_t before, uint64_t operand) {
    const auto by = [&](Opcode plain) {
      const Scalar operands[] = {{dtype, before}, {dtype, operand}};
      return eval(plain, operands, dtype).bits;
    };
    const uint64_t mask = ~uint64_t{0} >> (64 - 8 * size_of(dtype));
    const uint64_t x = before & mask, y = operand & mask;  // as unsigned
    const auto of = [&](uint64_t bits) { return cast({DType::u64, bits}, dtype).bits; };
    switch (opcode) {
      case Opcode::atomic_add:
        return by(Opcode::add);
      case Opcode::atomic_minimum:
        return by(Opcode::minimum);
      case Opcode::atomic_maximum:
        return by(Opcode::maximum);
      case Opcode::atomic_fmin:
        return by(Opcode::fmin);
      case Opcode::atomic_fmax:
        return by(Opcode::fmax);
      case Opcode::atomic_and:
        return by(Opcode::and_);
      case Opcode::atomic_or:
        return by(Opcode::or_);
      case Opcode::atomic_xor:
        return by(Opcode::xor_);
      case Opcode::atomic_inc:
        return x >= y ? 0 : of(x + 1);
      case Opcode::atomic_dec:
        return x == 0 || x > y ? operand : of(x - 1);
      case Opcode::atomic_exchange:
        return operand;
      default:
        PK_UNREACHABLE(info(opcode).name);
    }
  }

  // ---- Memory

  uint64_t remember(size_t count, size_t element_size, size_t cells) {
    stores_.push_back(std::make_unique<Store>(count * element_size, count * cells));
    memories_.push_back({.data = stores_.back()->bytes.data(),
                         .reach = {0, static_cast<int64_t>(count)},
                         .history = &stores_.back()->history,
                         .cells = cells,
                         .starts_undefined = true});
    return memories_.size() - 1;
  }

  // What all threads of a block find: parameters, and fresh shared memory.
  void begin_with_memory() {
    memories_.clear();
    stores_.clear();
    initial_.assign(m_.values.size(), 0);
    for (size_t i = 0; i < m_.params().size(); ++i) {
      const ValueId v = m_.params()[i];
      initial_[v.value] = params_[i];
      if (m_.type(v).kind != TypeKind::ptr) continue;
      initial_[v.value] = memories_.size();
      memories_.push_back({.data = reinterpret_cast<std::byte*>(params_[i]),
                           .reach = reach_[i],
                           .history = &histories_[i]});
    }
    std::optional<uint64_t> dynamic;
    for (const OpId id : m_.blocks[Module::body()].ops) {
      const Op& op = m_.ops[id];
      if (op.opcode != Opcode::shared) continue;
      const size_t size = size_of(m_.type(op.results[0]).dtype);
      const auto bytes = static_cast<size_t>(grid_.shared_bytes);
      uint64_t& pointer = initial_[op.results[0].value];
      if (op.attribute != 0) {
        pointer = remember(op.attribute, size, 1);
        continue;
      }
      if (!dynamic) dynamic = remember(bytes, 1, 1);
      Memory view = memories_[*dynamic];
      view.reach.high = static_cast<int64_t>(bytes / size);
      view.cells = size;
      pointer = memories_.size();
      memories_.push_back(view);
    }
  }

  void check_index(const Thread& t, const Op& op) const {
    const int64_t at = integer(t, op.operands[1]), size = integer(t, op.operands[2]);
    if (at >= 0 && at < size) return;
    fail(op,
         describe(t) + " has the index " + std::to_string(at < 0 ? at - size : at) +
             " along axis " + std::to_string(op.attribute) + " of " + name(op.operands[0]) +
             ", whose size there is " + std::to_string(size),
         {"hint: guard it, as by `if i < x.size`"});
  }
  std::byte* address(const Thread& t, const Op& op, ValueId pointer, ValueId offset,
                     const char* verb) const {
    const Memory& memory = memories_[t.values[pointer.value]];
    const int64_t at = integer(t, offset);
    if (at < memory.reach.low || at >= memory.reach.high)
      fail(op,
           describe(t) + " " + verb + " element " + std::to_string(at) + " of " + name(pointer) +
               ", which has those from " + std::to_string(memory.reach.low) + " to " +
               std::to_string(memory.reach.high - 1),
           {"hint: guard it, as by `if i < x.size`"});
    return memory.data + at * static_cast<int64_t>(size_of(m_.type(pointer).dtype));
  }
  size_t cell(const Memory& memory, int64_t at) const {
    return static_cast<size_t>(at - memory.reach.low) * memory.cells;
  }
  Access access(const Thread& t, OpId id, bool atomic) const {
    return {.thread = block_number_ * threads_of_a_block() + t.number,
            .block = block_number_,
            .epoch = epoch_,
            .op = id,
            .atomic = atomic};
  }

  void require_defined(const Thread& t, OpId id, ValueId pointer, ValueId offset) const {
    const Memory& memory = memories_[t.values[pointer.value]];
    const int64_t at = integer(t, offset);
    if (!memory.starts_undefined || memory.history->written(cell(memory, at))) return;
    fail(m_.ops[id],
         describe(t) + " reads element " + std::to_string(at) + " of " + name(pointer) +
             ", which nobody has written",
         {"shared and local memory begins undefined",
          "hint: store to it first, and let a barrier follow where another thread does"});
  }

  const std::byte* read(Thread& t, OpId id, ValueId pointer, ValueId offset) {
    const std::byte* const from = address(t, m_.ops[id], pointer, offset, "reads");
    require_defined(t, id, pointer, offset);
    const Memory& memory = memories_[t.values[pointer.value]];
    const int64_t at = integer(t, offset);
    if (const auto other = memory.history->read(cell(memory, at), access(t, id, false)))
      race(t, id, "reads", at, pointer, *other);
    return from;
  }

  std::byte* write(Thread& t, OpId id, ValueId pointer, ValueId offset, uint64_t bits,
                   bool atomic) {
    std::byte* const to = address(t, m_.ops[id], pointer, offset, "writes");
    const Memory& memory = memories_[t.values[pointer.value]];
    const int64_t at = integer(t, offset);
    const bool same = load_element(m_.type(pointer).dtype, to) == bits;
    if (const auto other = memory.history->write(cell(memory, at), access(t, id, atomic), same))
      race(t, id, atomic ? "updates" : "writes", at, pointer, *other);
    return to;
  }

  // ---- Reports

  [[noreturn]] void race(const Thread& t, OpId id, const char* verb, int64_t at, ValueId pointer,
                         const Access& other) const {
    const int64_t threads = threads_of_a_block();
    const Op& op = m_.ops[other.op];
    const char* const did = op.opcode == Opcode::load ? "reads"
                            : other.atomic            ? "updates"
                                                      : "writes";
    const bool same_block = other.block == block_number_;
    fail(m_.ops[id],
         "a race: " + describe(t) + " " + verb + " element " + std::to_string(at) + " of " +
             name(pointer) + ", and thread " + text(id_of(other.thread % threads, grid_.threads)) +
             (same_block ? "" : " of block " + text(id_of(other.block, grid_.blocks))) + " " + did +
             " it" + place(op),
         {same_block ? "no barrier lies between them" : "blocks run in any order",
          same_block ? "hint: a barrier between the two, or an atomic operation"
                     : "hint: an atomic operation, or a second kernel"});
  }

  std::string describe(const Thread& t) const {
    return "thread " + text(t.id) + " of block " + text(id_of(block_number_, grid_.blocks));
  }
  std::string place(const Op& op) const {
    const Location where = m_.location(op);
    return where.known() ? " at line " + std::to_string(where.line) : "";
  }
  std::string name(ValueId pointer) const {
    const std::string& given = m_.values[pointer].name;
    return given.empty() ? "an array" : "`" + given + "`";
  }
  [[noreturn]] void fail(const Op& op, std::string message, std::vector<std::string> notes) const {
    throw KernelError(Diagnostic{
        .location = m_.location(op), .message = std::move(message), .notes = std::move(notes)});
  }

  // ---- Values

  static std::array<int64_t, 3> id_of(int64_t number, const std::array<int64_t, 3>& extents) {
    return {number % extents[0], number / extents[0] % extents[1],
            number / (extents[0] * extents[1])};
  }
  int64_t threads_of_a_block() const {
    return grid_.threads[0] * grid_.threads[1] * grid_.threads[2];
  }
  static int64_t integer(const Thread& t, ValueId v) {
    return static_cast<int64_t>(t.values[v.value]);
  }
  static std::vector<uint64_t> all(const Thread& t, std::span<const ValueId> values) {
    std::vector<uint64_t> list;
    for (const ValueId v : values) list.push_back(t.values[v.value]);
    return list;
  }
  static void bind(Thread& t, std::span<const ValueId> to, std::span<const uint64_t> from) {
    for (size_t i = 0; i < to.size(); ++i) t.values[to[i].value] = from[i];
  }

  const Module& m_;
  const std::span<const uint64_t> params_;
  const std::span<const Reach> reach_;
  const Grid grid_;
  std::mt19937_64 random_;
  std::vector<RaceDetector> histories_;  // of the parameters, over all blocks
  uint64_t turns_ = 0;
  // Of the block that runs.
  int64_t block_number_ = 0, epoch_ = 0;
  std::vector<Memory> memories_;
  std::vector<std::unique_ptr<Store>> stores_;
  std::vector<uint64_t> initial_;
};

}  // namespace

void run_threads(const Module& kernel, std::span<const uint64_t> params,
                 std::span<const Reach> reach, const Grid& grid, uint64_t seed) {
  Interpreter(kernel, params, reach, grid, seed).run();
}

}  // namespace picokernel::backend
