// Durations and columns.
#include "trace/text.h"

#include <algorithm>
#include <cstdio>

namespace picokernel::trace {

std::string duration(double ns) {
  char text[32];
  if (ns < 1e3)
    std::snprintf(text, sizeof text, "%.0f ns", ns);
  else if (ns < 1e6)
    std::snprintf(text, sizeof text, "%.2f us", ns / 1e3);
  else if (ns < 1e9)
    std::snprintf(text, sizeof text, "%.2f ms", ns / 1e6);
  else
    std::snprintf(text, sizeof text, "%.2f s", ns / 1e9);
  return text;
}

size_t width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

void append(std::string& out, std::string_view text, size_t column, bool right) {
  const size_t blank = column > width(text) ? column - width(text) : 0;
  if (right) out.append(blank, ' ');
  out += text;
  if (!right) out.append(blank, ' ');
}

void end_line(std::string& out) {
  while (out.ends_with(' ')) out.pop_back();
  out += '\n';
}

}  // namespace picokernel::trace
