// Liveness of arrays and storages. Positions are indices of items.
//
// A value may live in the storage that it is written to, or borrow any storage whose content nobody
// wants meanwhile, or takes scratch. An op may overwrite an operand in place, since it works point
// by point; select may do so only with its last operand, since its form here is: destination = z,
// then destination = y where x.
//
// isnan, isinf, isfinite and signbit always go to scratch, which is contiguous: NumPy's (2.4.6)
// give wrong elements in outputs with gaps.
#include "passes/graph/storage_plan.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "passes/graph/storage.h"
#include "passes/graph/temp_pool.h"

namespace picokernel::passes {
namespace {

using namespace ir;

constexpr size_t kNever = std::numeric_limits<size_t>::max();

// An access to a storage.
struct Event {
  size_t position = 0;
  bool store = false;
  ValueId ref = {};        // the whole storage or a view of it
  bool pointwise = false;  // a read that may be overwritten by the op that reads
};

struct Live {
  ValueId value = {};
  size_t def = 0;
  std::vector<size_t> uses;  // ascending
  bool computed = false;
};

class Planner {
 public:
  explicit Planner(const Module& m) : m_(m) {}

  StoragePlan run() {
    collect();
    sink_writes();
    save_overwritten();
    find_events();
    std::vector<Live> lives = find_lives();
    for (const Live& live : lives)
      if (live.computed) compute_into_target(live);
    for (const Live& live : lives)
      if (!plan_.homes.contains(live.value)) borrow_or_take(live);
    return std::move(plan_);
  }

 private:
  const Op* op(size_t position) const {
    const OpId id = plan_.items[position].op;
    return id.valid() ? &m_.ops[id] : nullptr;
  }
  bool is_write(size_t position) const {
    return op(position) != nullptr && op(position)->opcode == Opcode::write;
  }
  ValueId target(size_t position) const { return op(position)->operands[0]; }
  const Op* read_of(ValueId v) const {
    const Op* def = m_.def(v);
    return def != nullptr && def->opcode == Opcode::read ? def : nullptr;
  }
  ValueId root(ValueId ref) const { return root_of(m_, ref); }

  void collect() {
    std::map<ValueId, size_t> versions;  // writes to each root so far
    for (const OpId id : m_.blocks[Module::body()].ops) {
      const Op& op = m_.ops[id];
      if (op.opcode == Opcode::write) version_[id] = ++versions[root(op.operands[0])];
      if (op.opcode == Opcode::read) {
        version_[id] = versions[root(op.operands[0])];
        reads_[root(op.operands[0])].push_back(id);
      }
      const bool placed_lazily = op.opcode == Opcode::view || op.opcode == Opcode::scratch;
      const bool array_read = op.opcode == Opcode::read && is_array(m_, op.results[0]);
      if (!placed_lazily && !array_read) plan_.items.push_back({.op = id});
    }
  }

  // Positions at which the value of a read is wanted from its storage.
  std::vector<size_t> uses_of_read(OpId read) const {
    const ValueId v = m_.ops[read].results[0];
    std::vector<size_t> uses;
    for (size_t i = 0; i < plan_.items.size(); ++i) {
      const Op* user = op(i);
      const bool reads_now = plan_.items[i].op == read;  // a scalar
      const bool uses_array = user != nullptr && is_array(m_, v) &&
                              std::ranges::find(user->operands, v) != user->operands.end();
      if (reads_now || uses_array) uses.push_back(i);
    }
    return uses;
  }

