// Random graphs with arguments for them, from a seed.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "backend/ref/interpreter.h"
#include "ir/module.h"

namespace picokernel::fuzz {

struct Program {
  ir::Module graph;
  std::vector<backend::RefArray> arguments;  // for the graph's parameters
};

/// `steps` bounds how many ops are made: a smaller number with the same seed gives a prefix of the
/// program, which is how failures are shrunk.
Program random_program(uint64_t seed, int steps);

}  // namespace picokernel::fuzz
