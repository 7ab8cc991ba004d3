// 128-bit content hashes (XXH3), for keys of kernels.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace picokernel {

struct Hash128 {
  uint64_t low = 0, high = 0;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

Hash128 hash_bytes(std::string_view bytes);
/// 32 hexadecimal digits.
std::string to_string(Hash128 hash);

}  // namespace picokernel

template <>
struct std::hash<picokernel::Hash128> {
  size_t operator()(const picokernel::Hash128& h) const noexcept { return h.low; }
};
