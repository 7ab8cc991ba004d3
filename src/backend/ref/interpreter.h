// Executes IR of either level directly: the statement of what every op means.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ir/module.h"

namespace picokernel::backend {

/// Runs a kernel. Parameters are 8-byte slots: pointers, or scalar bits as ir::Scalar has them.
/// Gives what it returns.
std::vector<ir::Scalar> run_kernel(const ir::Module& kernel, std::span<const uint64_t> params);

// An array for the graph interpreter: row-major elements; rank 0 has one.
struct RefArray {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<uint64_t> elements;  // bits as ir::Scalar has them
};

/// Same dtype, shape and bits, where any NaN equals any NaN.
bool equal(const RefArray& a, const RefArray& b);

/// Runs a graph; ref parameters are updated in place. Sizes must agree with the parameters' types
/// and the guards, else LaunchError. Gives the results.
std::vector<RefArray> run_graph(const ir::Module& graph, std::span<RefArray> params);

}  // namespace picokernel::backend