  // A write moves behind the last use of what it overwrites, if nothing there wants the new
  // content.
  void sink_writes() {
    std::vector<OpId> writes;
    for (size_t i = 0; i < plan_.items.size(); ++i)
      if (is_write(i)) writes.push_back(plan_.items[i].op);
    for (const OpId write : writes) {
      const ValueId stored = m_.ops[write].operands[1], storage = root(m_.ops[write].operands[0]);
      if (is_array(m_, stored) && read_of(stored) != nullptr) continue;
      const size_t at = position_of(write);
      size_t last_old = 0, first_new = kNever;
      for (const OpId read : reads_[storage])
        for (const size_t use : uses_of_read(read)) {
          if (version_[read] < version_[write])
            last_old = std::max(last_old, use);
          else
            first_new = std::min(first_new, use);
        }
      for (const OpId other : writes)
        if (other != write && root(m_.ops[other].operands[0]) == storage && position_of(other) > at)
          first_new = std::min(first_new, position_of(other));
      if (last_old <= at || first_new <= last_old) continue;
      auto begin = plan_.items.begin() + static_cast<ptrdiff_t>(at);
      std::rotate(begin, begin + 1, plan_.items.begin() + static_cast<ptrdiff_t>(last_old) + 1);
    }
  }
  size_t position_of(OpId id) const {
    return static_cast<size_t>(std::ranges::find(plan_.items, id, &PlanItem::op) -
                               plan_.items.begin());
  }

  // What is wanted after its storage has been overwritten is copied before.
  void save_overwritten() {
    std::vector<std::pair<size_t, ValueId>> saves;
    for (const auto& [storage, reads] : reads_)
      for (const OpId read : reads) {
        if (!is_array(m_, m_.ops[read].results[0])) continue;
        const std::vector<size_t> uses = uses_of_read(read);
        if (uses.empty()) continue;
        for (size_t i = 0; i < uses.back(); ++i)
          if (is_write(i) && root(target(i)) == storage &&
              version_[plan_.items[i].op] > version_[read]) {
            saves.emplace_back(i, m_.ops[read].results[0]);
            break;
          }
      }
    std::ranges::sort(saves);
    for (size_t i = saves.size(); i-- > 0;)
      plan_.items.insert(plan_.items.begin() + static_cast<ptrdiff_t>(saves[i].first),
                         {.saved = saves[i].second});
    for (size_t i = 0; i < plan_.items.size(); ++i)
      if (plan_.items[i].saved.valid()) plan_.saved_at[plan_.items[i].saved] = i;
  }

  bool pointwise_use(ValueId v, size_t position) const {
    const Op* user = op(position);
    if (user == nullptr || !info(user->opcode).elementwise()) return false;
    return user->opcode != Opcode::select || (user->operands[0] != v && user->operands[1] != v);
  }

  void find_events() {
    for (size_t i = 0; i < plan_.items.size(); ++i) {
      const auto read = [&](ValueId ref, bool pointwise) {
        events_[root(ref)].push_back({.position = i, .ref = ref, .pointwise = pointwise});
      };
      const Op* op = this->op(i);
      if (op == nullptr) {
        read(read_of(plan_.items[i].saved)->operands[0], false);
        continue;
      }
      if (op->opcode == Opcode::read) read(op->operands[0], false);
      for (const ValueId v : op->operands)
        if (read_of(v) != nullptr && is_array(m_, v) &&
            !(plan_.saved_at.contains(v) && plan_.saved_at[v] < i))
          read(read_of(v)->operands[0], pointwise_use(v, i));
      if (is_write(i)) {
        events_[root(target(i))].push_back({.position = i, .store = true, .ref = target(i)});
        targets_.push_back(target(i));
      }
    }
  }

  std::vector<Live> find_lives() {
    std::vector<Live> lives;
    for (size_t i = 0; i < plan_.items.size(); ++i) {
      Live live{.def = i};
      if (op(i) == nullptr)
        live.value = plan_.items[i].saved;
      else if (computes_array(m_, *op(i)))
        live = {.value = op(i)->results[0], .def = i, .computed = true};
      else
        continue;
      for (size_t j = i + 1; j < plan_.items.size(); ++j)
        if (op(j) != nullptr &&
            std::ranges::find(op(j)->operands, live.value) != op(j)->operands.end())
          live.uses.push_back(j);
      if (live.uses.empty())
        plan_.items[i].dropped = true;
      else
        lives.push_back(std::move(live));
    }
    return lives;
  }

