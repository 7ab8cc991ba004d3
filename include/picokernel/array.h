// Arrays outside of kernels: views of the caller's memory, DLPack tensors, and results that own
// theirs. The structs of DLPack 1.0 are declared here, so nothing else is needed to exchange
// arrays.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

#include <picokernel/api.h>
#include <picokernel/dtype.h>

namespace picokernel {

// ---- DLPack 1.0, as far as it is used; layouts are those of dlpack.h
// --------------------------------

struct DLDevice {
  int32_t device_type = 1;  // 1: CPU
  int32_t device_id = 0;
};
struct DLDataType {
  uint8_t code = 0;  // 0: int, 1: unsigned, 2: float, 4: bfloat, 5: complex, 6: bool
  uint8_t bits = 0;
  uint16_t lanes = 1;
};
struct DLTensor {
  void* data = nullptr;
  DLDevice device;
  int32_t ndim = 0;
  DLDataType dtype;
  int64_t* shape = nullptr;
  int64_t* strides = nullptr;  // in elements; null: C order
  uint64_t byte_offset = 0;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx = nullptr;
  void (*deleter)(DLManagedTensor* self) = nullptr;
};

/// Ours or the one of dlpack.h.
template <class T>
concept DLTensorLike = requires(const T& t) {
  { t.data } -> std::convertible_to<void*>;
  { t.device.device_type } -> std::convertible_to<int64_t>;
  { t.ndim } -> std::convertible_to<int32_t>;
  { t.dtype.lanes } -> std::convertible_to<uint16_t>;
  { t.shape } -> std::convertible_to<const int64_t*>;
  { t.strides } -> std::convertible_to<const int64_t*>;
  { t.byte_offset } -> std::convertible_to<uint64_t>;
};

// ---------------------------------------------------------------------------------------------------

/// C++ types of array elements. Integers are told apart by sign and size, whatever they are called.
template <class T>
concept Element =
    std::integral<std::remove_const_t<T>> || std::same_as<std::remove_const_t<T>, float16> ||
    std::same_as<std::remove_const_t<T>, bfloat16> || std::same_as<std::remove_const_t<T>, float> ||
    std::same_as<std::remove_const_t<T>, double> ||
    std::same_as<std::remove_const_t<T>, std::complex<float>> ||
    std::same_as<std::remove_const_t<T>, std::complex<double>>;
template <Element T>
inline constexpr DType element_dtype = [] {
  using E = std::remove_const_t<T>;
  if constexpr (!std::is_integral_v<E> || std::is_same_v<E, bool>)
    return dtype_of<E>;
  else if constexpr (std::is_signed_v<E>)
    return sizeof(E) == 1   ? DType::i8
           : sizeof(E) == 2 ? DType::i16
           : sizeof(E) == 4 ? DType::i32
                            : DType::i64;
  else
    return sizeof(E) == 1   ? DType::u8
           : sizeof(E) == 2 ? DType::u16
           : sizeof(E) == 4 ? DType::u32
                            : DType::u64;
}();

class Array;

/// An array in memory that somebody else owns and that must outlive the view's use. Any strides:
/// in bytes, negative ones and, for inputs, 0 included.
class PK_API ArrayView {
 public:
  static constexpr size_t kMaxRank = 16;

