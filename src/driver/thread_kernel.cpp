// Launches of kernels of threads: arguments to parameters, and the checks before.
#include "driver/thread_kernel.h"

#include <algorithm>
#include <array>
#include <limits>

#include "driver/signature.h"
#include "frontend/state.h"
#include "ir/text.h"
#include "runtime/fp_control.h"
#include "support/check.h"

namespace picokernel::driver {
namespace {

using frontend::threads::Argument;
using runtime::Grid;
using runtime::Reach;

constexpr int64_t kMaxThreads = 1024, kMaxSharedBytes = 1 << 20;

int64_t element_stride(const Arg& a, size_t d) {
  return a.strides[d] / static_cast<int64_t>(size_of(a.dtype));
}

// Sizes of 1 and 0 may have any stride.
bool is_contiguous(const Arg& a) {
  int64_t expected = 1;
  for (size_t d = a.rank; d-- > 0;) {
    if (a.shape[d] == 0) return true;
    if (a.shape[d] != 1 && element_stride(a, d) != expected) return false;
    expected *= a.shape[d];
  }
  return true;
}

Argument kind_of(const Arg& a) {
  const bool array = a.kind == Arg::Kind::array;
  return {.kind = array ? Argument::Kind::array : Argument::Kind::number,
          .dtype = a.dtype,
          .weak = a.weak,
          .rank = array ? a.rank : uint8_t{0},
          .contiguous = array && is_contiguous(a)};
}
std::vector<Argument> kinds_of(std::span<const Arg> args) {
  std::vector<Argument> list;
  for (const Arg& a : args) list.push_back(kind_of(a));
  return list;
}

Reach reach_of(const Arg& a) {
  Reach reach{0, 1};
  for (size_t d = 0; d < a.rank; ++d) {
    if (a.shape[d] == 0) return {};
    const int64_t last = (a.shape[d] - 1) * element_stride(a, d);
    (last < 0 ? reach.low : reach.high) += last;
  }
  return reach;
}

// Arguments whose memory some store or atomic changes.
std::vector<bool> written_by(const ir::Module& m, std::span<const Argument> kinds) {
  std::vector<bool> written(kinds.size());
  std::map<ir::ValueId, size_t> arguments;  // by pointer
  size_t param = 0;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const Argument& a = kinds[i];
    arguments[m.params()[param]] = i;
    param += a.kind == Argument::Kind::number ? 1u : 1u + (a.contiguous ? 1u : 2u) * a.rank;
  }
  ir::walk(m, [&](ir::OpId id) {
    const ir::Op& op = m.ops[id];
    const bool store = op.opcode == ir::Opcode::store;
    if (!store && !ir::info(op.opcode).atomic()) return;
    const auto found = arguments.find(op.operands[store ? 1 : 0]);
    if (found != arguments.end()) written[found->second] = true;
  });
  return written;
}

}  // namespace

std::string ThreadKernel::describe() const {
  const Location& where = program_[0].where;
  return "kernel '" + name() + "' (" + where.file.substr(where.file.rfind('/') + 1) + ":" +
         std::to_string(where.line) + ")";
}

frontend::threads::Options ThreadKernel::options_for(const backend::Backend* backend) const {
  const bool interpreted = backend != nullptr && backend->threads == backend::Threads::interpreted;
  return {.floats = floats_, .checks = interpreted, .guards = check_ || interpreted};
}

void ThreadKernel::raise_reported(std::span<const int64_t> report, const Variant& v,
                                  const Grid& grid) const {
  using namespace frontend::threads;
  if (report[kLeastKey] == std::numeric_limits<int64_t>::max()) return;
  const Site& site = v.sites[static_cast<size_t>(report[kLeastKey] % kMaxSites)];
  const int64_t number = report[kLeastKey] / kMaxSites;
  const auto& [x, y, z] = grid.threads;
  const auto text = [](int64_t n, const std::array<int64_t, 3>& of) {
    return "(" + std::to_string(n % of[0]) + ", " + std::to_string(n / of[0] % of[1]) + ", " +
           std::to_string(n / (of[0] * of[1])) + ")";
  };
  const std::string thread = "thread " + text(number % (x * y * z), grid.threads) + " of block " +
                             text(number / (x * y * z), grid.blocks);
  Diagnostic d{.location = site.where};
  if (!site.exception.empty()) {
    d.message =
        thread + " raises " + site.exception + (site.message.empty() ? "" : ": " + site.message);
  } else {
    const bool told = report[kClaimedKey] == report[kLeastKey];
    const std::string array = site.array.empty() ? "an array" : "`" + site.array + "`";
    d.message = thread + " has " +
                (told ? "the index " + std::to_string(report[kIndex]) : "an index out of bounds") +
                " along axis " + std::to_string(site.axis) + " of " + array +
                (told ? ", whose size there is " + std::to_string(report[kSize]) : "");
    d.notes = {"hint: guard it, as by `if i < x.size`"};
  }
  throw KernelError(std::move(d));
}

ir::Module ThreadKernel::module(std::span<const Arg> args,
                                const backend::Backend* emitted_by) const {
  ir::Module made = frontend::threads::compile(program_, kinds_of(args), options_for(emitted_by));
  return emitted_by == nullptr ? made : lower_threads_for(*emitted_by, std::move(made));
}

