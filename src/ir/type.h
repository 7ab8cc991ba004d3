// Types of values: arrays (rank 0: scalars), refs to storages, pointers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <picokernel/dtype.h>

#include "support/size_expr.h"

namespace picokernel::ir {

using TypeId = Index<struct TypeTag>;

enum class TypeKind : uint8_t {
  value,  // an array of a dtype; rank 0 is a scalar, written `f32`
  ref,    // a storage seen through a map, written `ref f32[n0, 3]`
  ptr,    // memory of a kernel, written `ptr<global, f32>`
};
enum class Space : uint8_t { global, shared, local };

struct Type {
  TypeKind kind = TypeKind::value;
  DType dtype = DType::f32;
  Space space = Space::global;     // ptr only
  std::vector<SizeId> shape = {};  // value and ref only

  bool is_scalar() const { return kind == TypeKind::value && shape.empty(); }
  friend auto operator<=>(const Type&, const Type&) = default;
};

class TypeTable {
 public:
  TypeId intern(const Type& type) {
    const auto [it, added] = ids_.try_emplace(type, TypeId(types_.size()));
    if (added) types_.push_back(type);
    return it->second;
  }
  const Type& operator[](TypeId id) const { return types_[id.value]; }

 private:
  std::vector<Type> types_;
  std::map<Type, TypeId> ids_;
};

}  // namespace picokernel::ir
