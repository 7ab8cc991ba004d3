// The rings' slow paths, the registry, and the recording functions.
#include "trace/ring.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "trace/fork.h"

#if defined(__linux__)
#include <unistd.h>
#endif

namespace picokernel::trace {

constinit std::atomic<uint32_t> live_sessions{0};
constinit std::atomic<uint32_t> live_splits{0};

namespace {

struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<Ring>> rings;
  std::vector<SessionState*> sessions;
  uint32_t threads = 0;
  std::atomic<uint64_t> lost{
      0};  // events that found no ring: out of memory, or the thread is past its thread-locals
};

// Never destroyed: threads may record until the very end of the process.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

// Not of TLS model initial-exec, fast as that is: a library with it may not be loadable after
// others (dlopen has little static TLS left, and LLVM's own thread-locals would be counted in).
constinit thread_local Ring* this_ring = nullptr;
constinit thread_local Stamps* this_run = nullptr;
constinit thread_local uint32_t this_thread_number = 0;
constinit thread_local bool this_thread_ended = false;
constinit thread_local char this_thread_name[32] = {};

// Keeps the ring alive with its thread; the registry keeps it as long as a session may read it.
struct RingOwner {
  std::shared_ptr<Ring> ring;
  ~RingOwner() {
    if (ring) ring->abandon();
    this_ring = nullptr;
    this_thread_ended = true;
  }
};
thread_local RingOwner ring_owner;

bool is_main_thread() {
#if defined(__linux__)
  return gettid() == getpid();
#else
  return false;
#endif
}

// With the lock held. Sets how far each ring may be written, after sessions or rings have changed.
void update_limits(Registry& r) {
  uint64_t wanted = 0;
  for (const SessionState* session : r.sessions) wanted = std::max(wanted, session->ring_records);
  for (const auto& ring : r.rings) {
    if (r.sessions.empty()) {
      ring->set_limit(0);
      continue;
    }
    const uint64_t head = ring->head();
    uint64_t tail = std::min(head, ring->oldest_open());
    for (const SessionState* session : r.sessions) {
      const auto start = std::find_if(session->starts.begin(), session->starts.end(),
                                      [&](const auto& s) { return s.ring == ring.get(); });
      tail = std::min(tail, start == session->starts.end() ? 0 : start->head);
    }
    if (ring->capacity() < wanted) ring->retire();
    ring->set_limit(ring->retired() ? 0 : tail + std::min(ring->capacity(), wanted));
  }
}

// With the lock held. Forgets rings of ended threads once no session can want them.
void prune(Registry& r) {
  if (!r.sessions.empty()) return;
  std::erase_if(r.rings, [](const auto& ring) { return ring->abandoned(); });
}

void make_ring() {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (this_thread_number == 0) this_thread_number = ++r.threads;
  uint64_t records = 1;
  for (const SessionState* session : r.sessions) records = std::max(records, session->ring_records);
  std::string name = this_thread_name;
  if (name.empty())
    name = is_main_thread() ? "main" : "thread " + std::to_string(this_thread_number);
  auto ring = std::make_shared<Ring>(records, this_thread_number, std::move(name));
  r.rings.push_back(ring);
  if (ring_owner.ring) ring_owner.ring->abandon();
  ring_owner.ring = ring;
  this_ring = ring.get();
  update_limits(r);
}

Record* reserve_slowly(uint64_t slots, uint64_t events) noexcept {
  if (!enabled()) return nullptr;
  if (!this_thread_ended &&
      (this_ring == nullptr || (this_ring->retired() && !this_ring->has_open_run()))) {
    try {
      make_ring();
    } catch (...) {
      registry().lost.fetch_add(events, std::memory_order_relaxed);
      return nullptr;
    }
    if (Record* record = this_ring->reserve(slots)) return record;
  }
  if (this_ring != nullptr)
    this_ring->drop(events);
  else
    registry().lost.fetch_add(events, std::memory_order_relaxed);
  return nullptr;
}

// On success this_ring is the ring that the slots are in.
inline Record* reserve(uint64_t slots, uint64_t events) noexcept {
  if (this_ring != nullptr) [[likely]]
    if (Record* record = this_ring->reserve(slots)) [[likely]]
      return record;
  return reserve_slowly(slots, events);
}

void write(RecordKind kind, Category category, NameId name, uint64_t begin, uint64_t end,
           uint64_t arg, BackendId backend) noexcept {
  if (!enabled()) return;
  Record* record = reserve(1, 1);
  if (record == nullptr) return;
  *record = {begin, end, arg, name, backend, kind, category};
  this_ring->publish(1);
}

}  // namespace

