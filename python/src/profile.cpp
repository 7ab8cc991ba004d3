// Profiles: recording, events, tables and trace files.
#include <algorithm>
#include <limits>
#include <optional>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/variant.h>

#include <picokernel/profile.h>

#include "core.h"
#include "runtime/thread_pool.h"
#include "trace/chrome_json.h"
#include "trace/trace.h"

namespace picokernel::python {

namespace {

nb::dict arguments_of(const TraceEvent& event) {
  nb::dict all;
  for (const auto& [name, value] : event.args) all[nb::cast(name)] = nb::cast(value);
  return all;
}

// A step of the user's program: with picokernel.span("load"): ...
class UserSpan {
 public:
  explicit UserSpan(std::string name) : name_(std::move(name)) {}
  void enter() {
    if (trace::enabled()) begin_ = trace::now();
  }
  void exit() {
    if (begin_ != 0)
      trace::complete(trace::Category::user, trace::intern(name_), begin_, trace::now());
    begin_ = 0;
  }

 private:
  std::string name_;
  uint64_t begin_ = 0;
};

}  // namespace

void bind_profile(nb::module_& m) {
  nb::class_<TraceEvent>(m, "TraceEvent",
                         "One event of a profile; times are nanoseconds since it began.")
      .def_prop_ro(
          "phase", [](const TraceEvent& e) { return std::string(1, static_cast<char>(e.phase)); },
          "'X': a span, 'i': an instant, 'C': a counter, 's' and 'f': the ends of an arrow.")
      .def_ro("name", &TraceEvent::name,
              "What ran: a kernel, a pass, a line of printed source, a span of your own.")
      .def_ro(
          "category", &TraceEvent::category,
          "One of h2d, op_lazy, op, sync, d2h, alloc, call, rest, compile, cache, launch, device, "
          "user, flow.")
      .def_ro("backend", &TraceEvent::backend,
              "Of the event or of the call that it belongs to; '' if none.")
      .def_ro("process", &TraceEvent::process, "The heading of its rows in a viewer.")
      .def_ro("thread", &TraceEvent::thread, "The name of its row.")
      .def_ro("pid", &TraceEvent::pid, "One for each backend.")
      .def_ro("tid", &TraceEvent::tid, "One for each thread or stream.")
      .def_ro("begin_ns", &TraceEvent::begin_ns, "Nanoseconds since the profile began.")
      .def_ro("duration_ns", &TraceEvent::duration_ns, "Nanoseconds; 0 if it is no span.")
      .def_ro("flow", &TraceEvent::flow, "The number of the arrow; 0 if it is none.")
      .def_prop_ro("args", &arguments_of,
                   "More about it: elements, bytes, operations, GB/s, GFLOP/s, the share of this "
                   "machine's ceiling, page faults, the user's line.")
      .def("__repr__", [](const TraceEvent& e) {
        return "<" + e.category + " '" + e.name + "' " + std::to_string(e.duration_ns) + " ns>";
      });

  nb::class_<Profile>(m, "Profile",
                      "Records all calls on all threads from its construction to `stop`. With a "
                      "path, `stop` writes a "
                      "Chrome trace there, for ui.perfetto.dev.")
      .def(nb::init<std::string, bool>(), nb::arg("path") = "", nb::arg("split") = false)
      .def("stop", &Profile::stop,
           "Ends the recording and writes the file, if a path was given. Raises Error if it cannot "
           "be written. Once stopped, nothing more happens.")
      .def("_list_events", [](const Profile& p) { return p.events(); })
      .def_prop_ro("dropped", &Profile::dropped, "Events that found their ring full.")
      .def("table", &Profile::table,
           "A summary as text: count, total, mean and share of each name; GB/s, GFLOP/s and the "
           "share "
           "of this machine's ceiling (see `explain`) of what has them.")
      .def(
          "_lines",
          [](const Profile& p, const nb::callable& source) {
            return p.lines([&](const std::string& file, int64_t line) {
              return nb::cast<std::string>(source(file, line));
            });
          },
          nb::arg("source"), "Time per line; `source(file, line)` gives the text of one.")
      .def("_save", [](const Profile& p, const std::string& path) { p.save(path); })
      .def_static(
          "merge",
          [](const Profile& a, const Profile& b, std::string_view name) {
            return Profile::merge(a, b, name);
          },
          nb::arg("first"), nb::arg("second"), nb::arg("name") = "",
          "Both in one, side by side, each starting at 0; `name` marks the second where both ran "
          "on one backend.");

  nb::class_<UserSpan>(m, "span",
                       "`with pk.span(\"load\"): ...` is a named step of your own program in "
                       "profiles. Costs next to "
                       "nothing while none records.")
      .def(nb::init<std::string>(), nb::arg("name"))
      .def("__enter__", &UserSpan::enter)
      .def("__exit__", [](UserSpan& s, nb::args) { s.exit(); });

  m.def(
      "_count_scratch",
      [](int64_t bytes) {
        static const trace::NameId name = trace::intern("memory held by printed sources");
        trace::counter(name, bytes);
      },
      nb::arg("bytes"), "A counter's value, if somebody records.");
  m.def(
      "_set_ceiling",
      [](std::string_view backend, std::vector<std::pair<int64_t, double>> bandwidth,
         double gflops) {
        set_ceiling(backend, {.bandwidth = std::move(bandwidth), .gflops = gflops});
      },
      nb::arg("backend"), nb::arg("bandwidth"), nb::arg("gflops"),
      "What kernels can reach at most there: (bytes, GB/s) of some sizes, and GFLOP/s.");
  m.def(
      "check_trace", [](std::string_view text) { return trace::check_chrome_json(text); },
      "What is wrong with the text of a Chrome trace file, a sentence each.");
  m.def(
      "set_num_threads",
      [](const nb::int_& count) {
        int overflow = 0;
        const long n = PyLong_AsLongAndOverflow(count.ptr(), &overflow);
        const auto most = static_cast<long>(std::numeric_limits<int>::max());
        runtime::set_num_threads(static_cast<int>(overflow > 0 ? most : std::clamp(n, -1L, most)));
      },
      nb::arg("count"),
      "Sets how many threads a large call of the cpu backend runs on, the caller included. No "
      "result depends on it. Raises LaunchError unless 1 <= count <= 1024.");
  m.def("share_always", &runtime::share_always, nb::arg("always"),
        "For measurements: every launch is shared by all threads, however small.");
  m.def("num_threads", &runtime::num_threads,
        "How many threads a large call runs on, the caller included: those of set_num_threads, "
        "else of PICOKERNEL_NUM_THREADS, else what the process may use.");
}

}  // namespace picokernel::python
