// Per-thread rings of fixed-size records, and the registry that lets sessions read them. Private to
// src/trace.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace picokernel::trace {

enum class RecordKind : uint8_t {
  span,     // begin, end, arg
  kernel,   // a span; the slot behind it is of kind `work`
  work,     // begin: operations, name: the location
  instant,  // begin, arg
  counter,  // begin, arg: the value
  flow_start,
  flow_end,  // both: begin, arg: the flow's number
  run,  // header of a run of stamps: `name` is its table; the raw stamps fill the slots behind it,
        // and after all of them the page faults at those boundaries that count them
  pad,  // the slots left before the ring's end, skipped so that a run is contiguous
};

/// The argument of memory's spans is bytes, and above them page faults + 1; 0 there: not counted.
inline constexpr unsigned kBytesBits = 40;
inline constexpr uint64_t kMostBytes = (uint64_t{1} << kBytesBits) - 1;
inline constexpr uint64_t kMostFaults = (uint64_t{1} << (64 - kBytesBits)) - 2;

struct Record {
  uint64_t begin;  // run: kOpenRun until closed, then how many stamps were taken; accessed
                   // atomically there
  uint64_t end;    // run, pad: how many slots it occupies
  uint64_t arg;
  uint32_t name;
  BackendId backend;
  RecordKind kind;
  Category category;
};
static_assert(sizeof(Record) == 32);

inline constexpr uint64_t kOpenRun = ~uint64_t{0};
inline constexpr uint64_t kStampsPerSlot = sizeof(Record) / sizeof(uint64_t);

/// One writer (the owning thread), readers under the registry's lock. Positions count up for ever;
/// a slot is position modulo capacity. Invariants:
///  - slots in [tail, head) are readable, where tail + allowed size == limit; the writer never
///  passes the limit;
///  - head only ever stands between whole records, a run counting as one;
///  - tail <= oldest open run, so that a run still being stamped is never overwritten.
class Ring {
 public:
  Ring(uint64_t min_records, uint32_t thread, std::string thread_name);

  // By the owner.
  /// Contiguous slots, or null when there is no room.
  Record* reserve(uint64_t slots) noexcept {
    const uint64_t offset = position_ & mask_;
    const uint64_t pad = offset + slots > capacity() ? capacity() - offset : 0;
    if (position_ + pad + slots > limit_.load(std::memory_order_acquire)) return nullptr;
    if (pad != 0) {
      records_[offset].kind = RecordKind::pad;
      records_[offset].end = pad;
      position_ += pad;
    }
    return &records_[position_ & mask_];
  }
  void publish(uint64_t slots) noexcept {
    position_ += slots;
    head_.store(position_, std::memory_order_release);
  }
  void publish_open_run(uint64_t slots) noexcept {
    if (open_runs_++ == 0) oldest_open_.store(position_, std::memory_order_relaxed);
    publish(slots);
  }
  void close_run(Record& header, uint64_t stamps) noexcept {
    __atomic_store_n(&header.begin, stamps, __ATOMIC_RELEASE);
    if (--open_runs_ == 0) oldest_open_.store(kNoRun, std::memory_order_release);
  }
  bool has_open_run() const noexcept { return open_runs_ != 0; }
  void drop(uint64_t events) noexcept { dropped_.fetch_add(events, std::memory_order_relaxed); }
  bool retired() const noexcept { return retired_.load(std::memory_order_relaxed); }
  void abandon() noexcept { abandoned_.store(true, std::memory_order_release); }

  // By readers, under the registry's lock.
  uint64_t capacity() const noexcept { return mask_ + 1; }
  uint64_t head() const noexcept { return head_.load(std::memory_order_acquire); }
  uint64_t oldest_open() const noexcept { return oldest_open_.load(std::memory_order_acquire); }
  uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  bool abandoned() const noexcept { return abandoned_.load(std::memory_order_acquire); }
  void set_limit(uint64_t limit) noexcept { limit_.store(limit, std::memory_order_release); }
  /// The owner leaves this ring for a larger one at its next record.
  void retire() noexcept { retired_.store(true, std::memory_order_relaxed); }
  /// The finished records from position `from` on; a run's header is followed by its slots.
  std::vector<Record> copy_from(uint64_t from) const;

  const uint32_t thread;
  const std::string thread_name;

  static constexpr uint64_t kNoRun = ~uint64_t{0};

 private:
  std::unique_ptr<Record[]> records_;
  uint64_t mask_;
  uint64_t position_ = 0;
  uint64_t open_runs_ = 0;
  std::atomic<uint64_t> head_{0};
  std::atomic<uint64_t> oldest_open_{kNoRun};
  std::atomic<uint64_t> dropped_{0};
  std::atomic<bool> abandoned_{false};
  // Written by sessions only; on a line of its own so that the owner's stores do not slow them
  // down.
  alignas(64) std::atomic<uint64_t> limit_{0};
  std::atomic<bool> retired_{false};
};

/// Where a session stands in each ring. Rings that are made later count from position 0.
struct SessionState {
  struct Start {
    const Ring* ring;
    uint64_t head;
    uint64_t dropped;
  };
  uint64_t ring_records = 0;
  uint64_t lost_before = 0;
  std::vector<Start> starts;
};

struct ThreadRecords {
  uint32_t thread = 0;
  std::string thread_name;
  std::vector<Record> records;
};

struct Collected {
  std::vector<ThreadRecords> threads;
  uint64_t dropped = 0;
};

/// Starts recording for `state`, and makes the calling thread's ring so that its first event finds
/// one.
void open_session(SessionState& state);
/// What has been recorded since.
Collected collect(const SessionState& state);
/// The same, and stops recording for it. After a fork the child finds nothing: sessions stay with
/// the parent.
Collected close_session(SessionState& state);

/// Texts by number, and tables by number; the references stay valid for ever.
std::string_view name_of(NameId id);
std::string_view backend_name(BackendId id);

struct OpTable {
  std::vector<OpInfo> ops;
  BackendId backend;
  std::unique_ptr<bool[]> counted;  // by boundary, or null: see Stamps
  uint64_t counted_boundaries = 0;

  uint64_t boundaries() const { return ops.size() + 1; }
};
/// Null for a number that was never given out. Takes no lock.
const OpTable* op_table(TableId id) noexcept;

// The locks of this folder's tables, held across a fork.
void lock_names();
void unlock_names();

}  // namespace picokernel::trace