Ring::Ring(uint64_t min_records, uint32_t thread_number, std::string name)
    : thread(thread_number),
      thread_name(std::move(name)),
      records_(std::make_unique_for_overwrite<Record[]>(std::bit_ceil(min_records))),
      mask_(std::bit_ceil(min_records) - 1) {
  // The first pages are touched here rather than under the first events.
  constexpr uint64_t kPage = 4096 / sizeof(Record);
  constexpr uint64_t kTouched = 64 * kPage;
  for (uint64_t i = 0; i < std::min(capacity(), kTouched); i += kPage) records_[i].begin = 0;
}

std::vector<Record> Ring::copy_from(uint64_t from) const {
  std::vector<Record> out;
  const uint64_t end = head();
  out.reserve(end - from);
  for (uint64_t at = from; at < end;) {
    const Record& record = records_[at & mask_];
    switch (record.kind) {
      case RecordKind::span:
      case RecordKind::instant:
      case RecordKind::counter:
      case RecordKind::flow_start:
      case RecordKind::flow_end:
        out.push_back(record);
        ++at;
        break;
      case RecordKind::kernel:
        out.insert(out.end(), &record, &record + 2);
        at += 2;
        break;
      case RecordKind::run: {
        const uint64_t slots = record.end;
        const uint64_t stamps = __atomic_load_n(&record.begin, __ATOMIC_ACQUIRE);
        if (stamps != kOpenRun) {
          out.insert(out.end(), &record, &record + slots);
        }
        at += slots;
        break;
      }
      case RecordKind::pad:
        at += record.end;
        break;
      case RecordKind::work:  // taken with its kernel
        ++at;
        break;
    }
  }
  return out;
}

void open_session(SessionState& state) {
  Registry& r = registry();
  {
    const std::lock_guard lock(r.mutex);
    prune(r);
    state.lost_before = r.lost.load(std::memory_order_relaxed);
    for (const auto& ring : r.rings)
      state.starts.push_back({ring.get(), ring->head(), ring->dropped()});
    r.sessions.push_back(&state);
    update_limits(r);
    live_sessions.fetch_add(1, std::memory_order_relaxed);
  }
  if (!this_thread_ended &&
      (this_ring == nullptr || (this_ring->retired() && !this_ring->has_open_run())))
    make_ring();
}

namespace {

Collected collect_locked(Registry& r, const SessionState& state) {
  Collected out;
  if (std::find(r.sessions.begin(), r.sessions.end(), &state) == r.sessions.end()) return out;
  out.dropped = r.lost.load(std::memory_order_relaxed) - state.lost_before;
  for (const auto& ring : r.rings) {
    const auto start = std::find_if(state.starts.begin(), state.starts.end(),
                                    [&](const auto& s) { return s.ring == ring.get(); });
    const bool known = start != state.starts.end();
    out.dropped += ring->dropped() - (known ? start->dropped : 0);
    auto records = ring->copy_from(known ? start->head : 0);
    if (!records.empty())
      out.threads.push_back({ring->thread, ring->thread_name, std::move(records)});
  }
  return out;
}

}  // namespace

Collected collect(const SessionState& state) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return collect_locked(r, state);
}

Collected close_session(SessionState& state) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  Collected out = collect_locked(r, state);
  if (std::erase(r.sessions, &state) != 0) live_sessions.fetch_sub(1, std::memory_order_relaxed);
  update_limits(r);
  prune(r);
  return out;
}

void complete(Category category, NameId name, uint64_t begin, uint64_t end, uint64_t arg,
              BackendId backend) noexcept {
  write(RecordKind::span, category, name, begin, end, arg, backend);
}

