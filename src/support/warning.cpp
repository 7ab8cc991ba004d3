// The host's handler of warnings.
#include "support/warning.h"

#include <atomic>
#include <cstdio>

namespace picokernel {
namespace {

void print(const std::string& message) noexcept {
  std::fprintf(stderr, "picokernel: warning: %s\n", message.c_str());
}

std::atomic<WarningHandler> current{print};

}  // namespace

void set_warning_handler(WarningHandler handler) { current = handler; }

void warn(const std::string& message) noexcept { current.load()(message); }

}  // namespace picokernel
