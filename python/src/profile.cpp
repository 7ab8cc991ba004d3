// Profiles: recording, events, tables and trace files.
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
      .def_prop_ro("phase",
                   [](const TraceEvent& e) { return std::string(1, static_cast<char>(e.phase)); })
      .def_ro("name", &TraceEvent::name)
      .def_ro("category", &TraceEvent::category)
      .def_ro("backend", &TraceEvent::backend)
      .def_ro("process", &TraceEvent::process)
      .def_ro("thread", &TraceEvent::thread)
      .def_ro("pid", &TraceEvent::pid)
      .def_ro("tid", &TraceEvent::tid)
      .def_ro("begin_ns", &TraceEvent::begin_ns)
      .def_ro("duration_ns", &TraceEvent::duration_ns)
      .def_prop_ro("args", &arguments_of)
      .def("__repr__", [](const TraceEvent& e) {
        return "<" + e.category + " '" + e.name + "' " + std::to_string(e.duration_ns) + " ns>";
      });

  nb::class_<Profile>(m, "Profile",
                      "Records all calls on all threads from its construction to `stop`. With a "
                      "path, `stop` writes a "
                      "Chrome trace there, for ui.perfetto.dev.")
      .def(nb::init<std::string>(), nb::arg("path") = "")
      .def("stop", &Profile::stop)
      .def("events", [](const Profile& p) { return p.events(); })
      .def_prop_ro("dropped", &Profile::dropped, "Events that found their ring full.")
      .def("table", &Profile::table,
           "A summary as text: count, total, mean and share of each name.")
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
                       "A named step of your own program in profiles: with pk.span('load'): ...")
      .def(nb::init<std::string>(), nb::arg("name"))
      .def("__enter__", &UserSpan::enter)
      .def("__exit__", [](UserSpan& s, nb::args) { s.exit(); });

  m.def(
      "check_trace", [](std::string_view text) { return trace::check_chrome_json(text); },
      "What is wrong with the text of a Chrome trace file, a sentence each.");
  m.def("set_num_threads", &runtime::set_num_threads, nb::arg("count"),
        "Threads of one call, the caller included. Raises LaunchError unless 1 <= count <= 1024.");
  m.def("share_always", &runtime::share_always, nb::arg("always"),
        "For measurements: every launch is shared by all threads, however small.");
  m.def("num_threads", &runtime::num_threads, "Threads of one call, the caller included.");
}

}  // namespace picokernel::python
