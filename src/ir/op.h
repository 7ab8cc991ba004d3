// The facts of ops.def as data: opcodes, names, levels, rules, effects.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace picokernel::ir {

enum class Opcode : uint8_t {
#define PK_OP(name, ...) name,
#include "ir/ops.def"
#undef PK_OP
};

enum class Level : uint8_t { graph, kernel, both };
enum class Rule : uint8_t { same, math, compare, test, count, select, explicit_, none, custom };
enum class Allowed : uint8_t { any, real, integer, floating, bits };
enum class Attribute : uint8_t { none, scalar, size, map, flag, number };
enum class Effect : uint8_t { pure, read, write, allocate, control };

struct OpInfo {
  Opcode opcode;
  std::string_view name;  // in the text: without the trailing underscore of C++ keywords
  Level level;
  int8_t operands;  // -1: any number
  Rule rule;
  Allowed allowed;
  Attribute attribute;
  Effect effect;
  uint8_t regions;
  std::string_view meaning;

  bool pure() const { return effect == Effect::pure; }
  bool atomic() const { return opcode >= Opcode::atomic_add && opcode <= Opcode::atomic_cas; }
  bool barrier() const { return opcode >= Opcode::barrier && opcode <= Opcode::barrier_or; }
  /// It means something for the threads of a grid only.
  bool of_threads() const { return opcode >= Opcode::thread_id && opcode <= Opcode::atomic_cas; }
  bool terminator() const { return opcode == Opcode::yield || opcode == Opcode::return_; }
  /// One result per point from the operands' values at that point.
  bool elementwise() const {
    return effect == Effect::pure && attribute == Attribute::none && rule != Rule::custom;
  }
};

const OpInfo& info(Opcode opcode);
std::span<const OpInfo> all_ops();
std::optional<Opcode> opcode_from_name(std::string_view name);
/// The op whose name is nearest to a misspelt one, if any is near.
std::optional<Opcode> nearest_opcode(std::string_view name);

}  // namespace picokernel::ir
