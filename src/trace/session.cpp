// Sessions: from raw records to events.
#include "trace/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "trace/ceilings.h"
#include "trace/ring.h"

namespace picokernel::trace {

namespace {

// Threads are numbered from here, so that no tid equals a pid: viewers would call that thread the
// main one.
constexpr uint32_t kFirstTid = 100;

class Decoder {
 public:
  Decoder(ClockPair base, double ns_per_tick) : base_(base), ns_per_tick_(ns_per_tick) {}

  void add_thread(const ThreadRecords& from, std::vector<Event>& out) const {
    for (size_t i = 0; i < from.records.size();) {
      const Record& record = from.records[i];
      if (record.kind == RecordKind::run) {
        add_run(from, record, reinterpret_cast<const uint64_t*>(&record + 1), out);
        i += record.end;
        continue;
      }
      const Record* work = record.kind == RecordKind::kernel ? &from.records[i + 1] : nullptr;
      i += work == nullptr ? 1 : 2;
      if (record.begin < base_.ticks) continue;
      Event e = event(from, record.begin, record.end);
      e.name = name_of(record.name);
      if (record.kind == RecordKind::counter) {
        e.phase = Event::Phase::counter;
        e.args.emplace_back("value", static_cast<int64_t>(record.arg));
      } else if (record.kind == RecordKind::flow_start || record.kind == RecordKind::flow_end) {
        const bool start = record.kind == RecordKind::flow_start;
        e.phase = start ? Event::Phase::flow_start : Event::Phase::flow_end;
        e.category = "flow";
        e.flow = record.arg;
      } else {
        if (record.kind == RecordKind::instant) e.phase = Event::Phase::instant;
        e.category = category_name(record.category);
        e.backend = backend_name(record.backend);
        if (record.arg != 0) add_argument(e, record);
        if (work != nullptr) {
          if (work->begin != 0) add_operations(e, static_cast<int64_t>(work->begin));
          if (const std::string_view place = name_of(work->name); !place.empty())
            e.args.emplace_back("location", std::string(place));
        }
      }
      out.push_back(std::move(e));
    }
  }

 private:
  int64_t to_ns(uint64_t ticks) const {
    return std::llround(static_cast<double>(static_cast<int64_t>(ticks - base_.ticks)) *
                        ns_per_tick_);
  }

  // Both ends are rounded, then subtracted: neighbours that share a stamp share it after rounding
  // too.
  Event event(const ThreadRecords& from, uint64_t begin, uint64_t end) const {
    Event e;
    e.thread = from.thread_name;
    e.tid = kFirstTid + from.thread;
    e.begin_ns = to_ns(begin);
    e.duration_ns = to_ns(end) - e.begin_ns;
    return e;
  }

  static void add_argument(Event& e, const Record& record) {
    const std::string_view key = category_argument(record.category);
    const bool memory = is_memory(record.category);
    const auto amount = static_cast<int64_t>(memory ? record.arg & kMostBytes : record.arg);
    e.args.emplace_back(key, amount);
    if (key == "bytes") add_rate(e, "GB/s", amount);
    if (memory && record.arg > kMostBytes) add_faults(e, (record.arg >> kBytesBits) - 1);
  }

  static void add_faults(Event& e, uint64_t faults) {
    e.args.emplace_back("page_faults", static_cast<int64_t>(faults));
  }

  static void add_rate(Event& e, const char* key, int64_t amount) {
    if (amount > 0 && e.duration_ns > 0)
      e.args.emplace_back(key, static_cast<double>(amount) / static_cast<double>(e.duration_ns));
  }

  static void add_operations(Event& e, int64_t operations) {
    e.args.emplace_back("operations", operations);
    add_rate(e, "GFLOP/s", operations);
  }

