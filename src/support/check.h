// PK_CHECK: an invariant whose failure is a bug of picokernel; it throws, since Python must never
// be aborted.
#pragma once

#include <sstream>

#include <picokernel/diagnostic.h>

namespace picokernel {

template <class... Parts>
[[noreturn]] void internal_error(const char* file, int line, const Parts&... parts) {
  std::ostringstream text;
  text << "internal error at " << file << ":" << line << ": ";
  (text << ... << parts);
  throw InternalError(text.str());
}

}  // namespace picokernel

#define PK_CHECK(condition, ...)                                                \
  do {                                                                          \
    if (!(condition)) [[unlikely]]                                              \
      ::picokernel::internal_error(__FILE__, __LINE__,                          \
                                   #condition __VA_OPT__(, ": ", __VA_ARGS__)); \
  } while (false)
#define PK_UNREACHABLE(...) \
  ::picokernel::internal_error(__FILE__, __LINE__, "unreachable" __VA_OPT__(, ": ", __VA_ARGS__))
