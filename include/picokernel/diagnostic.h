// Locations, diagnostics and the errors that the public API throws.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <picokernel/api.h>

namespace picokernel {

/// A place in the user's source. line and column count from 1; line 0: no place known.
struct Location {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
  uint32_t end_column = 0;  // one past the last column of the expression; 0: unknown

  bool known() const { return line != 0; }
  friend bool operator==(const Location&, const Location&) = default;
};

/// `file:line:column`, or an empty string when the place is unknown.
PK_API std::string to_string(const Location& location);

enum class Severity : uint8_t { error, warning, note };

struct Diagnostic {
  Severity severity = Severity::error;
  Location location = {};
  std::string message = {};             // what is wrong, with the types seen
  std::vector<std::string> notes = {};  // what is allowed, and one hint
};

/// All diagnostics as one text: `file:line:column: error: message`, notes indented below.
PK_API std::string to_string(const std::vector<Diagnostic>& diagnostics);

/// Base of every error that picokernel throws.
class PK_API Error : public std::runtime_error {
 public:
  explicit Error(std::vector<Diagnostic> diagnostics);
  explicit Error(Diagnostic diagnostic) : Error(std::vector<Diagnostic>{std::move(diagnostic)}) {}
  explicit Error(std::string message) : Error(Diagnostic{.message = std::move(message)}) {}
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

/// The kernel's text or trace is wrong; Python: a SyntaxError.
class PK_API CompileError : public Error {
 public:
  using Error::Error;
};

/// The arguments of a call are wrong; nothing was written. Python: a ValueError.
class PK_API LaunchError : public Error {
 public:
  using Error::Error;
};

/// A running kernel failed a check. Python: a RuntimeError.
class PK_API KernelError : public Error {
 public:
  using Error::Error;
};

/// A bug in picokernel. Carries the IR and how to reproduce it where known.
class PK_API InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace picokernel
