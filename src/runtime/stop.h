// Whether a launch that runs should end.
#pragma once

#include <picokernel/stop.h>

namespace picokernel::runtime {

/// Sets what the host is asked, such as whether a signal came. It is asked on threads that launch,
/// at most every 10 ms, and must not throw.
PK_API void set_stop_question(bool (*question)());

/// Launches of this thread should end: its StopScope's token says so, or the host. Costs some
/// nanoseconds. Who finds it true ends the launch by `throw_stopped`.
PK_API bool stop_requested();
[[noreturn]] PK_API void throw_stopped();

}  // namespace picokernel::runtime
