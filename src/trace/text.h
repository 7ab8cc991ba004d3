// What the tables of this folder share.
#pragma once

#include <string>
#include <string_view>

namespace picokernel::trace {

/// As people read it: `1.25 ms`.
std::string duration(double ns);
/// Of UTF-8, in characters.
size_t width(std::string_view text);
/// Appends the text, filled up with blanks to `column` characters.
void append(std::string& out, std::string_view text, size_t column, bool right = false);
/// Ends a line of cells.
void end_line(std::string& out);

}  // namespace picokernel::trace