  ArrayView() noexcept {}
  /// Elements in C order. Throws LaunchError here and below if the rank exceeds kMaxRank, a size is
  /// negative, the bytes of all elements overflow int64, a stride is no multiple of the element's
  /// size, or data is null though there are elements.
  template <Element T>
  ArrayView(T* data, std::initializer_list<int64_t> shape)
      : ArrayView(data, std::span(shape.begin(), shape.size())) {}
  template <Element T>
  ArrayView(T* data, std::span<const int64_t> shape)
      : ArrayView(as_void(data), element_dtype<T>, shape, {}, !std::is_const_v<T>) {}
  template <Element T>
  ArrayView(T* data, std::initializer_list<int64_t> shape, std::initializer_list<int64_t> strides)
      : ArrayView(as_void(data), element_dtype<T>, std::span(shape.begin(), shape.size()),
                  std::span(strides.begin(), strides.size()), !std::is_const_v<T>) {}
  /// Strides in bytes, one per dimension; none: C order.
  ArrayView(void* data, DType dtype, std::span<const int64_t> shape,
            std::span<const int64_t> strides = {}, bool writeable = true);
  /// Spans, vectors and arrays of elements: one dimension.
  template <std::ranges::contiguous_range R>
    requires std::ranges::sized_range<R> &&
                 Element<std::remove_reference_t<std::ranges::range_reference_t<R>>>
  ArrayView(R&& range) noexcept
      : data_(as_void(std::ranges::data(range))),
        dtype_(element_dtype<std::ranges::range_value_t<R>>),
        rank_(1),
        writeable_(!std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>) {
    shape_[0] = static_cast<int64_t>(std::ranges::size(range));
    strides_[0] = sizeof(std::ranges::range_value_t<R>);
  }
  /// Throws LaunchError for tensors of another device than the CPU or of another dtype than ours,
  /// for a negative ndim, and as above.
  template <DLTensorLike T>
  ArrayView(const T& t)
      : ArrayView(DLTensor{t.data,
                           {static_cast<int32_t>(t.device.device_type), 0},
                           t.ndim,
                           {t.dtype.code, t.dtype.bits, t.dtype.lanes},
                           t.shape,
                           t.strides,
                           t.byte_offset}) {}
  ArrayView(const DLTensor& tensor);
  ArrayView(Array& array);
  ArrayView(const Array& array);

  ArrayView(const ArrayView& other) noexcept { *this = other; }
  ArrayView& operator=(const ArrayView& other) noexcept {
    data_ = other.data_;
    dtype_ = other.dtype_;
    rank_ = other.rank_;
    writeable_ = other.writeable_;
    for (size_t d = 0; d < rank_; ++d) {
      shape_[d] = other.shape_[d];
      strides_[d] = other.strides_[d];
    }
    return *this;
  }

  void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  size_t rank() const { return rank_; }
  bool writeable() const { return writeable_; }
  std::span<const int64_t> shape() const { return {shape_.data(), rank_}; }
  std::span<const int64_t> strides() const { return {strides_.data(), rank_}; }  // bytes

 private:
  static void* as_void(const volatile void* data) { return const_cast<void*>(data); }

  void* data_ = nullptr;
  DType dtype_ = DType::f32;
  uint8_t rank_ = 0;
  bool writeable_ = false;
  std::array<int64_t, kMaxRank> shape_, strides_;  // the first rank_ of each
};

/// An array that owns its memory: a kernel's result. Copies share the memory.
class PK_API Array {
 public:
  /// Uninitialised, C order. Throws LaunchError here and below if a size is negative or the bytes
  /// of all elements overflow int64.
  Array(DType dtype, std::span<const int64_t> shape);
  Array(DType dtype, std::initializer_list<int64_t> shape)
      : Array(dtype, std::span(shape.begin(), shape.size())) {}
  /// Uninitialised; strides in bytes, of a layout without gaps.
  Array(DType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides);

  void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  std::span<const int64_t> shape() const { return shape_; }
  std::span<const int64_t> strides() const { return strides_; }  // bytes
  int64_t size() const;                                          // elements

  /// The elements in C order. Throws LaunchError if T is not the dtype, or the layout another.
  template <Element T>
  std::span<T> span() const {
    return {static_cast<T*>(contiguous(element_dtype<T>)), static_cast<size_t>(size())};
  }
  /// The one element of a 0-d array or array of size 1; throws LaunchError as span does.
  template <Element T>
  T item() const {
    return *static_cast<const T*>(single(element_dtype<T>));
  }

  /// A tensor that shares the memory; call its deleter once.
  DLManagedTensor* to_dlpack() const;

 private:
  void* contiguous(DType dtype) const;
  void* single(DType dtype) const;

  std::shared_ptr<void> owner_;
  void* data_ = nullptr;
  DType dtype_;
  std::vector<int64_t> shape_, strides_;
};

}  // namespace picokernel
