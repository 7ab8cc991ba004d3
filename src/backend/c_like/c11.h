// C11 as a dialect, and headers for functions with C's calling convention, whoever compiles them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "backend/c_like/dialect.h"

namespace picokernel::backend::c_like {

extern const Dialect kC11;

/// What a reader of a function should know: its arrays' shapes and its guards, as comments.
std::string notes(const ir::Module& m);

/// Throws CompileError if two kernels of a file would give one function.
void check_names(std::span<const ir::Module> kernels);

/// Declares the functions of kernels that takes_arrays made; `remarks` are further lines of
/// comment.
std::string c_header(std::span<const ir::Module> kernels, std::string_view remarks);

}  // namespace picokernel::backend::c_like
