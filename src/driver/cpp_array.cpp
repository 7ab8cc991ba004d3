// Views, results and DLPack tensors of the C++ API.
#include <algorithm>
#include <cstring>
#include <string>

#include <picokernel/array.h>
#include <picokernel/diagnostic.h>

#include "driver/signature.h"
#include "runtime/buffer.h"

namespace picokernel {
namespace {

enum : int32_t { kDLCPU = 1, kDLCUDAHost = 3, kDLROCMHost = 11 };  // memory that the CPU reads
enum : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6
};

[[noreturn]] void refuse(std::string message, std::string hint) {
  throw LaunchError(
      Diagnostic{.message = std::move(message), .notes = {"hint: " + std::move(hint)}});
}

DLDataType to_dlpack(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * size_of(dtype));
  switch (kind_of(dtype)) {
    case DTypeKind::boolean:
      return {kDLBool, bits, 1};
    case DTypeKind::signed_integer:
      return {kDLInt, bits, 1};
    case DTypeKind::unsigned_integer:
      return {kDLUInt, bits, 1};
    case DTypeKind::floating:
      return {dtype == DType::bf16 ? kDLBfloat : kDLFloat, bits, 1};
    case DTypeKind::complex:
      return {kDLComplex, bits, 1};
  }
  __builtin_unreachable();
}

DType from_dlpack(DLDataType type) {
  for (size_t i = 0; i < kDTypeCount; ++i) {
    const DLDataType known = to_dlpack(static_cast<DType>(i));
    if (known.code == type.code && known.bits == type.bits && known.lanes == type.lanes)
      return static_cast<DType>(i);
  }
  refuse("a DLPack tensor has type code " + std::to_string(type.code) + " with " +
             std::to_string(type.bits) + " bits and " + std::to_string(type.lanes) + " lanes",
         "bool, integers of 8 to 64 bits, floats of 16 to 64 and complex numbers of 64 and 128 in "
         "one lane "
         "can be passed");
}

void check_rank(size_t rank) {
  if (rank > ArrayView::kMaxRank)
    refuse("an array has " + std::to_string(rank) + " dimensions",
           "at most " + std::to_string(ArrayView::kMaxRank) + " can be passed");
}

// Throws unless all sizes are 0 or more and the bytes of the elements fit int64. A size of 0 does
// not excuse the others: strides are computed from them.
void check_sizes(std::span<const int64_t> shape, DType dtype) {
  auto bytes = static_cast<int64_t>(size_of(dtype));
  for (const int64_t size : shape) {
    if (size < 0)
      refuse("an array has a dimension of size " + std::to_string(size), "sizes are 0 or more");
    if (size != 0 && __builtin_mul_overflow(bytes, size, &bytes))
      refuse("an array of " +
                 driver::describe({.dtype = dtype,
                                   .rank = static_cast<uint8_t>(shape.size()),
                                   .shape = shape.data()}) +
                 " takes more bytes than an int64 can count",
             "check the order and the units of the sizes");
  }
}

void check_strides(std::span<const int64_t> shape, std::span<const int64_t> strides, DType dtype) {
  if (strides.size() != shape.size())
    refuse("an array has " + std::to_string(shape.size()) + " dimensions and " +
               std::to_string(strides.size()) + " strides",
           "give a stride in bytes for each dimension, or none");
  const auto element = static_cast<int64_t>(size_of(dtype));
  // Strides of dimensions of size 1 say nothing.
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] > 1 && strides[d] % element != 0)
      refuse("an array of " + std::string(numpy_name(dtype)) + " has a stride of " +
                 std::to_string(strides[d]) + " bytes, no multiple of the " +
                 std::to_string(element) + " bytes of an element",
             "copy it to an array without gaps first");
}

void check_data(const void* data, std::span<const int64_t> shape) {
  if (data == nullptr && std::ranges::find(shape, 0) == shape.end())
    refuse("an array has elements and a null data pointer",
           "pass memory of its size; only arrays with a dimension of size 0 need none");
}

// In bytes, of elements in C order. The sizes are checked.
void c_order(std::span<const int64_t> shape, DType dtype, int64_t* strides) {
  auto stride = static_cast<int64_t>(size_of(dtype));
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) strides[d] = stride;
}

std::vector<int64_t> c_order(std::span<const int64_t> shape, DType dtype) {
  check_sizes(shape, dtype);
  std::vector<int64_t> strides(shape.size());
  c_order(shape, dtype, strides.data());
  return strides;
}

}  // namespace

