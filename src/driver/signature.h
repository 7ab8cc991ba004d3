// What a trace depends on, and the checks of a call's arguments against a traced graph.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/kernel.h"

namespace picokernel::driver {

// Equal signatures may share a trace, if its guards allow: kinds, dtypes, ranks, which sizes are 1.
struct Signature {
  struct Part {
    Arg::Kind kind;
    DType dtype;
    bool weak;
    uint8_t rank;
    uint64_t ones;  // bit d: size d is 1
    friend auto operator<=>(const Part&, const Part&) = default;
  };
  std::vector<Part> parts;
  uint64_t key = 0;
  friend auto operator<=>(const Signature&, const Signature&) = default;
};

Signature signature_of(std::span<const Arg> args, uint64_t key);
std::vector<frontend::ArgSpec> arg_specs(std::span<const Arg> args,
                                         std::span<const std::string> names);

/// The size symbols' values for these arguments, or nothing if the sizes or a guard do not hold.
std::optional<std::vector<int64_t>> bind_symbols(const ir::Module& graph,
                                                 std::span<const Arg> args);

/// "float32 (3, 4)", "a Python float".
std::string describe(const Arg& arg);
/// "argument 2 'y'".
std::string label(std::span<const Arg> args, size_t i, std::span<const std::string> names = {});

/// Checks outputs against what a kernel gives, and written arguments. Throws LaunchError with all
/// that is wrong.
void check_outputs(const std::string& kernel, std::span<const OutputSpec> specs,
                   std::span<const Arg> outs, const Location& where);
void check_written(const std::string& kernel, std::span<const std::string> names,
                   const std::vector<bool>& written, std::span<const Arg> args,
                   const Location& where);

}  // namespace picokernel::driver
