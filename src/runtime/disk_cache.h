// Bytes by key, in files that outlive the process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <picokernel/api.h>

namespace picokernel::runtime {

/// One file per entry in a folder that only its user can write to. Any number of threads and
/// processes may work on a folder at once, and end at any moment: an entry is there as a whole or
/// not at all.
class PK_API DiskCache {
 public:
  struct Contents {
    uint64_t entries = 0, bytes = 0;
    std::string problem;  // why the folder cannot be used; one that is missing can
  };

  /// Touches nothing. About `most_bytes` are kept; 0: nothing is read or written.
  DiskCache(std::string folder, uint64_t most_bytes);

  /// What was stored under the key. Whatever is in doubt is not there: files that are incomplete,
  /// changed, of another format, of another key under the same hash, links, another user's, or
  /// writable by others. No byte of a file is used before owner and checksum are verified.
  std::optional<std::string> load(std::string_view key) const;
  /// Makes the folder if need be. Gives the reason why nothing could be stored, or an empty string.
  /// Values larger than an eighth of the cache are left out.
  std::string store(std::string_view key, std::string_view value) const;

  /// The keys of all entries in good order.
  std::vector<std::string> keys() const;
  Contents contents() const;
  /// Removes all entries, and what processes left that were killed while writing. Gives the number
  /// of entries.
  uint64_t clear() const;

  const std::string& folder() const { return folder_; }
  uint64_t most_bytes() const { return most_bytes_; }

 private:
  const std::string folder_;  // empty: there is none
  const uint64_t most_bytes_;
};

/// The cache of the environment as it is now: PICOKERNEL_CACHE_DIR, else XDG_CACHE_HOME/picokernel,
/// else HOME/.cache/picokernel; PICOKERNEL_CACHE_SIZE, else 512M. Throws LaunchError for a size
/// that is none.
PK_API DiskCache user_disk_cache();

}  // namespace picokernel::runtime
