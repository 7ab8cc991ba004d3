// Which threads touched an element last, and whether that was ordered.
#pragma once

#include <optional>
#include <vector>

#include "ir/module.h"

namespace picokernel::backend {

// One access to one element.
struct Access {
  int64_t thread = -1;  // number in the grid; -1: none
  int64_t block = -1;
  int64_t epoch = 0;  // barriers that the block has passed
  ir::OpId op = {};
  bool atomic = false;
};

// The history of an array's elements, as far as races need it.
class RaceDetector {
 public:
  explicit RaceDetector(size_t elements = 0) : cells_(elements) {}

  bool written(size_t element) const { return cells_[element].write.thread >= 0; }

  /// Records a read; gives the write that it races with.
  std::optional<Access> read(size_t element, const Access& now) {
    Cell& cell = cells_[element];
    // The last two threads that read: one of them is another than the next one that writes.
    if (cell.reads[0].thread != now.thread) cell.reads[1] = cell.reads[0];
    cell.reads[0] = now;
    return race(cell.write, now);
  }
  /// Records a write. `same`: the element keeps its value, so that no order of writes shows.
  std::optional<Access> write(size_t element, const Access& now, bool same) {
    Cell& cell = cells_[element];
    std::optional<Access> other = same ? std::nullopt : race(cell.write, now);
    for (const Access& r : cell.reads)
      if (!other && !same) other = race(r, now);
    cell.write = now;
    return other;
  }

 private:
  struct Cell {
    Access write, reads[2];
  };

  // Blocks run in any order; inside of one, barriers are all that orders threads.
  static std::optional<Access> race(const Access& before, const Access& now) {
    const bool ordered = before.thread < 0 || before.thread == now.thread ||
                         (before.atomic && now.atomic) ||
                         (before.block == now.block && before.epoch != now.epoch);
    return ordered ? std::nullopt : std::optional(before);
  }

  std::vector<Cell> cells_;
};

}  // namespace picokernel::backend
