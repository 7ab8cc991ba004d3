// Lookups as counters of traces and lines of a log.
#include "driver/cache_log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include <picokernel/diagnostic.h>

#include "trace/trace.h"

namespace picokernel::driver {

bool logs_lookups() {
  static const bool logs = [] {
    const char* variable = std::getenv("PICOKERNEL_LOG");
    const std::string_view text = variable != nullptr ? variable : "";
    if (text.empty() || text == "cache") return !text.empty();
    throw LaunchError(Diagnostic{
        .message = "PICOKERNEL_LOG is '" + std::string(text) + "'",
        .notes = {"it takes 'cache': a line on stderr for each lookup of a compiled kernel"}});
  }();
  return logs;
}

std::string nearest_on_disk(const runtime::DiskCache& disk, const runtime::CacheKey& key,
                            std::string otherwise) {
  std::optional<runtime::CacheKey> nearest;
  for (const std::string& bytes : disk.keys()) {
    runtime::CacheKey other = runtime::key_from_bytes(bytes);
    if (other != key && (!nearest || distance(other, key) < distance(*nearest, key)))
      nearest = std::move(other);
  }
  return nearest ? describe_difference(*nearest, key) : std::move(otherwise);
}

void record_lookup(std::string_view kernel, std::string_view backend, Found found,
                   const std::string& difference) {
  static const trace::NameId names[] = {trace::intern("kernels found in memory"),
                                        trace::intern("kernels found on disk"),
                                        trace::intern("kernels compiled")};
  static std::atomic<int64_t> counts[3];
  const auto i = static_cast<size_t>(found);
  trace::counter(names[i], counts[i].fetch_add(1, std::memory_order_relaxed) + 1);
  if (!logs_lookups()) return;
  static constexpr const char* kWords[] = {"hit", "disk", "miss"};
  std::string line =
      "picokernel cache: " + std::string(kernel) + " on " + std::string(backend) + ": " + kWords[i];
  if (found == Found::nowhere) line += ", " + difference;
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace picokernel::driver
