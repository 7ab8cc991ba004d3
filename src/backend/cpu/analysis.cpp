// Uniform, affine and varying values; the choice of lanes, interleaving and tail.
#include "backend/cpu/analysis.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>

#include "support/check.h"

namespace picokernel::backend::cpu {
namespace {

using ir::Opcode;
using ir::ValueId;

constexpr unsigned kMaxUnits = 4;
constexpr int64_t kStreamLanes = 2;  // the fewest lanes of any group with more than one

class Analyser {
 public:
  Analyser(const ir::Module& m, const ir::Op& parallel, const Target& target)
      : m_(m), body_(m.blocks[ir::ParallelView{parallel}.body()]), target_(target) {
    result_.variance.resize(m.values.size());
  }

  BodyAnalysis run() {
    for (const ir::OpId id : body_.ops) {
      result_.vectorised &= can_be_masked(m_.ops[id]);
      masked_ |= runs_masked(m_, m_.ops[id]);
    }
    if (!body_.params.empty()) set(body_.params.back(), {Variation::affine, 1});
    for (const ir::OpId id : body_.ops) classify(m_.ops[id]);
    if (result_.vectorised && !masked_) find_interleaved();
    if (masked_)
      choose_masked_shape();
    else
      choose_shape();
    find_tiles();
    price();
    return std::move(result_);
  }

 private:
  void set(ValueId v, Variance variance) { result_.variance[v.value] = variance; }
  const Variance& of(ValueId v) const { return result_.variance[v.value]; }
  bool varies(ValueId v) const { return of(v).kind != Variation::uniform; }
  DType dtype(ValueId v) const { return m_.type(v).dtype; }

  std::optional<int64_t> constant(ValueId v) const {
    const ir::Op* op = m_.def(v);
    if (op == nullptr || op->opcode != Opcode::constant) return std::nullopt;
    return static_cast<int64_t>(op->attribute);
  }

  // Wrapping, like the indices themselves.
  static int64_t wrap(uint64_t v) { return static_cast<int64_t>(v); }

  Variance classify_pure(const ir::Op& op) {
    const auto any = [&](auto&& test) { return std::ranges::any_of(op.operands, test); };
    if (!any([&](ValueId v) { return varies(v); })) return {};
    const Variance varying{Variation::varying, {}};
    if (dtype(op.results[0]) != DType::i64 ||
        any([&](ValueId v) { return of(v).kind >= Variation::periodic; }))
      return varying;
    const ValueId x = op.operands[0], y = op.operands.size() > 1 ? op.operands[1] : x;
    const auto step = [&](ValueId v) { return varies(v) ? of(v).step : std::optional<int64_t>(0); };
    if (op.opcode == Opcode::add || op.opcode == Opcode::sub) {
      Variance r{Variation::affine, {}};
      if (const auto a = step(x), b = step(y); a && b)
        r.step = op.opcode == Opcode::add ? wrap(uint64_t(*a) + uint64_t(*b))
                                          : wrap(uint64_t(*a) - uint64_t(*b));
      return r;
    }
    if (op.opcode == Opcode::mul && varies(x) != varies(y)) {
      Variance r{Variation::affine, {}};
      const auto a = step(varies(x) ? x : y), b = constant(varies(x) ? y : x);
      if (a && b) r.step = wrap(uint64_t(*a) * uint64_t(*b));
      return r;
    }
    // Of the index itself, and one period in a body.
    if (op.opcode == Opcode::mod && !masked_ && x == body_.params.back() &&
        constant(y).value_or(0) > 0 && period_.value_or(*constant(y)) == *constant(y))
      return {Variation::periodic, period_ = constant(y)};
    return varying;
  }

