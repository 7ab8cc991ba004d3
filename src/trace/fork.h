// What has to happen round fork(): called by the runtime, which knows the order of all locks. These
// come innermost.
#pragma once

namespace picokernel::trace {

void before_fork();
void after_fork_in_parent();
/// The child keeps its thread's ring and forgets all sessions.
void after_fork_in_child();

}  // namespace picokernel::trace
