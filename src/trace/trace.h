// What running code calls to be seen in a profile: spans, instants, counters and the stamps of
// instrumented source.
//
// Off, each costs one relaxed load. On, each writes one fixed-size record into a ring of its own
// thread: no lock, no allocation once the ring exists, no waiting; a full ring counts what it
// drops. All text is interned beforehand.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <picokernel/api.h>

#include "trace/clock.h"
#include "trace/page_faults.h"

namespace picokernel::trace {

// X(name, what the argument of a span means)
#define PK_TRACE_CATEGORIES(X)                                            \
  X(h2d, "bytes")     /* host data into a device library's buffers */     \
  X(op_lazy, "arg")   /* builds a graph, runs nothing */                  \
  X(op, "arg")        /* one operation that runs */                       \
  X(sync, "arg")      /* waits until everything asked for has run */      \
  X(d2h, "bytes")     /* results back into host arrays */                 \
  X(alloc, "bytes")   /* memory for outputs and scratch */                \
  X(call, "elements") /* one call of a kernel, round all of its phases */ \
  X(compile, "arg")   /* a compile or one of its passes */                \
  X(cache, "arg")     /* a lookup in a cache of kernels */                \
  X(launch, "bytes")  /* native code running */                           \
  X(device, "arg")    /* work on a device's own queue */                  \
  X(user, "arg")      /* a step that the user named */

enum class Category : uint8_t {
#define PK_TRACE_ENUMERATOR(name, argument) name,
  PK_TRACE_CATEGORIES(PK_TRACE_ENUMERATOR)
#undef PK_TRACE_ENUMERATOR
};

inline constexpr size_t kCategoryCount = 0
#define PK_TRACE_COUNT(...) +1
    PK_TRACE_CATEGORIES(PK_TRACE_COUNT)
#undef PK_TRACE_COUNT
    ;

constexpr std::string_view category_name(Category category) {
  constexpr std::string_view names[] = {
#define PK_TRACE_NAME(name, argument) #name,
      PK_TRACE_CATEGORIES(PK_TRACE_NAME)
#undef PK_TRACE_NAME
  };
  return names[static_cast<size_t>(category)];
}

constexpr std::string_view category_argument(Category category) {
  constexpr std::string_view names[] = {
#define PK_TRACE_ARGUMENT(name, argument) argument,
      PK_TRACE_CATEGORIES(PK_TRACE_ARGUMENT)
#undef PK_TRACE_ARGUMENT
  };
  return names[static_cast<size_t>(category)];
}

constexpr bool is_memory(Category category) {
  return category == Category::h2d || category == Category::d2h || category == Category::alloc;
}
/// Does a span of so many bytes count the page faults of its thread? Less memory faults four times
/// at most, which takes no longer than asking the system.
constexpr bool counts_faults(Category category, uint64_t bytes) {
  return is_memory(category) && bytes >= 16384;
}

using NameId = uint32_t;
using BackendId = uint16_t;
inline constexpr BackendId kEnclosingBackend = 0;  // the backend of the span round this one, if any

/// The number of a text, the same for equal texts, valid for the life of the process. Takes a lock:
/// call it when something is compiled, never per event.
PK_API NameId intern(std::string_view text);
/// The same for a backend's name: its events get a process row of their own. At most 65535 names.
PK_API BackendId intern_backend(std::string_view name);

/// How this thread is called in traces, such as "worker 1" (at most 31 bytes). Otherwise: "main",
/// "thread 2", ...
PK_API void name_this_thread(std::string_view name) noexcept;

extern PK_API constinit std::atomic<uint32_t> live_sessions;

/// Is anybody recording?
inline bool enabled() noexcept { return live_sessions.load(std::memory_order_relaxed) != 0; }

/// How many profiles want lazy libraries to evaluate after each operation.
extern PK_API constinit std::atomic<uint32_t> live_splits;
inline bool splitting() noexcept { return live_splits.load(std::memory_order_relaxed) != 0; }

/// Records a span between two stamps of `now`. Does nothing when nobody records.
PK_API void complete(Category category, NameId name, uint64_t begin, uint64_t end, uint64_t arg = 0,
                     BackendId backend = kEnclosingBackend) noexcept;
/// Records a moment.
PK_API void instant(Category category, NameId name, uint64_t arg = 0,
                    BackendId backend = kEnclosingBackend) noexcept;
/// `complete` of copied or allocated memory, with the page faults that happened meanwhile.
PK_API void complete_memory(Category category, NameId name, uint64_t begin, uint64_t end,
                            uint64_t bytes, uint64_t faults, BackendId backend) noexcept;
/// What a kernel's span says about it.
struct Work {
  uint64_t arg = 0;         // as of other spans of its category
  uint64_t operations = 0;  // by the IR; 0: none or unknown
  NameId location = 0;      // interned: file:line:column where the kernel is defined
};
/// `complete` for kernels.
PK_API void complete_kernel(Category category, NameId name, uint64_t begin, uint64_t end,
                            const Work& work, BackendId backend = kEnclosingBackend) noexcept;
/// Records the value of a counter from this moment on.
PK_API void counter(NameId name, int64_t value) noexcept;

/// An arrow in viewers, from here, in a span that asks for work, to each span that runs it and
/// calls `end_flow`. Its number; 0: nobody records.
PK_API uint64_t begin_flow(NameId name) noexcept;
/// From within the running span. Does nothing for 0.
PK_API void end_flow(NameId name, uint64_t flow) noexcept;

/// A span from construction to destruction, on one thread; spans of a thread nest. Latches
/// `enabled`, so that it records either both ends or none. Counting page faults lies within.
class Span {
 public:
  explicit Span(Category category, NameId name, uint64_t arg = 0,
                BackendId backend = kEnclosingBackend) noexcept
      : begin_(enabled() ? now() : 0),
        arg_(arg),
        name_(name),
        backend_(backend),
        category_(category),
        counts_(begin_ != 0 && counts_faults(category, arg)) {
    if (counts_) faults_ = page_faults();
  }
  ~Span() {
    if (begin_ == 0) return;
    if (counts_)
      complete_memory(category_, name_, begin_, now(), arg_, page_faults() - faults_, backend_);
    else
      complete(category_, name_, begin_, now(), arg_, backend_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  bool recording() const noexcept { return begin_ != 0; }
  void set_name(NameId name) noexcept { name_ = name; }

 private:
  uint64_t begin_;
  uint64_t faults_ = 0;
  uint64_t arg_;
  NameId name_;
  BackendId backend_;
  Category category_;
  bool counts_;
};

/// A span of a kernel that is called or runs. The work outlives it.
class KernelSpan {
 public:
  KernelSpan(Category category, NameId name, const Work& work,
             BackendId backend = kEnclosingBackend) noexcept
      : begin_(enabled() ? now() : 0),
        work_(work),
        name_(name),
        backend_(backend),
        category_(category) {}
  ~KernelSpan() {
    if (begin_ != 0) complete_kernel(category_, name_, begin_, now(), work_, backend_);
  }
  KernelSpan(const KernelSpan&) = delete;
  KernelSpan& operator=(const KernelSpan&) = delete;

 private:
  uint64_t begin_;
  const Work& work_;
  NameId name_;
  BackendId backend_;
  Category category_;
};

/// What happens between two neighbouring stamps of an instrumented twin.
struct OpInfo {
  Category category = Category::op;
  NameId name = 0;
  uint32_t printed_line = 0;  // line of the printed source, from 1; 0: none
  std::string printed_text;   // that line
  std::string ir_op;          // the operation of the IR that it came from
  std::string user_location;  // file:line:column in the user's source
  int64_t bytes = 0;          // memory traffic it asks for; 0: unknown or none
  int64_t operations = 0;     // arithmetic operations; 0: unknown or none
};

using TableId = uint32_t;

/// Registers the n operations between n + 1 stamps, once for each twin; kept for the life of the
/// process. Runs of more than 262,144 tables are counted as dropped events.
PK_API TableId register_ops(std::vector<OpInfo> ops, std::string_view backend = {});

/// One run of an instrumented twin: begin, n + 1 stamps (one at each boundary), end.
///
/// A run reserves its slots in the thread's ring at `begin`, so a stamp is a clock reading and a
/// store; at the boundaries of copies and allocations it counts page faults, too. Runs nest with
/// each other and with spans of the same thread. A run that ends early (an exception) shows the
/// operations that finished; stamps past the last boundary are ignored.
class PK_API Stamps {
 public:
  Stamps() noexcept = default;
  explicit Stamps(TableId table) noexcept { begin(table); }
  ~Stamps() { end(); }
  Stamps(const Stamps&) = delete;
  Stamps& operator=(const Stamps&) = delete;

  void begin(TableId table) noexcept;
  void stamp() noexcept {
    if (next_ == limit_) return;
    if (counted_ != nullptr && counted_[next_ - first_]) *next_faults_++ = page_faults();
    *next_++ = now();
  }
  void end() noexcept;

  /// The innermost run of this thread between begin and end, or null: for twins that can carry no
  /// pointer.
  static Stamps* current() noexcept;

 private:
  uint64_t* next_ = nullptr;
  uint64_t* limit_ = nullptr;
  uint64_t* first_ = nullptr;
  uint64_t* next_faults_ = nullptr;
  const bool* counted_ = nullptr;  // by boundary: are page faults counted there? null: nowhere
  void* header_ = nullptr;         // the run's header record; null: nothing is recorded
  void* ring_ = nullptr;
  Stamps* enclosing_ = nullptr;
  bool open_ = false;
};

}  // namespace picokernel::trace
