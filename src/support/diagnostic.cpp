// Diagnostics as text.
#include <picokernel/diagnostic.h>

namespace picokernel {
namespace {

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "";
}

}  // namespace

std::string to_string(const Location& location) {
  if (!location.known()) return {};
  std::string text = location.file + ":" + std::to_string(location.line);
  if (location.column != 0) text += ":" + std::to_string(location.column);
  return text;
}

std::string to_string(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics) {
    if (!text.empty()) text += "\n";
    if (d.location.known()) text += to_string(d.location) + ": " + name_of(d.severity) + ": ";
    text += d.message;
    for (const std::string& note : d.notes) text += "\n  " + note;
  }
  return text;
}

Error::Error(std::vector<Diagnostic> diagnostics)
    : std::runtime_error(to_string(diagnostics)), diagnostics_(std::move(diagnostics)) {}

}  // namespace picokernel
