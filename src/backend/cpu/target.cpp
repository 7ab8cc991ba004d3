// Detection of the host and of the cap on it.
#include "backend/cpu/target.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <picokernel/diagnostic.h>

namespace picokernel::backend::cpu {
namespace {

constexpr std::string_view kV3 = "x86-64-v3", kV4 = "x86-64-v4";

bool has_all(const llvm::StringMap<bool>& features, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (!features.lookup(name)) return false;
  return true;
}

Target detect() {
  Target host;
  host.triple = llvm::sys::getProcessTriple();
  host.x86 = llvm::Triple(host.triple).getArch() == llvm::Triple::x86_64;
  host.cpu = llvm::sys::getHostCPUName().str();
  const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  // In order of name: the map's order depends on hashes.
  std::vector<std::string> list;
  for (const auto& entry : features)
    list.push_back((entry.getValue() ? "+" : "-") + entry.getKey().str());
  std::ranges::sort(list, {}, [](const std::string& f) { return f.substr(1); });
  for (const std::string& f : list) host.features += (host.features.empty() ? "" : ",") + f;

  if (!host.x86) return host;
  host.vector_bits = 256;
  host.vector_registers = 16;
  if (!has_all(features, {"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}))
    host.problem =
        "the cpu backend needs AVX2 and FMA (x86-64-v3); this CPU, " + host.cpu + ", lacks them";
  if (has_all(features, {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})) {
    host.vector_bits = 512;
    host.vector_registers = 32;
    host.masks_any_type = true;
  }
  return host;
}

Target cap(const Target& host, std::string_view level) {
  Target capped = host;
  if (!host.x86) {
    capped.problem = "PICOKERNEL_CPU caps x86-64 only; unset it";
  } else if (level != kV3 && level != kV4) {
    capped.problem =
        "PICOKERNEL_CPU is `" + std::string(level) + "`; it takes x86-64-v3 and x86-64-v4";
  } else if (level == kV3 || host.vector_bits == 512) {
    capped.cpu = level;
    capped.features.clear();
    if (level == kV3) {
      capped.vector_bits = 256;
      capped.vector_registers = 16;
      capped.masks_any_type = false;
    }
  }
  return capped;
}

}  // namespace

const Target& current_target() {
  static const Target host = detect(), v3 = cap(host, kV3), v4 = cap(host, kV4);
  const char* variable = std::getenv("PICOKERNEL_CPU");
  const std::string_view level = variable ? variable : "";
  if (level.empty()) return host;
  if (level == kV3) return v3;
  if (level == kV4) return v4;
  thread_local Target other;
  other = cap(host, level);
  return other;
}

Target baseline_of(std::string_view triple) {
  const llvm::Triple parsed{llvm::StringRef(triple)};
  Target target{.triple = std::string(triple)};
  if (parsed.getArch() == llvm::Triple::x86_64) {
    target.cpu = kV3;
    target.vector_bits = 256;
    target.vector_registers = 16;
  } else if (parsed.getArch() == llvm::Triple::aarch64) {
    target.cpu = "generic";
    target.x86 = false;
  } else {
    throw Error(Diagnostic{.message = "there are no kernels for `" + std::string(triple) + "`",
                           .notes = {"name a machine of x86_64 or aarch64, such as "
                                     "aarch64-linux-gnu"}});
  }
  return target;
}

}  // namespace picokernel::backend::cpu
