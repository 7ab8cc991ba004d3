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

// How threads of a grid are spelt. Patterns end statements or stand for values as said.
struct Threads {
  // Values: thread_id, block_id, block_dim, grid_dim along axis $0 (0, 1, 2), $1 (x, y, z).
  std::array<std::string_view, 4> ids;
  std::string_view shared;             // declares $1: $2 elements of type $0, the block's
  std::string_view dynamic;            // declares $1: elements of type $0, what the launch gives
  std::string_view dynamic_parameter;  // where that is handed over as a parameter
  std::string_view barrier;            // a statement
  std::string_view vote;               // a statement: adds the bool $0 to the block's int $1
  std::string_view first;              // a condition: the first thread of the block
  // Values: what was at the pointer $0 to an unsigned integer of 4 or 8 bytes, which became $2 if
  // it was $1.
  std::string_view cas32, cas64;
  std::string_view helper;  // before the functions that atomics call: "static "
  // One step of its own where the target has it, of integers: $0 the pointer, $1 the operand; by
  // size, for types of both signs. Empty: by cas.
  std::string_view add32, add64;
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
  // Where arguments are memory and a place in it, in bytes: parameters of that for the name $0, and
  // the value that points there. Empty: arguments are pointers.
  std::string_view memory_parameters = {}, memory_pointer = {};
  std::string_view bool_parameter = {};  // where parameters cannot be bool: another type for them
  const Threads* threads = nullptr;      // null: it has none
};

/// `pattern` with its $0, $1, ... replaced.
std::string fill(std::string_view pattern, std::initializer_list<std::string_view> with);

}  // namespace picokernel::backend::c_like