void complete_memory(Category category, NameId name, uint64_t begin, uint64_t end, uint64_t bytes,
                     uint64_t faults, BackendId backend) noexcept {
  const uint64_t arg = std::min(bytes, kMostBytes) | (std::min(faults, kMostFaults) + 1)
                                                         << kBytesBits;
  write(RecordKind::span, category, name, begin, end, arg, backend);
}

void complete_kernel(Category category, NameId name, uint64_t begin, uint64_t end, const Work& work,
                     BackendId backend) noexcept {
  if (!enabled()) return;
  Record* record = reserve(2, 1);
  if (record == nullptr) return;
  record[0] = {begin, end, work.arg, name, backend, RecordKind::kernel, category};
  record[1] = {work.operations, 0, 0, work.location, backend, RecordKind::work, category};
  this_ring->publish(2);
}

void instant(Category category, NameId name, uint64_t arg, BackendId backend) noexcept {
  if (!enabled()) return;
  const uint64_t at = now();
  write(RecordKind::instant, category, name, at, at, arg, backend);
}

void counter(NameId name, int64_t value) noexcept {
  if (!enabled()) return;
  const uint64_t at = now();
  write(RecordKind::counter, Category::op, name, at, at, static_cast<uint64_t>(value),
        kEnclosingBackend);
}

uint64_t begin_flow(NameId name) noexcept {
  static constinit std::atomic<uint64_t> last{0};
  if (!enabled()) return 0;
  const uint64_t flow = last.fetch_add(1, std::memory_order_relaxed) + 1, at = now();
  write(RecordKind::flow_start, Category::launch, name, at, at, flow, kEnclosingBackend);
  return flow;
}

void end_flow(NameId name, uint64_t flow) noexcept {
  if (flow == 0 || !enabled()) return;
  const uint64_t at = now();
  write(RecordKind::flow_end, Category::launch, name, at, at, flow, kEnclosingBackend);
}

void name_this_thread(std::string_view name) noexcept {
  const size_t n = std::min(name.size(), sizeof(this_thread_name) - 1);
  std::memcpy(this_thread_name, name.data(), n);
  this_thread_name[n] = '\0';
}

void Stamps::begin(TableId table) noexcept {
  end();
  open_ = true;
  enclosing_ = this_run;
  this_run = this;
  if (!enabled()) return;
  const OpTable* info = op_table(table);
  if (info == nullptr) {
    registry().lost.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const uint64_t stamps = info->boundaries();
  const uint64_t slots =
      1 + (stamps + info->counted_boundaries + kStampsPerSlot - 1) / kStampsPerSlot;
  Record* record = reserve(slots, info->ops.size());
  if (record == nullptr) return;
  *record = {kOpenRun, slots, 0, table, info->backend, RecordKind::run, Category::op};
  this_ring->publish_open_run(slots);
  ring_ = this_ring;
  header_ = record;
  first_ = next_ = reinterpret_cast<uint64_t*>(record + 1);
  limit_ = next_faults_ = first_ + stamps;
  counted_ = info->counted.get();
}

void Stamps::end() noexcept {
  if (!open_) return;
  open_ = false;
  this_run = enclosing_;
  if (header_ == nullptr) return;
  static_cast<Ring*>(ring_)->close_run(*static_cast<Record*>(header_),
                                       static_cast<uint64_t>(next_ - first_));
  header_ = nullptr;
  next_ = limit_ = first_ = next_faults_ = nullptr;
  counted_ = nullptr;
}

Stamps* Stamps::current() noexcept { return this_run; }

void before_fork() {
  registry().mutex.lock();
  lock_names();
}

void after_fork_in_parent() {
  unlock_names();
  registry().mutex.unlock();
}

void after_fork_in_child() {
  unlock_names();
  Registry& r = registry();
  r.sessions.clear();
  live_sessions.store(0, std::memory_order_relaxed);
  live_splits.store(0, std::memory_order_relaxed);
  for (const auto& ring : r.rings)
    if (ring.get() != this_ring) ring->abandon();
  update_limits(r);
  prune(r);
  r.mutex.unlock();
}

}  // namespace picokernel::trace
