// The IR's text form: print(parse(x)) == x for every canonical x.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace picokernel::ir {

inline constexpr int kTextVersion = 1;  // of `picokernel 1`, the first line of a file

struct PrintOptions {
  bool locations = false;  // loc("file":line:column) after each op
  bool names = true;  // users' names of values and sizes; without: numbers only, as in cache keys
};

/// One function, without the version line.
std::string print(const Module& m, PrintOptions options = {});
/// One op on one line, without its regions: for messages and traces.
std::string print_op(const Module& m, OpId op);

/// Parses a file of functions; the version line is optional. Throws CompileError at the line and
/// column of `file` where the text is wrong. `locate`: ops without loc(...) get their place in the
/// text.
std::vector<Module> parse(std::string_view text, const std::string& file, bool locate = false);

}  // namespace picokernel::ir
