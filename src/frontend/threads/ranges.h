// What integers a value can be: enough to see that an index is not negative.
#pragma once

#include <limits>
#include <map>
#include <vector>

#include "ir/module.h"

namespace picokernel::frontend::threads {

struct Range {
  int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
};

class Ranges {
 public:
  explicit Ranges(const ir::Module& m) : m_(m) {}

  /// Of an integer. Without bounds where nothing is known.
  Range of(ir::ValueId v) const { return of(v, kDepth); }

  /// The value is known to lie there wherever it is used.
  void know(ir::ValueId v, Range range) { known_[v] = range; }
  /// Until leave(): the condition holds, or does not.
  void enter(ir::ValueId condition, bool holds);
  void leave() { facts_.pop_back(); }

 private:
  static constexpr int kDepth = 16;
  using Facts = std::map<ir::ValueId, Range>;

  Range of(ir::ValueId v, int depth) const;
  Range computed(ir::ValueId v, int depth) const;
  void assume(ir::ValueId condition, bool holds, Facts& facts) const;

  const ir::Module& m_;
  std::map<ir::ValueId, Range> known_;
  std::vector<Facts> facts_;
};

}  // namespace picokernel::frontend::threads