std::string ThreadKernel::source(std::span<const Arg> args, const backend::Backend& backend) const {
  if (backend.threads == backend::Threads::none)
    throw LaunchError(Diagnostic{
        .message = "backend '" + std::string(backend.name) + "' has no kernels of threads",
        .notes = {"hint: cuda, opencl, cpu, ref"}});
  const ir::Module made = module(args, &backend);
  if (backend.threads != backend::Threads::grid) return ir::print(made);
  if (const auto refused = backend.check(made); !refused.empty()) throw CompileError(refused);
  return backend.emit(made).code;
}

const ThreadKernel::Variant& ThreadKernel::variant(std::span<const Arg> args,
                                                   const backend::Backend& backend) const {
  const Variant* const last = last_.load(std::memory_order_acquire);
  if (last != nullptr && last->backend == &backend &&
      std::ranges::equal(last->kinds, args, {}, {}, kind_of))
    return *last;
  Key key{&backend, kinds_of(args)};
  const std::lock_guard lock(mutex_);
  const auto known = variants_.find(key);
  const auto remember = [this](const Variant& v) -> const Variant& {
    last_.store(&v, std::memory_order_release);
    return v;
  };
  if (known != variants_.end()) return remember(*known->second);
  auto made = std::make_unique<Variant>();
  made->backend = &backend;
  made->kinds = key.second;
  const runtime::FpControlScope fp_control;  // constants are folded here
  made->module = std::make_shared<const ir::Module>(
      frontend::threads::compile(program_, key.second, options_for(&backend), &made->sites));
  made->written = written_by(*made->module, key.second);
  made->compiled = compile_threads(backend, made->module);
  return remember(*variants_.emplace(std::move(key), std::move(made)).first->second);
}

void ThreadKernel::launch(std::span<const Arg> args, const Grid& grid,
                          const backend::Backend& backend, uint64_t seed) const {
  const auto fail = [&](std::string message, std::vector<std::string> notes) {
    throw LaunchError(Diagnostic{.message = describe() + message, .notes = std::move(notes)});
  };
  if (args.size() != parameters().size()) {
    const size_t captured = program_[0].captured;
    std::string list;
    for (size_t i = 0; i + captured < parameters().size(); ++i)
      list += (i == 0 ? "" : ", ") + parameters()[i];
    fail(" takes " + std::to_string(parameters().size() - captured) + " arguments, " +
             std::to_string(args.size() - captured) + " were given",
         {"parameters: " + list});
  }
  const auto& [x, y, z] = grid.threads;
  if (x * y * z > kMaxThreads)
    fail(" is launched with blocks of " + std::to_string(x) + " x " + std::to_string(y) + " x " +
             std::to_string(z) + " threads",
         {"a block has up to " + std::to_string(kMaxThreads) + " threads in all",
          "hint: kernel[grid, 256](...), or kernel.forall(n)(...)"});
  if (grid.shared_bytes < 0 || grid.shared_bytes > kMaxSharedBytes)
    fail(" is launched with " + std::to_string(grid.shared_bytes) + " bytes of shared memory",
         {"a block has up to " + std::to_string(kMaxSharedBytes)});
  const Variant& v = variant(args, backend);
  check_written(name(), parameters(), v.written, args, program_[0].where);
  std::vector<uint64_t> params;
  std::vector<Reach> reach;
  params.reserve(8 * args.size() + 8);
  reach.reserve(8 * args.size() + 8);
  for (const Arg& a : args) {
    params.push_back(a.kind == Arg::Kind::array ? reinterpret_cast<uint64_t>(a.data) : a.bits);
    reach.push_back(a.kind == Arg::Kind::array ? reach_of(a) : Reach{});
    if (a.kind != Arg::Kind::array) continue;
    for (size_t d = 0; d < a.rank; ++d) params.push_back(static_cast<uint64_t>(a.shape[d]));
    if (!is_contiguous(a))
      for (size_t d = 0; d < a.rank; ++d)
        params.push_back(static_cast<uint64_t>(element_stride(a, d)));
    reach.resize(params.size());
  }
  for (const ir::RangeCheck& check : v.module->range_checks) {
    const uint64_t bits = params[check.param];
    const bool large = v.module->type(v.module->params()[check.param]).dtype == DType::u64;
    if (!frontend::fits(large ? frontend::Literal(bits) : static_cast<int64_t>(bits), check.dtype))
      fail(" gets a Python integer that does not fit " + std::string(numpy_name(check.dtype)) +
               ", the type of what it meets",
           {"hint: pass np.int64(...) to compute in int64"});
  }
  if (std::ranges::any_of(grid.blocks, [](int64_t n) { return n == 0; })) return;
  std::array<int64_t, frontend::threads::kReportSlots> report{std::numeric_limits<int64_t>::max(),
                                                              -1, 0, 0};
  if (options_for(&backend).guards) {
    params.push_back(reinterpret_cast<uint64_t>(report.data()));
    reach.push_back({0, frontend::threads::kReportSlots});
  }
  v.compiled->executable->launch(params, reach, grid, seed);
  raise_reported(report, v, grid);
}

}  // namespace picokernel::driver