  // May the value live in this storage of the graph?
  bool fits(ValueId v, ValueId ref) const {
    if (m_.def(v) != nullptr && info(m_.def(v)->opcode).rule == Rule::test) return false;
    Type type = m_.type(v);
    type.kind = TypeKind::ref;
    return type == m_.type(ref);
  }

  // Puts the value into a storage of the graph: its definition writes, its uses read there.
  void settle(const Live& live, ValueId ref) {
    plan_.homes[live.value] = {.ref = ref};
    std::vector<Event>& events = events_[root(ref)];
    events.push_back({.position = live.def, .store = true, .ref = ref});
    for (const size_t use : live.uses)
      if (!plan_.items[use].dropped)
        events.push_back(
            {.position = use, .ref = ref, .pointwise = pointwise_use(live.value, use)});
  }

  // A value that is written somewhere is computed right there, if that is free from its definition
  // on.
  void compute_into_target(const Live& live) {
    for (const size_t at : live.uses) {
      if (!is_write(at) || !fits(live.value, target(at))) continue;
      const ValueId ref = target(at);
      std::vector<Event>& events = events_[root(ref)];
      const bool taken = std::ranges::any_of(events, [&](const Event& e) {
        if (e.position == live.def) return !(e.pointwise && e.ref == ref);
        if (e.position > live.def && e.position < at) return true;
        return e.store && e.position > at && e.position <= live.uses.back();
      });
      if (taken) continue;
      std::erase_if(events, [&](const Event& e) { return e.store && e.position == at; });
      plan_.items[at].dropped = true;
      settle(live, ref);
      return;
    }
  }

  // Is the content of the ref unwanted while the value lives, and overwritten afterwards?
  bool can_borrow(const Live& live, ValueId ref) const {
    const size_t last = live.uses.back();
    size_t next = kNever;
    for (const Event& e : events_.at(root(ref))) {
      if (e.position == live.def && !(live.computed && e.pointwise && e.ref == ref)) return false;
      if (e.position > live.def && e.position < last) return false;
      if (e.position >= last) next = std::min(next, e.position);
    }
    if (next == kNever) return false;
    if (next == last && !pointwise_use(live.value, last)) return false;
    for (const Event& e : events_.at(root(ref)))
      if (e.position == next && !(e.store && (e.ref == ref || e.ref == root(ref)))) return false;
    return true;
  }

  void borrow_or_take(const Live& live) {
    for (const ValueId ref : targets_)
      if (fits(live.value, ref) && can_borrow(live, ref)) return settle(live, ref);
    Type type = m_.type(live.value);
    type.kind = TypeKind::ref;
    const Op* op = this->op(live.def);
    std::optional<size_t> preferred;  // select wants to overwrite its last operand
    if (op != nullptr && op->opcode == Opcode::select) {
      const auto home = plan_.homes.find(op->operands[2]);
      if (home != plan_.homes.end() && !home->second.ref.valid()) preferred = home->second.temp;
    }
    const size_t temp = temps_.take(type,
                                    {.def = live.def,
                                     .last_use = live.uses.back(),
                                     .overwrites = live.computed,
                                     .pointwise = pointwise_use(live.value, live.uses.back())},
                                    preferred);
    if (temp == plan_.temps.size()) plan_.temps.push_back(type);
    plan_.homes[live.value] = {.temp = temp};
  }

  const Module& m_;
  StoragePlan plan_;
  std::map<OpId, size_t> version_;  // reads: of what they see; writes: of what they make
  std::map<ValueId, std::vector<OpId>> reads_;    // by root
  std::map<ValueId, std::vector<Event>> events_;  // by root
  std::vector<ValueId> targets_;                  // refs that are written, in program order
  TempPool temps_;
};

}  // namespace

StoragePlan plan_storage(const Module& graph) { return Planner(graph).run(); }

}  // namespace picokernel::passes