  void classify(const ir::Op& op) {
    if (masked_) return classify_masked(op);
    stored_ |= op.opcode == Opcode::store;
    if (op.results.empty()) return;
    const ir::OpInfo& facts = ir::info(op.opcode);
    if (facts.pure()) {
      set(op.results[0], classify_pure(op));
    } else if (op.opcode == Opcode::load) {
      // Points run in any order: a load may move before other points, never before a store of its
      // own.
      const bool hoisted = !varies(op.operands[0]) && !varies(op.operands[1]) && !stored_;
      set(op.results[0], hoisted ? Variance{} : Variance{Variation::varying, {}});
    } else {
      for (const ValueId v : op.results) set(v, {Variation::varying, {}});
      for (const ir::BlockId region : op.regions) classify_region(region);
    }
  }

  // Constants apart, what is computed in a region stays there.
  void classify_region(ir::BlockId region) {
    const Variance varying{Variation::varying, {}};
    for (const ValueId v : m_.blocks[region].params) set(v, varying);
    for (const ir::OpId id : m_.blocks[region].ops) {
      const ir::Op& op = m_.ops[id];
      if (op.opcode != Opcode::constant)
        for (const ValueId v : op.results) set(v, varying);
      for (const ir::BlockId inner : op.regions) classify_region(inner);
    }
  }

  // In a body with masked regions: uniform and affine values of these are computed before the loop
  // unless they depend on its turns.
  void classify_masked(const ir::Op& op) {
    const Variance varying{Variation::varying, {}};
    if (ir::info(op.opcode).pure()) {
      Variance v = classify_pure(op);
      v.local = std::ranges::any_of(op.operands, [&](ValueId x) { return of(x).local; });
      set(op.results[0], v);
      return;
    }
    for (const ValueId v : op.results) set(v, varying);
    if (!runs_masked(m_, op)) {
      for (const ir::BlockId region : op.regions) classify_region(region);
      return;
    }
    for (const ir::BlockId region : op.regions) {
      for (const ValueId v : m_.blocks[region].params) set(v, varying);
      if (op.opcode == Opcode::for_) {
        set(m_.blocks[region].params[0], {.kind = Variation::uniform, .step = {}, .local = true});
        for (size_t i = 0; i < 3; ++i) result_.vectorised &= !varies(op.operands[i]);
      }
      for (const ir::OpId id : m_.blocks[region].ops) {
        const ir::Op& inner = m_.ops[id];
        classify_masked(inner);
        if (inner.results.empty() || !ir::info(inner.opcode).pure()) continue;
        const Variance& v = of(inner.results[0]);
        if (!v.local && v.kind != Variation::varying) result_.hoisted.push_back(id);
      }
    }
  }

  bool can_be_masked(const ir::Op& op) const {
    const auto fine = [&](ir::OpId id) { return can_be_masked(m_.ops[id]); };
    return !ir::info(op.opcode).atomic() && op.opcode != Opcode::alloc &&
           op.opcode != Opcode::parallel && op.opcode != Opcode::return_ &&
           std::ranges::all_of(op.regions, [&](ir::BlockId region) {
             return std::ranges::all_of(m_.blocks[region].ops, fine);
           });
  }

  // Offsets `base` and `base + constant`.
  std::pair<ValueId, int64_t> base_and_delta(ValueId offset) const {
    const ir::Op* op = m_.def(offset);
    if (op == nullptr || op->opcode != Opcode::add) return {offset, 0};
    if (const auto delta = constant(op->operands[1])) return {op->operands[0], *delta};
    return {offset, 0};
  }

