// Loops of a call: coalesced and sorted.
#include "driver/layout.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace picokernel::driver {
namespace {

struct Loop {
  int64_t extent = 1;
  std::vector<int64_t> strides;  // per access
};

// Outer before inner: by the first access whose strides differ, larger outside. Zero strides say
// nothing, except that an axis which no access but zero-stride ones... keeps its place.
bool outside(const Loop& a, const Loop& b, std::span<const size_t> order) {
  for (const size_t i : order) {
    const int64_t x = std::abs(a.strides[i]), y = std::abs(b.strides[i]);
    if (x == 0 || y == 0) continue;
    if (x != y) return x > y;
  }
  return true;
}

// Loops that only run backwards run forwards from the other end.
void flip(std::vector<Loop>& loops, std::vector<AccessLayout>& accesses) {
  for (Loop& loop : loops) {
    const bool backwards = std::ranges::all_of(loop.strides, [](int64_t s) { return s <= 0; }) &&
                           std::ranges::any_of(loop.strides, [](int64_t s) { return s < 0; });
    if (!backwards) continue;
    for (size_t a = 0; a < accesses.size(); ++a) {
      accesses[a].offset += (loop.extent - 1) * loop.strides[a];
      loop.strides[a] = -loop.strides[a];
    }
  }
}

// Insertion sort, as nditer's: stable, and right for a relation that is not a total order.
void sort(std::vector<Loop>& loops, std::span<const size_t> order) {
  for (size_t i = 1; i < loops.size(); ++i)
    for (size_t j = i; j > 0 && !outside(loops[j - 1], loops[j], order); --j)
      std::swap(loops[j - 1], loops[j]);
}

// An outer loop that continues where the inner one ends is one loop with it.
void coalesce(std::vector<Loop>& loops) {
  for (size_t i = 0; i + 1 < loops.size();) {
    const Loop &outer = loops[i], &inner = loops[i + 1];
    bool joins = true;
    for (size_t a = 0; a < outer.strides.size(); ++a)
      joins = joins && outer.strides[a] == inner.strides[a] * inner.extent;
    if (!joins) {
      ++i;
      continue;
    }
    loops[i + 1].extent *= outer.extent;
    loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// Rows of a few elements, such as those of (n, 3) with (3,), are no work for vectors: where all
// other accesses run on from row to row, the two loops become one in which the access that starts
// anew in each row is periodic. Gives the period, or 0.
int64_t fold_short_rows(std::vector<Loop>& loops, std::vector<AccessLayout>& accesses,
                        const passes::Nest& nest) {
  constexpr int64_t kLongestRow = 8, kFewestRows = 64;
  if (loops.size() < 2) return 0;
  const Loop &outer = loops[loops.size() - 2], &inner = loops.back();
  if (inner.extent > kLongestRow || outer.extent < kFewestRows) return 0;
  std::vector<bool> periodic;
  for (size_t a = 0; a < accesses.size(); ++a) {
    const bool joins = outer.strides[a] == inner.strides[a] * inner.extent;
    periodic.push_back(!joins);
    const bool starts_anew =
        outer.strides[a] == 0 && inner.strides[a] == 1 && !nest.accesses[a].written;
    if (!joins && !starts_anew) return 0;
  }
  const int64_t period = inner.extent;
  loops.back().extent *= outer.extent;
  loops.erase(loops.end() - 2);
  for (size_t a = 0; a < accesses.size(); ++a) accesses[a].periodic = periodic[a];
  return period;
}

// The parts of complex numbers, the channels of an image: together they are whole vectors.
std::vector<passes::Neighbour> find_neighbours(std::span<const AccessLayout> accesses) {
  constexpr int64_t kMost = 4;
  std::vector<passes::Neighbour> neighbours;
  for (size_t a = 0; a < accesses.size(); ++a) {
    neighbours.push_back({.leader = a});
    const int64_t step = accesses[a].strides.back();
    if (step < 2 || step > kMost) continue;
    for (size_t b = 0; b < a; ++b) {
      const size_t leader = neighbours[b].leader;
      const int64_t delta = accesses[a].offset - accesses[leader].offset;
      if (accesses[a].root != accesses[leader].root ||
          accesses[a].strides != accesses[leader].strides || std::abs(delta) >= step)
        continue;
      neighbours[a] = {.leader = leader, .delta = delta};
      break;
    }
  }
  return neighbours;
}

}  // namespace

ArrayLayout layout_of(const Arg& a) {
  const auto size = static_cast<int64_t>(size_of(real_of(a.dtype)));
  ArrayLayout layout{.shape = {a.shape, a.shape + a.rank}, .strides = {}};
  for (size_t d = 0; d < a.rank; ++d) layout.strides.push_back(a.strides[d] / size);
  if (is_complex(a.dtype)) {
    layout.shape.push_back(2);
    layout.strides.push_back(1);
  }
  return layout;
}

NestLayout lay_out(const passes::Nests& nests, const passes::Nest& nest,
                   std::span<const int64_t> symbols, const std::vector<ArrayLayout>& arrays) {
  NestLayout out;
  std::vector<Loop> loops;
  const size_t rank = nest.shape.size();
  for (const SizeId s : nest.shape) {
    loops.push_back({.extent = nests.sizes.eval(s, symbols)});
    out.empty = out.empty || loops.back().extent == 0;
  }
  for (const passes::Access& a : nest.accesses) {
    const ArrayLayout& array = arrays[a.root.value];
    AccessLayout access{.root = a.root};
    for (const ir::DimPick& p : a.map.picks)
      access.offset +=
          nests.sizes.eval(p.index, symbols) * array.strides[static_cast<size_t>(p.source)];
    std::vector<int64_t> strides(rank, 0);
    const size_t missing = rank - a.map.dims.size();
    for (size_t d = 0; d < a.map.dims.size(); ++d) {
      const ir::DimMap& dim = a.map.dims[d];
      if (dim.source == ir::DimMap::kNewAxis) continue;
      const int64_t stride = array.strides[static_cast<size_t>(dim.source)];
      const int64_t start = nests.sizes.eval(dim.start, symbols),
                    extent = nests.sizes.eval(dim.extent, symbols),
                    last = start + (extent - 1) * dim.step,
                    size = array.shape[static_cast<size_t>(dim.source)];
      if (extent > 0 && (std::min(start, last) < 0 || std::max(start, last) >= size))
        throw InternalError("a view reaches from " + std::to_string(start) + " to " +
                            std::to_string(last) + " in a dimension of " + std::to_string(size));
      access.offset += start * stride;
      // A dimension of one is broadcast over whatever the nest has there.
      if (nests.sizes.eval(dim.extent, symbols) != 1) strides[missing + d] = stride * dim.step;
    }
    for (size_t d = 0; d < rank; ++d) loops[d].strides.push_back(strides[d]);
    out.accesses.push_back(std::move(access));
  }
  // What is written decides the order first: stores are the dearer side.
  std::vector<size_t> order(nest.accesses.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(!nest.accesses[i].written, i); });

  std::erase_if(loops, [](const Loop& l) { return l.extent == 1; });
  flip(loops, out.accesses);
  sort(loops, order);
  coalesce(loops);
  out.period = fold_short_rows(loops, out.accesses, nest);
  // One point: a loop of one, unit strides, so that it shares the code of contiguous arrays.
  if (loops.empty())
    loops.push_back({.extent = 1, .strides = std::vector<int64_t>(nest.accesses.size(), 1)});
  for (const Loop& l : loops) out.extents.push_back(l.extent);
  for (size_t a = 0; a < out.accesses.size(); ++a)
    for (const Loop& l : loops) out.accesses[a].strides.push_back(l.strides[a]);
  out.neighbours = find_neighbours(out.accesses);
  return out;
}

passes::NestClass classify(const NestLayout& layout) {
  using passes::Stride;
  passes::NestClass c{.rank = layout.extents.size(),
                      .strides = {},
                      .period = layout.period,
                      .neighbours = layout.neighbours};
  std::vector<size_t> members(layout.accesses.size(), 0);  // by leader
  for (const passes::Neighbour& n : layout.neighbours) ++members[n.leader];
  for (size_t a = 0; a < layout.accesses.size(); ++a) {
    const AccessLayout& access = layout.accesses[a];
    std::vector<Stride> strides;
    for (const int64_t s : access.strides)
      strides.push_back(s == 0 ? Stride::zero : s == 1 ? Stride::unit : Stride::any);
    if (access.periodic) strides.back() = Stride::periodic;
    if (members[layout.neighbours[a].leader] > 1)
      strides.back() = access.strides.back() == 2   ? Stride::two
                       : access.strides.back() == 3 ? Stride::three
                                                    : Stride::four;
    c.strides.push_back(std::move(strides));
  }
  return c;
}

std::vector<int64_t> k_order_strides(std::span<const int64_t> shape,
                                     std::span<const ArrayLayout* const> inputs) {
  std::vector<size_t> axes(shape.size());  // outermost in memory first
  std::iota(axes.begin(), axes.end(), size_t{0});
  const auto before = [&](size_t x, size_t y) {
    for (const ArrayLayout* in : inputs) {
      const int64_t a = std::abs(in->strides[x]), b = std::abs(in->strides[y]);
      if (a != 0 && b != 0 && a != b) return a > b;
    }
    return x < y;
  };
  for (size_t i = 1; i < axes.size(); ++i)
    for (size_t j = i; j > 0 && !before(axes[j - 1], axes[j]); --j) std::swap(axes[j - 1], axes[j]);
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    strides[axes[i]] = stride;
    stride *= std::max<int64_t>(shape[axes[i]], 1);
  }
  return strides;
}

}  // namespace picokernel::driver
