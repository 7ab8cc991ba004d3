// Typed 32-bit indices into tables, and a vector that takes only its own kind of index.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace picokernel {

template <class Tag>
struct Index {
  static constexpr uint32_t kNone = ~uint32_t{0};
  uint32_t value = kNone;

  constexpr Index() = default;
  constexpr explicit Index(size_t v) : value(static_cast<uint32_t>(v)) {}
  constexpr bool valid() const { return value != kNone; }
  friend constexpr auto operator<=>(Index, Index) = default;
};

template <class Id, class T>
class IndexVector {
 public:
  Id push(T item) {
    items_.push_back(std::move(item));
    return Id(items_.size() - 1);
  }
  T& operator[](Id id) { return items_[id.value]; }
  const T& operator[](Id id) const { return items_[id.value]; }
  size_t size() const { return items_.size(); }
  bool contains(Id id) const { return id.value < items_.size(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<T> items_;
};

}  // namespace picokernel

template <class Tag>
struct std::hash<picokernel::Index<Tag>> {
  size_t operator()(picokernel::Index<Tag> i) const noexcept {
    return std::hash<uint32_t>{}(i.value);
  }
};
