// Ending launches that are under way.
#pragma once

#include <stop_token>

#include <picokernel/api.h>
#include <picokernel/diagnostic.h>

namespace picokernel {

/// A launch was asked to stop and ended early: arrays that it writes hold old and new elements. All
/// else is as before the call. Python: the exception of the signal, such as KeyboardInterrupt.
class PK_API Stopped : public Error {
 public:
  using Error::Error;
};

/// While it lives, launches that this thread makes on `cpu` and `ref` end by throwing Stopped, at
/// the latest some hundredths of a second after a stop is requested of the token. Scopes nest: the
/// innermost counts.
class PK_API StopScope {
 public:
  explicit StopScope(std::stop_token token);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  friend class StopState;
  std::stop_token token_;
  const StopScope* outer_;
};

}  // namespace picokernel