  void find_interleaved() {
    using Key = std::tuple<bool, ValueId, ValueId>;     // store, pointer, base
    std::map<Key, std::map<int64_t, ir::OpId>> groups;  // by distance from the base
    std::map<Key, std::pair<ir::OpId, ir::OpId>> ends;  // first and last in the program
    for (const ir::OpId id : body_.ops) {
      const ir::Op& op = m_.ops[id];
      const bool store = op.opcode == Opcode::store;
      if (!store && op.opcode != Opcode::load) continue;
      const ValueId offset = op.operands[store ? 2 : 1];
      const int64_t step = of(offset).kind == Variation::affine ? of(offset).step.value_or(0) : 0;
      if (step < 2 || step > 4) continue;
      const auto [base, delta] = base_and_delta(offset);
      const Key key{store, op.operands[store ? 1 : 0], base};
      if (!groups[key].try_emplace(delta, id).second)
        groups[key][delta] = {};  // twice: not this one
      ends.try_emplace(key, id, id).first->second.second = id;
    }
    for (const auto& [key, members] : groups) {
      const ir::Op& op = m_.ops[ends[key].first];
      const auto step = static_cast<size_t>(*of(op.operands[std::get<0>(key) ? 2 : 1]).step);
      const int64_t span = members.rbegin()->first - members.begin()->first;
      if (members.size() != step || span != static_cast<int64_t>(step) - 1) continue;
      if (std::ranges::any_of(members, [](const auto& m) { return !m.second.valid(); })) continue;
      Interleaved all{.members = {}, .at = std::get<0>(key) ? ends[key].second : ends[key].first};
      for (const auto& [delta, id] : members) all.members.push_back(id);
      result_.interleaved.push_back(std::move(all));
    }
  }

  // Lanes from the widest element that varies, units from the registers that are left.
  void choose_shape() {
    unsigned widest = 0, narrowest_access = 64;
    bool calls = false, any_access = false, interleaved = false;
    size_t weight = 0, other_strides = 0;
    int64_t period = 1;
    std::set<ValueId> broadcast;
    std::vector<std::pair<size_t, int>> events;  // (op number, +1 or -1) of live vectors
    std::vector<size_t> last(m_.values.size(), 0);
    for (size_t i = 0; i < body_.ops.size(); ++i)
      for (const ValueId v : outer_operands(m_, m_.ops[body_.ops[i]])) last[v.value] = i;

    for (size_t i = 0; i < body_.ops.size(); ++i) {
      const ir::Op& op = m_.ops[body_.ops[i]];
      const bool load = op.opcode == Opcode::load, store = op.opcode == Opcode::store;
      if (load || store) {
        const ValueId offset = op.operands[load ? 1 : 2];
        const unsigned bits = bits_of(m_.type(op.operands[load ? 0 : 1]).dtype);
        if (load && !varies(op.results[0])) continue;
        if (store && !varies(offset) && !varies(op.operands[0])) continue;
        widest = std::max(widest, bits);
        if (of(offset).kind == Variation::varying) widest = std::max(widest, 64u);
        if (result_.interleaved_with(body_.ops[i]) != nullptr) {
          interleaved = true;
          result_.nontemporal |= store && op.flag();
        } else if (of(offset).unit()) {
          narrowest_access = std::min(narrowest_access, bits);
          any_access = true;
          result_.nontemporal |= store && op.flag();
        } else if (of(offset).kind == Variation::periodic) {
          period = std::max(period, *of(offset).step);
        } else if (varies(offset)) {
          ++other_strides;
        }
        if (store && !varies(op.operands[0])) broadcast.insert(op.operands[0]);
      } else if (!op.results.empty() && of(op.results[0]).kind == Variation::varying) {
        ++weight;
        widest = std::max(widest, bits_of(dtype(op.results[0])));
        for (const ValueId v : op.operands) {
          widest = std::max(widest, bits_of(dtype(v)));
          if (!varies(v)) broadcast.insert(v);
        }
        calls |= op.opcode == Opcode::gcd;
      }
      for (const ValueId v : op.results)
        if (of(v).kind == Variation::varying && last[v.value] > i) {
          events.emplace_back(i, 1);
          events.emplace_back(last[v.value], -1);
        }
    }
    if (!result_.vectorised || widest == 0) return;

    std::ranges::sort(events);
    int live = 0, most = 1;
    for (const auto& [at, change] : events) most = std::max(most, live += change);
    result_.lanes = std::max(1u, target_.vector_bits / widest);
    const size_t registers = target_.vector_registers;
    const size_t free = registers > broadcast.size() + 2 ? registers - broadcast.size() - 2 : 1;
    // Long bodies have parallelism enough of their own, and compile slowly.
    constexpr size_t kLong = 48, kVeryLong = 90;
    const unsigned useful = weight > kLong ? 1 : weight > 12 ? 2 : kMaxUnits;
    size_t units = std::min<size_t>(free / static_cast<size_t>(most), useful);
    if (other_strides > weight) {
      // Gathering lanes would cost more than vectors save.
      result_.lanes = 1;
      result_.units = period > 1 ? static_cast<unsigned>(period) : kMaxUnits;
      return;
    }
    if (calls || other_strides > 0 || interleaved) units = 1;  // which are several vectors each
    result_.units = units >= 4 ? 4 : units >= 2 ? 2 : 1;
    // The main loop takes whole periods, so that each unit always meets the same part of one.
    if (period > 1)
      result_.units = static_cast<unsigned>(period / std::gcd(period, int64_t{kStreamLanes}));
    result_.masked_tail =
        other_strides == 0 && any_access && !interleaved && target_.has_masks(narrowest_access);
    result_.masked_loops =
        result_.masked_tail && target_.masks_any_type && weight > kVeryLong && period == 1;
  }

