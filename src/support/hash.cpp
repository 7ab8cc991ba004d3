// 128-bit content hashes by xxHash.
#include "support/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace picokernel {

Hash128 hash_bytes(std::string_view bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.low64, h.high64};
}

std::string to_string(Hash128 hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (int i = 0; i < 16; ++i) {
    text[static_cast<size_t>(15 - i)] = kDigits[(hash.high >> (4 * i)) & 15];
    text[static_cast<size_t>(31 - i)] = kDigits[(hash.low >> (4 * i)) & 15];
  }
  return text;
}

}  // namespace picokernel
