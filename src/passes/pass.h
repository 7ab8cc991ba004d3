// What a pass is, and the table of all passes.
#pragma once

#include <span>
#include <string_view>

#include "ir/module.h"

namespace picokernel::passes {

struct LaunchClass;

// What a pass may know of where the code will run.
struct Target {
  std::string_view backend = "ref";
  const LaunchClass* launch =
      nullptr;  // lower_loops; null: contiguous arrays of the graph's shapes
};

// Total on verified IR; rebuilds instead of editing.
using PassFunction = ir::Module (*)(const ir::Module&, const Target&);

struct Pass {
  std::string_view name;
  PassFunction run;
  std::string_view summary;
};

std::span<const Pass> all_passes();
const Pass* find_pass(std::string_view name);

}  // namespace picokernel::passes