  // One vector of the widest element that varies, and masks throughout.
  void choose_masked_shape() {
    unsigned widest = 8;
    const auto widen = [&](ValueId v) {
      if (of(v).kind == Variation::varying) widest = std::max(widest, bits_of(dtype(v)));
    };
    const std::function<void(ir::BlockId)> look = [&](ir::BlockId block) {
      for (const ValueId v : m_.blocks[block].params) widen(v);
      for (const ir::OpId id : m_.blocks[block].ops) {
        const ir::Op& op = m_.ops[id];
        if (op.opcode == Opcode::store) widest = std::max(widest, bits_of(dtype(op.operands[0])));
        for (const ValueId v : op.results) widen(v);
        for (const ir::BlockId region : op.regions) look(region);
      }
    };
    for (const ir::OpId id : body_.ops) {
      const ir::Op& op = m_.ops[id];
      if (op.opcode == Opcode::store) widest = std::max(widest, bits_of(dtype(op.operands[0])));
      for (const ValueId v : op.results) widen(v);
      for (const ir::BlockId region : op.regions) look(region);
    }
    result_.lanes = std::max(1u, target_.vector_bits / widest);
    result_.masked_tail = result_.masked_loops = true;
    result_.vectorised &= result_.lanes > 1;
  }

  // The terms of a sum.
  bool has_term(ValueId sum, ValueId term) const {
    if (sum == term) return true;
    const ir::Op* op = m_.def(sum);
    return op != nullptr && op->opcode == Opcode::add &&
           (has_term(op->operands[0], term) || has_term(op->operands[1], term));
  }

  void find_tiles() {
    if (!result_.vectorised || masked_ || body_.params.size() < 2) return;
    const ValueId outer = body_.params[body_.params.size() - 2];
    bool along = false, across = false;
    for (const ir::OpId id : body_.ops) {
      const ir::Op& op = m_.ops[id];
      const bool load = op.opcode == Opcode::load;
      if (!load && op.opcode != Opcode::store) continue;
      const ValueId offset = op.operands[load ? 1 : 2];
      along |= of(offset).unit();
      across |=
          of(offset).kind == Variation::affine && !of(offset).unit() && has_term(offset, outer);
    }
    result_.tiled = along && across;
    if (result_.tiled) result_.nontemporal = false;  // rows of tiles are short
  }

