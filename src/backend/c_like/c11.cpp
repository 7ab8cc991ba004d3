// The spellings of C11, and headers.
#include "backend/c_like/c11.h"

#include <map>

#include "backend/c_like/printer.h"

namespace picokernel::backend::c_like {
namespace {

using ir::Opcode;

constexpr FunctionName kFunctions[] = {
    {Opcode::fma, "fmaf", "fma"},       {Opcode::sqrt, "sqrtf", "sqrt"},
    {Opcode::floor, "floorf", "floor"}, {Opcode::ceil, "ceilf", "ceil"},
    {Opcode::trunc, "truncf", "trunc"}, {Opcode::rint, "rintf", "rint"},
    {Opcode::abs, "fabsf", "fabs"},     {Opcode::copysign, "copysignf", "copysign"},
};

// What the text itself uses, and small names that headers may define; identifier() keeps away from
// types in _t and macros in capitals.
constexpr std::string_view kReserved =
    "ceil ceilf copysign copysignf errno fabs fabsf floor floorf fma fmaf free linux malloc "
    "math_errhandling memcpy rint rintf sqrt sqrtf trunc truncf unix";

constexpr std::string_view kLoop = "for (int64_t $0 = 0; $0 < $1; ++$0) {";

constexpr std::string_view kHeaderHead =
    R"(// Kernels as C functions, printed by picokernel. Arrays are contiguous, in C's order; complex ones
// are pairs of a real and an imaginary part, bool is a byte of 0 or 1, float16 and bfloat16 are their
// bits. Arrays that are written may overlap others only where both begin at one address with one
// type. A function of type int allocates memory and gives -1 where there is none, else 0.
)";
constexpr std::string_view kHeaderBegin = R"(#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
)";
constexpr std::string_view kHeaderEnd = R"(
#ifdef __cplusplus
}
#endif
)";

}  // namespace

const Dialect kC11{
    .values = {"bool", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t",
               "uint64_t", "uint16_t", "uint16_t", "float", "double"},
    .elements = {"uint8_t", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t",
                 "uint32_t", "uint64_t", "uint16_t", "uint16_t", "float", "double"},
    .spaces = {},
    .pointer = "*",
    .function = "void ",
    .i64_literal = "INT64_C($0)",
    .u64_literal = "UINT64_C($0)",
    .i32_least = "INT32_MIN",
    .i64_least = "INT64_MIN",
    .infinity = "INFINITY",
    .nan = "NAN",
    .functions = kFunctions,
    .bitcast = "memcpy(&$0, &$1, sizeof $0);",
    .load_bits = "memcpy(&$0, $1 + $2, sizeof $0);",
    .store_bits = "memcpy($1 + $2, &$0, sizeof $0);",
    .parallel = {kLoop, kLoop, kLoop},
    .alloc =
        "$0 = $1 > 0 && (uint64_t)$1 > PTRDIFF_MAX / sizeof *$0 ? NULL : "
        "malloc(sizeof *$0 * ($1 > 0 ? (size_t)$1 : 1));",
    .free = "free($0);",
    .reserved = kReserved,
};

std::string notes(const ir::Module& m) {
  std::string text;
  for (const std::string& note : m.notes) text += "// " + note + "\n";
  return text;
}

// Of its first op.
Location place(const ir::Module& m) {
  const auto& ops = m.blocks[ir::Module::body()].ops;
  return ops.empty() ? Location{} : m.location(m.ops[ops[0]]);
}

void check_names(std::span<const ir::Module> kernels) {
  std::map<std::string, const ir::Module*> names;
  for (const ir::Module& m : kernels)
    if (const auto [it, fresh] = names.emplace(function_name(m), &m); !fresh)
      throw CompileError(Diagnostic{.location = place(m),
                                    .message = "kernels @" + it->second->name + " and @" + m.name +
                                               " would both be " + it->first + " in C",
                                    .notes = {"rename one of them"}});
}

std::string c_header(std::span<const ir::Module> kernels, std::string_view remarks) {
  check_names(kernels);
  std::string text = std::string(kHeaderHead) + std::string(remarks) + std::string(kHeaderBegin);
  for (const ir::Module& m : kernels)
    text += "\n" + notes(m) + Printer(m, kC11).signature() + ";\n";
  return text + std::string(kHeaderEnd);
}

}  // namespace picokernel::backend::c_like
