// Scratch arrays that are used again once their value is dead.
#pragma once

#include <optional>
#include <vector>

#include "ir/type.h"

namespace picokernel::passes {

// When a value lives, in positions of a program.
struct Lifetime {
  size_t def = 0, last_use = 0;
  bool overwrites = false;  // its definition may write where a pointwise operand is
  bool pointwise = false;   // its last use may be overwritten by the result
};

class TempPool {
 public:
  /// A free scratch of this type, or a further one; `preferred` if that is free. Definitions come
  /// in order.
  size_t take(const ir::Type& type, const Lifetime& life, std::optional<size_t> preferred) {
    std::optional<size_t> chosen;
    for (size_t i = 0; i < temps_.size(); ++i) {
      const auto& [temp_type, last] = temps_[i];
      const bool free = last.last_use < life.def ||
                        (last.last_use == life.def && last.pointwise && life.overwrites);
      if (temp_type != type || !free) continue;
      // The latest one is still in the cache.
      if (!chosen || i == preferred ||
          (chosen != preferred && last.last_use > temps_[*chosen].second.last_use))
        chosen = i;
    }
    if (!chosen) {
      chosen = temps_.size();
      temps_.emplace_back();
    }
    temps_[*chosen] = {type, life};
    return *chosen;
  }

 private:
  std::vector<std::pair<ir::Type, Lifetime>> temps_;
};

}  // namespace picokernel::passes
