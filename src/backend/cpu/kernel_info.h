// What a launch has to know of each nest of a compiled kernel; travels in front of the object code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace picokernel::backend::cpu {

// The trip count of one loop: a constant, or what a parameter slot holds.
struct Extent {
  bool constant = false;
  int64_t value = 0;  // the constant, or the slot
};

// One function of the object: void(const uint64_t* params, const int64_t* lo, const int64_t* hi),
// which runs the points lo <= index < hi. Nests run in order.
struct NestInfo {
  std::vector<Extent> extents;  // outermost first; none: code that runs once
  bool nontemporal = false;
  uint32_t bytes = 0;      // per point
  double picoseconds = 0;  // per point, on one thread
  bool loops = false;      // some points may take far longer
};

struct KernelInfo {
  bool allocates = false;  // calls pk_alloc
  std::vector<NestInfo> nests;
};

/// The name of a nest's function: what gdb and perf show. No C function has such a name.
std::string nest_symbol(const std::string& kernel, size_t nest);

/// Text that ends with a zero byte, for the start of an artifact.
std::string write_info(const KernelInfo& info);
/// Reads it back and moves `code` past it. Throws InternalError if it is not what write_info wrote.
KernelInfo read_info(std::string_view& code);

}  // namespace picokernel::backend::cpu