ArrayView::ArrayView(void* data, DType dtype, std::span<const int64_t> shape,
                     std::span<const int64_t> strides, bool writeable)
    : data_(data), dtype_(dtype), rank_(static_cast<uint8_t>(shape.size())), writeable_(writeable) {
  check_rank(shape.size());
  check_sizes(shape, dtype);
  if (!strides.empty()) check_strides(shape, strides, dtype);
  check_data(data, shape);
  std::ranges::copy(shape, shape_.begin());
  if (strides.empty())
    c_order(shape, dtype, strides_.data());
  else
    std::ranges::copy(strides, strides_.begin());
}

ArrayView::ArrayView(const DLTensor& t)
    : dtype_(from_dlpack(t.dtype)), rank_(static_cast<uint8_t>(t.ndim)), writeable_(true) {
  if (t.device.device_type != kDLCPU && t.device.device_type != kDLCUDAHost &&
      t.device.device_type != kDLROCMHost)
    refuse("a DLPack tensor is on a device of type " + std::to_string(t.device.device_type),
           "copy it to the CPU (type 1) first");
  if (t.ndim < 0)
    refuse("a DLPack tensor has " + std::to_string(t.ndim) + " dimensions",
           "ndim is 0 or more: was the tensor filled in?");
  check_rank(static_cast<size_t>(t.ndim));
  if (t.shape == nullptr && t.ndim != 0)
    refuse("a DLPack tensor has " + std::to_string(t.ndim) + " dimensions and no shape",
           "point shape to one size for each dimension");
  const std::span<const int64_t> sizes(t.shape, rank_);
  check_sizes(sizes, dtype_);
  check_data(t.data, sizes);
  if (t.data != nullptr) data_ = static_cast<std::byte*>(t.data) + t.byte_offset;
  std::ranges::copy(sizes, shape_.begin());
  if (t.strides == nullptr)
    c_order(sizes, dtype_, strides_.data());
  else
    for (size_t d = 0; d < rank_; ++d)
      strides_[d] = t.strides[d] * static_cast<int64_t>(size_of(dtype_));
}

ArrayView::ArrayView(Array& a) : ArrayView(a.data(), a.dtype(), a.shape(), a.strides(), true) {}
ArrayView::ArrayView(const Array& a)
    : ArrayView(a.data(), a.dtype(), a.shape(), a.strides(), false) {}

Array::Array(DType dtype, std::span<const int64_t> shape)
    : Array(dtype, shape, c_order(shape, dtype)) {}

Array::Array(DType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides)
    : dtype_(dtype), shape_(shape.begin(), shape.end()), strides_(strides.begin(), strides.end()) {
  check_sizes(shape, dtype);
  check_strides(shape, strides, dtype);
  runtime::Buffer buffer = runtime::allocate(static_cast<size_t>(size()) * size_of(dtype));
  data_ = buffer.data;
  owner_ = std::move(buffer.owner);
}

int64_t Array::size() const {
  int64_t count = 1;
  for (const int64_t s : shape_) count *= s;
  return count;
}

void* Array::contiguous(DType dtype) const {
  if (dtype != dtype_)
    refuse("an array of " + std::string(numpy_name(dtype_)) + " is asked for a span of " +
               std::string(numpy_name(dtype)),
           "ask for its own dtype, or convert in the kernel with astype");
  // Strides of dimensions of size 1 say nothing.
  const std::vector<int64_t> want = c_order(shape_, dtype_);
  for (size_t d = 0; d < shape_.size(); ++d)
    if (shape_[d] > 1 && strides_[d] != want[d] && size() != 0)
      refuse("the array is not in C order: it has no span", "use data(), shape() and strides()");
  return data_;
}

void* Array::single(DType dtype) const {
  if (size() != 1)
    refuse("item() of an array with " + std::to_string(size()) + " elements", "use span()");
  return contiguous(dtype);
}

DLManagedTensor* Array::to_dlpack() const {
  struct Owner {
    DLManagedTensor managed;
    Array array;
    std::vector<int64_t> shape, strides;  // strides in elements
  };
  auto* owner = new Owner{.managed = {}, .array = *this, .shape = shape_, .strides = strides_};
  for (int64_t& s : owner->strides) s /= static_cast<int64_t>(size_of(dtype_));
  owner->managed = {
      .dl_tensor = {.data = data_,
                    .device = {},
                    .ndim = static_cast<int32_t>(shape_.size()),
                    .dtype = picokernel::to_dlpack(dtype_),
                    .shape = owner->shape.data(),
                    .strides = owner->strides.data()},
      .manager_ctx = owner,
      .deleter = [](DLManagedTensor* self) { delete static_cast<Owner*>(self->manager_ctx); }};
  return &owner->managed;
}

}  // namespace picokernel