  void add_run(const ThreadRecords& from, const Record& header, const uint64_t* stamps,
               std::vector<Event>& out) const {
    const OpTable* table = op_table(header.name);
    const uint64_t* faults = stamps + table->boundaries();
    for (uint64_t i = 0; i + 1 < header.begin; ++i) {
      if (table->counted != nullptr) faults += table->counted[i];
      if (stamps[i] < base_.ticks) continue;
      const OpInfo& op = table->ops[i];
      Event e = event(from, stamps[i], stamps[i + 1]);
      e.name = name_of(op.name);
      e.category = category_name(op.category);
      e.backend = backend_name(table->backend);
      if (op.printed_line != 0) e.args.emplace_back("line", int64_t{op.printed_line});
      if (!op.printed_text.empty()) e.args.emplace_back("source", op.printed_text);
      if (!op.ir_op.empty()) e.args.emplace_back("ir_op", op.ir_op);
      if (!op.user_location.empty()) e.args.emplace_back("location", op.user_location);
      // A lazy operation only builds a graph; its bytes move later, under the sync.
      const bool runs = op.category != Category::op_lazy;
      if (op.bytes > 0) e.args.emplace_back("bytes", op.bytes);
      if (runs) add_rate(e, "GB/s", op.bytes);
      if (op.operations > 0 && runs) add_operations(e, op.operations);
      if (op.operations > 0 && !runs) e.args.emplace_back("operations", op.operations);
      if (counts_faults(op.category, static_cast<uint64_t>(op.bytes)))
        add_faults(e, faults[0] - faults[-1]);
      if (!e.backend.empty()) e.args.emplace_back("backend", e.backend);
      out.push_back(std::move(e));
    }
  }

  ClockPair base_;
  double ns_per_tick_;
};

double measure_stamp_ns(double ns_per_tick) {
  constexpr int kStamps = 256;
  const uint64_t begin = now();
  uint64_t end = begin;
  for (int i = 0; i < kStamps; ++i) end = now();
  return static_cast<double>(end - begin) * ns_per_tick / kStamps;
}

}  // namespace

struct Session::Impl {
  SessionState state;
  ClockPair base;
  int64_t base_unix_ns = 0;
  double ns_per_tick = 0;
  bool recording = true;
  Collected collected;
  bool decoded = false;
  std::vector<Event> events;

  void refresh() {
    if (recording) {
      ns_per_tick = nanoseconds_per_tick();
      collected = collect(state);
      decoded = false;
    }
  }
};

Session::Session(size_t ring_bytes_per_thread) : impl_(std::make_unique<Impl>()) {
  using namespace std::chrono;
  impl_->state.ring_records = std::max<uint64_t>(1, ring_bytes_per_thread / sizeof(Record));
  open_session(impl_->state);
  impl_->base_unix_ns = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
  impl_->base = read_clocks();
}

Session::~Session() {
  if (impl_->recording) close_session(impl_->state);
}

void Session::stop() {
  if (!impl_->recording) return;
  impl_->recording = false;
  impl_->collected = close_session(impl_->state);
  impl_->decoded = false;
  impl_->ns_per_tick = nanoseconds_per_tick();
}

bool Session::recording() const { return impl_->recording; }

const std::vector<Event>& Session::events() {
  impl_->refresh();
  if (!impl_->decoded) {
    impl_->events.clear();
    const Decoder decoder(impl_->base, impl_->ns_per_tick);
    for (const ThreadRecords& thread : impl_->collected.threads)
      decoder.add_thread(thread, impl_->events);
    assign_processes(impl_->events);
    add_rests(impl_->events);
    add_shares(impl_->events);
    impl_->decoded = true;
    impl_->collected.threads.clear();
  }
  return impl_->events;
}

uint64_t Session::dropped() {
  if (impl_->recording) return collect(impl_->state).dropped;
  return impl_->collected.dropped;
}

Metadata Session::metadata() {
  const double ns_per_tick = nanoseconds_per_tick();
  return {{"clock", std::string(clock_description())},
          {"base_steady_ns", impl_->base.steady_ns},
          {"base_unix_ns", impl_->base_unix_ns},
          {"dropped_events", static_cast<int64_t>(dropped())},
          {"stamp_ns", measure_stamp_ns(ns_per_tick)}};
}

}  // namespace picokernel::trace
