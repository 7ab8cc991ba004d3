// A stretch of recording, and its events.
#pragma once

#include <memory>
#include <vector>

#include <picokernel/api.h>

#include "trace/events.h"

namespace picokernel::trace {

/// Records on all threads from construction to `stop`. Sessions may nest or overlap; each sees
/// every event that began and ended while it recorded. A span still open at the stop, or open since
/// before the start, is left out.
class PK_API Session {
 public:
  static constexpr size_t kDefaultRingBytes = size_t{8} << 20;  // 262144 records of 32 bytes

  /// At most this many bytes a thread, rounded up to a power of two of records, the largest wish of
  /// all sessions that record at once.
  explicit Session(size_t ring_bytes_per_thread = kDefaultRingBytes);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Idempotent. Afterwards the session's events are its own: later sessions reuse the rings.
  void stop();
  bool recording() const;
  /// What was recorded up to now or the stop, ordered and nested. The reference is valid until the
  /// next call.
  const std::vector<Event>& events();
  uint64_t dropped();
  /// Clock, base time, dropped events, what a stamp costs here.
  Metadata metadata();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace picokernel::trace
