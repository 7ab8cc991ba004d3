// What differs between targets of the C family: spellings, in one table.
//
// A pattern is text with $0, $1, ... for what is put in; an empty one says that the target has no
// such thing.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "ir/module.h"

namespace picokernel::backend::c_like {

using TypeNames = std::array<std::string_view, kRealDTypeCount>;  // by DType

struct FunctionName {
  ir::Opcode opcode;
  std::string_view f32, f64;
};

struct Dialect {
  TypeNames values;                           // of variables; half types are their bits
  TypeNames elements;                         // of arrays; a bool is a byte
  std::array<std::string_view, 3> spaces;     // before an element type, by ir::Space: "global "
  std::string_view pointer;                   // behind it: "*"
  std::string_view function;                  // before a function's name: "void "
  std::string_view i64_literal, u64_literal;  // patterns of the digits
  std::string_view i32_least, i64_least;      // the least values, which no literal can spell
  std::string_view infinity, nan;             // of float; they convert to double
  // Called by name; each is exact. They come before operators.
  std::span<const FunctionName> functions;
  std::string_view bitcast;  // a statement: variable $0 gets the bits of variable $1; $2: its type
  // Statements for memory that is seen through several types: $0 = $1[$2], $1[$2] = $0. Empty:
  // pointers of different types may show the same memory.
  std::string_view load_bits, store_bits;
  // Open a block: index $0 from 0 up to $1. By the dimension's distance from the innermost one, the
  // last for all beyond.
  std::array<std::string_view, 3> parallel;
  std::string_view alloc;  // $0 = memory for $1 elements, or 0
  std::string_view free;   // $0
  // Names that variables cannot have, a space between them, beside the keywords of C and C++.
  std::string_view reserved;
};

/// `pattern` with its $0, $1, ... replaced.
std::string fill(std::string_view pattern, std::initializer_list<std::string_view> with);

}  // namespace picokernel::backend::c_like
