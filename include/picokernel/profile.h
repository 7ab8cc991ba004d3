// Profiles: what picokernel did, when and for how long, as events, as text, and as a trace to open
// in Perfetto.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <picokernel/api.h>

namespace picokernel {

/// One event of a profile. All times are whole nanoseconds since the profile began.
struct TraceEvent {
  enum class Phase : char {
    complete = 'X',
    instant = 'i',
    counter = 'C',
    flow_start = 's',  // an arrow in viewers, from where work was asked for
    flow_end = 'f'     // to where it ran
  };
  using Value = std::variant<int64_t, double, std::string>;

  Phase phase = Phase::complete;
  std::string name;
  std::string category;  // h2d, op_lazy, op, sync, d2h, alloc, call, rest, compile, cache, launch,
                         // device, user, flow
  std::string backend;   // of the event, or of the call that it belongs to; empty: none
  std::string process;   // the heading of its rows in a viewer
  std::string thread;
  uint32_t pid = 0;  // one for each backend
  uint32_t tid = 0;
  int64_t begin_ns = 0;
  int64_t duration_ns = 0;  // complete events only
  uint64_t flow = 0;        // the arrow's number
  std::vector<std::pair<std::string, Value>> args;

  int64_t end_ns() const { return begin_ns + duration_ns; }
};

/// Records from construction until `stop`, on all threads. Profiles nest: each sees what happened
/// while it recorded. Recording costs 10 to 60 ns an event and holds at most 8 MiB a thread;
/// beyond that events are counted as dropped, never waited for.
class PK_API Profile {
 public:
  /// With a path, `stop` writes a Chrome trace there: open it at ui.perfetto.dev. `split`: printed
  /// MLX sources evaluate each operation when they have made it, so that a trace shows what `sync`
  /// hides; the trace and `table` say that it is intrusive.
  explicit Profile(std::string path = {}, bool split = false);
  /// Stops. A trace that cannot be written is reported on stderr here; call `stop` to have an Error
  /// instead.
  ~Profile();
  Profile(Profile&&) noexcept;
  Profile& operator=(Profile&&) noexcept;

  /// Ends the recording and writes the file, if a path was given. Idempotent. Throws Error if it
  /// cannot be written.
  void stop();

  /// Everything recorded up to now, ordered by process, thread and time; spans of a thread nest or
  /// are disjoint.
  const std::vector<TraceEvent>& events() const;
  /// How many events found their ring full.
  uint64_t dropped() const;
  /// A summary: count, total, mean and share for each name, GB/s, GFLOP/s and the share of the
  /// machine's ceiling for what has them.
  std::string table() const;
  /// The text of a line, from 1, of a file; empty where there is none.
  using SourceLine = std::function<std::string(const std::string& file, int64_t line)>;
  /// Time per line of the user's kernels: for each kernel and backend the lines of its source, and
  /// under each what ran for it. What belongs to no line stands where the kernel is defined: the
  /// launch where a backend runs all of it at once, copies, allocations, and the rest of the call.
  /// Shares are of the kernel's calls. Without `source`, files are read.
  std::string lines(const SourceLine& source = {}) const;
  /// Writes what was recorded up to now as a Chrome trace. Throws Error if it cannot be written.
  void save(const std::string& path) const;

  /// Both profiles in one, each starting at 0, every backend with rows of its own. `name` tells the
  /// second one's rows apart where both have rows of one backend.
  static Profile merge(const Profile& first, const Profile& second, std::string_view name = {});

 private:
  struct Impl;
  explicit Profile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// What kernels can reach at most on this machine, as measured.
struct Ceiling {
  /// Bytes that a kernel reads and writes, and the GB/s at that size: caches are faster.
  std::vector<std::pair<int64_t, double>> bandwidth;
  double gflops = 0;  // operations, in 1e9 a second; 0: unknown
};

/// From now on events of kernels on that backend carry "% of ceiling": their share of the bandwidth
/// or of the operations, whichever is larger, and "ceiling", which of the two that is. Nothing is
/// ever measured in a call: Python's profiler takes what `picokernel doctor` has measured.
PK_API void set_ceiling(std::string_view backend, Ceiling ceiling);

/// A named step of the user's own program, from construction to destruction. Costs next to nothing
/// when no profile records. Spans of one thread must end in the reverse order of their beginnings.
class PK_API Span {
 public:
  explicit Span(std::string_view name) noexcept;
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  uint64_t begin_ = 0;
  uint32_t name_ = 0;
};

}  // namespace picokernel
