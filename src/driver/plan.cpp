// A plan: what a call costs when nothing but pointers and scalars changed.
#include "driver/plan.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "driver/integer_checks.h"
#include "driver/signature.h"
#include "ir/cost.h"
#include "ir/eval.h"
#include "passes/graph/hazards.h"
#include "passes/graph/storage.h"
#include "passes/lower/pointwise.h"
#include "runtime/buffer.h"
#include "runtime/fp_control.h"
#include "support/cache_size.h"
#include "support/check.h"
#include "trace/trace.h"

namespace picokernel::driver {
namespace {

using passes::Stride;

constexpr int64_t kSmallCacheBytes = 256 << 10;  // less than the last-level cache of any machine

void copy_strided(std::byte* to, const std::byte* from, std::span<const int64_t> shape,
                  const int64_t* strides, size_t size) {
  const bool row = shape.size() == 1 && strides[0] == static_cast<int64_t>(size);
  if (shape.empty() || row) {
    std::memcpy(to, from, row ? size * static_cast<size_t>(shape[0]) : size);
    return;
  }
  int64_t inner = static_cast<int64_t>(size);
  for (size_t d = 1; d < shape.size(); ++d) inner *= shape[d];
  for (int64_t i = 0; i < shape[0]; ++i)
    copy_strided(to + i * inner, from + i * strides[0], shape.subspan(1), strides + 1, size);
}

// Of memory, however often it is read.
int64_t touched_bytes(const ir::Module& graph, std::span<const NestLayout> layouts,
                      std::span<const ArrayLayout> arrays) {
  std::map<ir::ValueId, int64_t> elements;  // by root
  for (const NestLayout& nest : layouts)
    for (const AccessLayout& a : nest.accesses) {
      int64_t points = 1;
      for (size_t d = 0; d < nest.extents.size(); ++d)
        if (a.strides[d] != 0) points *= nest.extents[d];
      elements[a.root] += points;
    }
  int64_t bytes = 0;
  for (const auto& [root, touched] : elements) {
    int64_t all = 1;
    for (const int64_t n : arrays[root.value].shape) all *= n;
    bytes += std::min(touched, all) * static_cast<int64_t>(size_of(graph.type(root).dtype));
  }
  return bytes;
}

// Of the parameters.
std::vector<std::string> names_of(const ir::Module& traced) {
  std::vector<std::string> names;
  for (const ir::ValueId param : traced.params()) names.push_back(traced.values[param].name);
  return names;
}

}  // namespace

void copy_to(void* to, const Arg& a) {
  static const trace::NameId name = trace::intern("copy of an argument");
  size_t bytes = size_of(a.dtype);
  for (size_t d = 0; d < a.rank; ++d) bytes *= static_cast<size_t>(a.shape[d]);
  const trace::Span span(trace::Category::alloc, name, bytes);
  copy_strided(static_cast<std::byte*>(to), static_cast<const std::byte*>(a.data),
               {a.shape, a.rank}, a.strides, size_of(a.dtype));
}

CallPlan::CallPlan(Setup setup)
    : prepared_(std::move(setup.prepared)),
      traced_(std::move(setup.traced)),
      note_(std::move(setup.note)),
      backend_(*setup.backend),
      symbols_(std::move(setup.symbols)),
      outputs_(std::move(setup.outputs)),
      allocate_outputs_(setup.allocate_outputs) {
  const ir::Module& graph = prepared_->graph;
  written_.assign(setup.args.size(), false);
  ir::walk(graph, [&](ir::OpId id) {
    if (graph.ops[id].opcode != ir::Opcode::write) return;
    const ir::ValueId root = passes::root_of(graph, graph.ops[id].operands[0]);
    const auto param = std::ranges::find(graph.params(), root);
    const auto i = static_cast<size_t>(param - graph.params().begin());
    if (i < written_.size()) written_[i] = true;
  });
  expect(setup.args, setup.outs);
  const ir::Cost cost = ir::cost(graph);
  const auto eval = [&](SizeId n) { return static_cast<uint64_t>(cost.sizes.eval(n, symbols_)); };
  work_.arg = eval(cost.bytes_read) + eval(cost.bytes_written);
  for (const ir::Cost::Operation& op : cost.operations) work_.operations += eval(op.elements);
  work_.location = setup.definition;
  launch_name_ = trace::intern(traced_->name);
  if (backend_.level == ir::Level::kernel)
    lay_out_nests(setup.args, setup.outs);
  else
    compiled_ = compile(backend_, prepared_, {});
  find_pairs();
}

void CallPlan::expect(std::span<const Arg> args, std::span<const Arg> outs) {
  for (size_t i = 0; i < args.size() + outs.size(); ++i) {
    const Arg& a = array(args, outs, i);
    Expected e{.kind = a.kind,
               .dtype = a.dtype,
               .weak = a.weak,
               .written = i >= args.size() || written_[i],
               .rank = a.rank,
               .first = static_cast<uint32_t>(dims_.size())};
    dims_.insert(dims_.end(), a.shape, a.shape + a.rank);
    dims_.insert(dims_.end(), a.strides, a.strides + a.rank);
    if (a.kind == Arg::Kind::array) {
      e.high = static_cast<int64_t>(size_of(a.dtype));
      for (size_t d = 0; d < a.rank; ++d) {
        const int64_t reach = (a.shape[d] - 1) * a.strides[d];
        (reach < 0 ? e.low : e.high) += reach;
      }
      for (size_t d = 0; d < a.rank; ++d)
        if (a.shape[d] == 0) e.low = e.high = 0;
    }
    expected_.push_back(e);
  }
}

// Which arrays must not share memory with which written ones. Source backends run whole-array
// operations, which handle overlap themselves: only later reads count.
void CallPlan::find_pairs() {
  const bool source = backend_.level == ir::Level::graph;
  const std::vector<std::pair<size_t, size_t>> hazards =
      source ? passes::hazards(compiled_->emitted()) : std::vector<std::pair<size_t, size_t>>{};
  const auto& late_reads = traced_->checks.late_reads;
  for (uint32_t w = 0; w < expected_.size(); ++w) {
    if (expected_[w].kind != Arg::Kind::array || !expected_[w].written) continue;
    for (uint32_t r = 0; r < expected_.size(); ++r) {
      if (r == w || expected_[r].kind != Arg::Kind::array) continue;
      Pair pair{.array = r, .written = w};
      pair.late = std::ranges::find(late_reads, std::pair{r, w}) != late_reads.end();
      const bool both_written = expected_[r].written;
      if (both_written && r > w) continue;  // each such pair once
      if (!both_written && !pair.late) {
        const std::pair<size_t, size_t> order{r, w};
        if (source && std::ranges::find(hazards, order) == hazards.end()) continue;
        pair.pointwise = !source && passes::pointwise(prepared_->graph, prepared_->nests, r, w);
      }
      pairs_.push_back(pair);
    }
  }
}

void CallPlan::lay_out_nests(std::span<const Arg> args, std::span<const Arg> outs) {
  const ir::Module& graph = prepared_->graph;
  const passes::Nests& nests = prepared_->nests;
  std::vector<ArrayLayout> arrays(graph.values.size());
  for (size_t i = 0; i < expected_.size(); ++i) {
    const Arg& a = array(args, outs, i);
    if (a.kind != Arg::Kind::array) continue;
    arrays[graph.params()[i].value] = layout_of(a);
  }
  std::vector<ir::ValueId> scratch;
  ir::walk(graph, [&](ir::OpId id) {
    const ir::Op& op = graph.ops[id];
    if (op.opcode != ir::Opcode::scratch) return;
    const ir::Type& type = graph.type(op.results[0]);
    ArrayLayout& layout = arrays[op.results[0].value];
    int64_t count = 1;
    for (const SizeId s : type.shape) layout.shape.push_back(graph.sizes.eval(s, symbols_));
    layout.strides = k_order_strides(layout.shape, {});
    for (const int64_t s : layout.shape) count *= s;
    scratch.push_back(op.results[0]);
    scratch_.push_back({.bytes = static_cast<size_t>(count) * size_of(type.dtype), .slots = {}});
  });

  passes::LaunchClass launch;
  std::vector<NestLayout> layouts;
  bool reads_what_it_writes = false;
  for (const passes::Nest& nest : nests.nests) {
    layouts.push_back(lay_out(nests, nest, symbols_, arrays));
    launch.nests.push_back(classify(layouts.back()));
    for (const passes::Access& a : nest.accesses)
      reads_what_it_writes = reads_what_it_writes || (a.read && a.written);
  }
  empty_ = std::ranges::all_of(layouts, &NestLayout::empty);
  // Stores past the caches pay when the arrays cannot stay in them. Few bytes stay in any, which
  // saves small first calls the question.
  const int64_t touched = touched_bytes(graph, layouts, arrays);
  launch.nontemporal = !reads_what_it_writes && scratch.empty() && touched > kSmallCacheBytes &&
                       touched > last_level_cache_bytes();
  compiled_ = compile(backend_, prepared_, launch);

  const passes::KernelParams params = passes::kernel_params(graph, nests.nests, launch);
  template_.assign(params.count, 0);
  for (size_t i = 0; i < params.scalars.size(); ++i)
    scalars_.push_back(
        {.param = static_cast<uint32_t>(i), .source = static_cast<uint32_t>(params.scalars[i])});
  for (size_t i = 0; i < params.sizes.size(); ++i)
    template_[params.scalars.size() + i] =
        static_cast<uint64_t>(graph.sizes.eval(params.sizes[i], symbols_));
  for (size_t n = 0; n < layouts.size(); ++n) {
    const NestLayout& layout = layouts[n];
    const passes::NestParams& p = params.nests[n];
    for (size_t d = 0; d < layout.extents.size(); ++d)
      template_[p.extents + d] = layout.empty ? 0 : static_cast<uint64_t>(layout.extents[d]);
    size_t stride_slot = p.strides;
    for (size_t a = 0; a < layout.accesses.size(); ++a) {
      const AccessLayout& access = layout.accesses[a];
      Slot slot{
          .param = static_cast<uint32_t>(p.pointers + a),
          .source = 0,
          .offset = access.offset * static_cast<int64_t>(size_of(graph.type(access.root).dtype))};
      if (const auto own = std::ranges::find(scratch, access.root); own != scratch.end()) {
        scratch_[static_cast<size_t>(own - scratch.begin())].slots.push_back(slot);
      } else {
        slot.source = static_cast<uint32_t>(std::ranges::find(graph.params(), access.root) -
                                            graph.params().begin());
        pointers_.push_back(slot);
      }
      for (size_t d = 0; d < layout.extents.size(); ++d)
        if (launch.nests[n].strides[a][d] == Stride::any)
          template_[stride_slot++] = static_cast<uint64_t>(access.strides[d]);
    }
  }
}

bool CallPlan::matches(std::span<const Arg> args, std::span<const Arg> outs) const noexcept {
  const size_t count = args.size() + (allocate_outputs_ ? 0 : outs.size());
  if (allocate_outputs_ != outs.empty() ||
      count != (allocate_outputs_ ? expected_.size() - outputs_.size() : expected_.size()))
    return false;
  for (size_t i = 0; i < count; ++i) {
    const Expected& e = expected_[i];
    const Arg& a = array(args, outs, i);
    if (a.kind != e.kind || a.dtype != e.dtype || a.weak != e.weak || a.rank != e.rank ||
        (e.written && !a.writeable))
      return false;
    const int64_t* dims = dims_.data() + e.first;
    for (size_t d = 0; d < e.rank; ++d)
      if (a.shape[d] != dims[d] || a.strides[d] != dims[e.rank + d]) return false;
  }
  return true;
}

void CallPlan::check_ranges(std::span<const Arg> args) const {
  for (const ir::RangeCheck& check : prepared_->graph.range_checks) {
    const Arg& a = args[check.param];
    const ir::Scalar given{a.dtype, a.bits};
    const ir::Scalar taken = ir::cast(given, check.dtype);
    const auto negative = [](ir::Scalar x) {
      return is_signed(x.dtype) && static_cast<int64_t>(x.bits) < 0;
    };
    if (ir::cast(taken, a.dtype) == given && negative(taken) == negative(given)) continue;
    const std::string value = is_unsigned(a.dtype) ? std::to_string(a.bits)
                                                   : std::to_string(static_cast<int64_t>(a.bits));
    throw LaunchError(Diagnostic{
        .severity = Severity::error,
        .location = {},
        .message = "kernel " + traced_->name + ": Python integer " + value +
                   " is out of bounds for " + std::string(numpy_name(check.dtype)) + " (" +
                   label(args, check.param, names_of(*traced_)) + ")",
        .notes = {"a Python int takes the type of the array that it meets (NEP 50): pass a NumPy "
                  "scalar of a wider type, or cast the array"}});
  }
}

bool CallPlan::conflict(const Pair& pair, std::span<const Arg> args,
                        std::span<const Arg> outs) const noexcept {
  const Expected &r = expected_[pair.array], &w = expected_[pair.written];
  const Arg &x = array(args, outs, pair.array), &y = array(args, outs, pair.written);
  const auto base_x = reinterpret_cast<intptr_t>(x.data),
             base_y = reinterpret_cast<intptr_t>(y.data);
  if (base_x + r.high <= base_y + w.low || base_y + w.high <= base_x + r.low) return false;
  if (!pair.pointwise || x.data != y.data || r.dtype != w.dtype || r.rank != w.rank) return true;
  const int64_t *dx = dims_.data() + r.first, *dy = dims_.data() + w.first;
  return !std::equal(dx, dx + 2 * r.rank, dy);
}

std::vector<size_t> CallPlan::inputs_to_copy(std::span<const Arg> args,
                                             std::span<const Arg> outs) const {
  check_ranges(args);
  check_integers(traced_->name, *traced_, args, symbols_);
  std::vector<size_t> copies;
  const auto label_of = [&](size_t i) {
    return i < args.size()
               ? label(args, i, names_of(*traced_))
               : "out" + (outs.size() > 1 ? "[" + std::to_string(i - args.size()) + "]" : "");
  };
  for (const Pair& pair : pairs_) {
    if (!conflict(pair, args, outs)) continue;
    if (expected_[pair.array].written)
      throw LaunchError("kernel " + traced_->name +
                        ": two of the arrays that it writes share memory (" + label_of(pair.array) +
                        " and " + label_of(pair.written) + ")\n  pass arrays that do not overlap");
    if (pair.late)
      throw LaunchError("kernel " + traced_->name + ": " + label_of(pair.array) +
                        " shares memory with " + label_of(pair.written) +
                        ", and the kernel reads the one after it has written the other" +
                        "\n  pass a copy of one of them");
    if (std::ranges::find(copies, pair.array) == copies.end()) copies.push_back(pair.array);
  }
  return copies;
}

void CallPlan::run(std::span<const Arg> args, std::span<const Arg> outs) const {
  if (empty_) return;
  constexpr size_t kOnStack = 64;
  uint64_t on_stack[kOnStack];
  std::vector<uint64_t> on_heap;
  uint64_t* params = on_stack;
  if (template_.size() > kOnStack) {
    on_heap.resize(template_.size());
    params = on_heap.data();
  }
  std::memcpy(params, template_.data(), template_.size() * sizeof(uint64_t));
  for (const Slot& s : scalars_) params[s.param] = args[s.source].bits;
  for (const Slot& s : pointers_)
    params[s.param] = reinterpret_cast<uint64_t>(array(args, outs, s.source).data) +
                      static_cast<uint64_t>(s.offset);
  if (scratch_.empty()) {
    const trace::KernelSpan span(trace::Category::launch, launch_name_, work_);
    compiled_->executable->launch(params);
    return;
  }
  std::vector<runtime::Buffer> buffers;
  for (const Scratch& s : scratch_) {
    buffers.push_back(runtime::allocate(s.bytes));
    for (const Slot& slot : s.slots)
      params[slot.param] =
          reinterpret_cast<uint64_t>(buffers.back().data) + static_cast<uint64_t>(slot.offset);
  }
  const trace::KernelSpan span(trace::Category::launch, launch_name_, work_);
  compiled_->executable->launch(params);
}

CallPlan::Setup CallPlan::setup_for(std::vector<int64_t> symbols, std::span<const Arg> args,
                                    std::span<const Arg> outs) const {
  return {.prepared = prepared_,
          .traced = traced_,
          .note = note_,
          .backend = &backend_,
          .symbols = std::move(symbols),
          .outputs = outputs_,
          .args = args,
          .outs = outs,
          .definition = work_.location};
}

std::shared_ptr<const CallPlan> CallPlan::relaid(std::span<const Arg> args,
                                                 std::span<const Arg> outs) const {
  const runtime::FpControlScope fp_control;
  bool same = true;  // a trace holds for sizes that are 1 where its own were
  for (size_t i = 0; i < args.size(); ++i)
    for (size_t d = 0; d < args[i].rank; ++d)
      same = same && (args[i].shape[d] == 1) == (dims_[expected_[i].first + d] == 1);
  auto symbols = same ? bind_symbols(*traced_, args) : std::nullopt;
  if (!symbols)
    throw LaunchError("kernel " + traced_->name +
                      " was traced for sizes that do not fit these arrays");
  return std::make_shared<CallPlan>(setup_for(std::move(*symbols), args, outs));
}

bool CallPlan::may_share(size_t read, size_t written) const {
  const Expected &r = expected_[read], &w = expected_[written];
  const int64_t *dx = dims_.data() + r.first, *dy = dims_.data() + w.first;
  return r.dtype == w.dtype && r.rank == w.rank && std::equal(dx, dx + 2 * r.rank, dy) &&
         std::ranges::any_of(pairs_, [&](const Pair& p) {
           return p.array == read && p.written == written && p.pointwise;
         });
}

void CallPlan::launch(std::span<const Arg> args, std::span<const Arg> outs) const {
  PK_CHECK(compiled_->executable != nullptr, "a source backend has no executable");
  bool plain = prepared_->graph.range_checks.empty() && traced_->checks.integers.empty();
  for (const Pair& pair : pairs_) plain = plain && !conflict(pair, args, outs);
  if (plain) {
    run(args, outs);
    return;
  }
  const std::vector<size_t> copies = inputs_to_copy(args, outs);
  if (copies.empty()) {
    run(args, outs);
    return;
  }
  // Copies are contiguous: another plan, for this call alone.
  std::vector<Arg> changed(args.begin(), args.end());
  std::vector<runtime::Buffer> buffers;
  std::vector<std::vector<int64_t>> strides(args.size());
  for (const size_t i : copies) {
    const Arg& a = args[i];
    const std::span<const int64_t> shape(a.shape, a.rank);
    const size_t size = size_of(a.dtype);
    strides[i] = k_order_strides(shape, {});
    size_t bytes = size;
    for (const int64_t s : shape) bytes *= static_cast<size_t>(s);
    for (int64_t& s : strides[i]) s *= static_cast<int64_t>(size);
    buffers.push_back(runtime::allocate(bytes));
    copy_to(buffers.back().data, a);
    changed[i].data = buffers.back().data;
    changed[i].strides = strides[i].data();
  }
  const CallPlan plan(setup_for(symbols_, changed, outs));
  plan.run(changed, outs);
}

}  // namespace picokernel::driver
