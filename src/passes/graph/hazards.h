// Which arguments must not share memory when ops run one after another.
#pragma once

#include <utility>
#include <vector>

#include "ir/module.h"

namespace picokernel::passes {

/// Pairs (i, j) of parameters, ascending: i is still read after j was first written. A call in
/// which the two overlap has to copy i beforehand. Reads by the very op that writes first are no
/// hazard, except of casts: NumPy copies overlapping arrays of different types wrongly.
std::vector<std::pair<size_t, size_t>> hazards(const ir::Module& graph);

}  // namespace picokernel::passes