  // Only the number of threads depends on these: being right within a factor of two is enough.
  double picoseconds(const ir::Op& op) const {
    constexpr double kCall = 6000, kVectorOp = 270, kDivision = 2000, kScalarDivision = 3000;
    if (op.results.empty() || !varies(op.results[0]) || !ir::info(op.opcode).pure()) return 0;
    if (op.opcode == Opcode::gcd) return kCall;
    const DType t = dtype(op.results[0]);
    const bool divides = op.opcode == Opcode::floordiv || op.opcode == Opcode::mod;
    if (divides && size_of(t) == 8) return kScalarDivision;
    if (divides || op.opcode == Opcode::div || op.opcode == Opcode::sqrt)
      return kDivision / result_.lanes;
    return kVectorOp / result_.lanes;
  }

  bool loops(const ir::Op& op) const {
    const auto in_region = [&](ir::BlockId region) {
      return std::ranges::any_of(m_.blocks[region].ops,
                                 [&](ir::OpId id) { return loops(m_.ops[id]); });
    };
    return op.opcode == Opcode::gcd || op.opcode == Opcode::while_ || op.opcode == Opcode::for_ ||
           std::ranges::any_of(op.regions, in_region);
  }

  void price() {
    constexpr double kScalarBody = 20'000;
    if (!result_.vectorised) result_.cost.picoseconds = kScalarBody;
    price(body_.ops);
    result_.cost.picoseconds = std::max(result_.cost.picoseconds, 5.0);
  }

  void price(std::span<const ir::OpId> ops) {
    constexpr double kPerByte = 5, kPerStridedAccess = 400;
    PointCost& cost = result_.cost;
    for (const ir::OpId id : ops) {
      const ir::Op& op = m_.ops[id];
      if (runs_masked(m_, op))
        for (const ir::BlockId region : op.regions) {
          constexpr double kUsualThreads = 256;  // of a block
          const double before = cost.picoseconds;
          price(m_.blocks[region].ops);
          if (op.opcode == Opcode::parallel)
            cost.picoseconds += (cost.picoseconds - before) * kUsualThreads;
        }
      cost.picoseconds += picoseconds(op);
      cost.loops |= loops(op);
      if (op.opcode != Opcode::load && op.opcode != Opcode::store) continue;
      const bool load = op.opcode == Opcode::load;
      const Variance& offset = of(op.operands[load ? 1 : 2]);
      if (offset.kind == Variation::uniform) continue;
      const auto bytes = static_cast<uint32_t>(size_of(m_.type(op.operands[load ? 0 : 1]).dtype));
      cost.bytes += bytes;
      const bool whole = offset.unit() || result_.interleaved_with(id) != nullptr;
      cost.picoseconds += bytes * kPerByte + (whole ? 0 : kPerStridedAccess);
    }
  }

  const ir::Module& m_;
  const ir::Block& body_;
  const Target& target_;
  BodyAnalysis result_;
  bool stored_ = false, masked_ = false;
  std::optional<int64_t> period_;
};

}  // namespace

bool runs_masked(const ir::Module& m, const ir::Op& op) {
  if (op.regions.empty()) return false;
  const std::function<bool(ir::BlockId)> holds_for = [&](ir::BlockId region) {
    return std::ranges::any_of(m.blocks[region].ops, [&](ir::OpId id) {
      return m.ops[id].opcode == Opcode::for_ || std::ranges::any_of(m.ops[id].regions, holds_for);
    });
  };
  return op.opcode == Opcode::for_ || !ir::is_pure(m, op) ||
         std::ranges::any_of(op.regions, holds_for);
}

const Interleaved* BodyAnalysis::interleaved_with(ir::OpId access) const {
  for (const Interleaved& i : interleaved)
    if (std::ranges::find(i.members, access) != i.members.end()) return &i;
  return nullptr;
}

BodyAnalysis analyse(const ir::Module& m, const ir::Op& parallel, const Target& target) {
  return Analyser(m, parallel, target).run();
}

}  // namespace picokernel::backend::cpu
