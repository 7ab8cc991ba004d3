// A deferred call as a node of MLX's graph. Needs MLX's headers and C++20; nothing of picokernel
// has to be linked: Python compiles this file on the user's machine, picokernel/mlx.h is for C++.
#pragma once

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <mlx/backend/cpu/encoder.h>
#include <mlx/mlx.h>
#include <mlx/primitives.h>
#include <sys/mman.h>

#include <picokernel/deferred.h>

namespace picokernel::graph {

namespace mx = ::mlx::core;

/// In the order of picokernel::DType.
inline mx::Dtype mlx_type(DType t) {
  switch (t) {
    case DType::b1:
      return mx::bool_;
    case DType::i8:
      return mx::int8;
    case DType::i16:
      return mx::int16;
    case DType::i32:
      return mx::int32;
    case DType::i64:
      return mx::int64;
    case DType::u8:
      return mx::uint8;
    case DType::u16:
      return mx::uint16;
    case DType::u32:
      return mx::uint32;
    case DType::u64:
      return mx::uint64;
    case DType::f16:
      return mx::float16;
    case DType::bf16:
      return mx::bfloat16;
    case DType::f32:
      return mx::float32;
    case DType::f64:
      return mx::float64;
    case DType::c64:
      return mx::complex64;
    case DType::c128:
      break;
  }
  throw std::invalid_argument("MLX has no complex128");
}
inline DType picokernel_type(mx::Dtype t) {
  for (int i = 0; i < static_cast<int>(DType::c128); ++i)
    if (mlx_type(static_cast<DType>(i)) == t) return static_cast<DType>(i);
  throw std::invalid_argument("MLX has a type of elements that picokernel does not know");
}

/// Calls run on CPU streams; where the current one is a GPU's, MLX's own operations have to do.
inline bool on_cpu() { return mx::default_device() == mx::Device::cpu; }

inline constexpr size_t kSizeBytes = sizeof(size_t);

// MLX's allocator of CPU builds puts the size before the data. Where it does, memory of another
// origin can be an array's, too.
inline bool has_plain_buffers() {
  static const bool found = [] {
    std::array<uint64_t, 4> memory{24, 0, 0, 0};
    mx::allocator::Buffer ours(memory.data());
    const mx::allocator::Data theirs = mx::allocator::malloc(16);
    const auto* p = static_cast<const uint64_t*>(std::as_const(theirs).buffer().ptr());
    return *p >= 16 && *p <= (uint64_t{1} << 20) && theirs.buffer().raw_ptr() == p + 1 &&
           ours.raw_ptr() == memory.data() + 1 && mx::allocator::allocator().size(ours) == 24;
  }();
  return found;
}

// Memory of large results. MLX's own cache of 32 MiB gives large buffers back to the system, which
// costs more than most kernels: each new page is a fault. Blocks go from any thread to any other.
class LargeMemory {
 public:
  static LargeMemory& instance() {
    static auto* const one = new LargeMemory;  // arrays may outlive static objects
    return *one;
  }
  /// The 8 bytes before it are the caller's. Null: there is no memory.
  char* take(size_t bytes) {
    const size_t whole = (bytes + kStart + kHugePage - 1) / kHugePage * kHugePage;
    {
      const std::lock_guard lock(mutex_);
      for (auto block = kept_.rbegin(); block != kept_.rend(); ++block)
        if (whole <= block->bytes && block->bytes <= whole + whole / 4) {
          const Block found = *block;
          kept_.erase(std::next(block).base());
          kept_bytes_ -= found.bytes;
          return new (found.begin) Block(found), found.begin + kStart;
        }
    }
    auto* const begin = static_cast<char*>(std::aligned_alloc(kHugePage, whole));
    if (begin == nullptr) return nullptr;
#if defined(MADV_HUGEPAGE)
    madvise(begin, whole, MADV_HUGEPAGE);
#endif
    return new (begin) Block{begin, whole}, begin + kStart;
  }
  void give(char* memory) {
    const Block block = *std::launder(reinterpret_cast<Block*>(memory - kStart));
    const std::lock_guard lock(mutex_);
    kept_.push_back(block);
    kept_bytes_ += block.bytes;
    while (kept_bytes_ > kCap) drop_oldest();
  }
  /// Gives what is kept to the system; gives the bytes.
  size_t trim() {
    const std::lock_guard lock(mutex_);
    const size_t bytes = kept_bytes_;
    while (!kept_.empty()) drop_oldest();
    return bytes;
  }

 private:
  static constexpr size_t kHugePage = size_t{2} << 20, kStart = 64, kCap = size_t{256} << 20;
  struct Block {  // lies in its own first bytes, too
    char* begin;
    size_t bytes;
  };
  void drop_oldest() {
    kept_bytes_ -= kept_.front().bytes;
    std::free(kept_.front().begin);
    kept_.erase(kept_.begin());
  }

  std::mutex mutex_;
  std::vector<Block> kept_;  // oldest first
  size_t kept_bytes_ = 0;
};

// What an array of MLX is for a kernel, while this lives.
class Refs {
 public:
  explicit Refs(const std::vector<mx::array>& arrays) {
    size_t numbers = 0;
    for (const mx::array& a : arrays) numbers += 2 * a.ndim();
    numbers_.reserve(numbers);
    for (const mx::array& a : arrays) {
      const int64_t* const shape = numbers_.data() + numbers_.size();
      numbers_.insert(numbers_.end(), a.shape().begin(), a.shape().end());
      const int64_t* const strides = numbers_.data() + numbers_.size();
      for (size_t d = 0; d < a.ndim(); ++d)
        numbers_.push_back(a.strides()[d] * static_cast<int64_t>(a.itemsize()));
      refs_.push_back({const_cast<std::byte*>(a.data<std::byte>()), shape, strides});
    }
  }
  const DeferredCall::Array* data() const { return refs_.data(); }

 private:
  std::vector<int64_t> numbers_;
  std::vector<DeferredCall::Array> refs_;
};

class Primitive : public mx::Primitive {
 public:
  /// Takes the call.
  Primitive(mx::Stream stream, DeferredCall* call) : mx::Primitive(stream), call_(call, release) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    for (size_t i = 0; i < outputs.size(); ++i) place(inputs, outputs[i], call_->output(i));
    // MLX keeps inputs and outputs until what was dispatched has run.
    mx::cpu::get_command_encoder(stream()).dispatch(
        [call = call_, in = std::make_shared<Refs>(inputs), out = std::make_shared<Refs>(outputs)] {
          check(call->run(in->data(), out->data()));
        });
  }
  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error(std::string("kernel ") + call_->name() +
                             " was called for a CPU stream and cannot run on the GPU");
  }

  std::vector<mx::array> vjp(const std::vector<mx::array>& primals,
                             const std::vector<mx::array>& cotangents,
                             const std::vector<int>& argnums,
                             const std::vector<mx::array>&) override {
    return chosen(mx::vjp(printed(), primals, cotangents).second, argnums);
  }
  std::vector<mx::array> jvp(const std::vector<mx::array>& primals,
                             const std::vector<mx::array>& tangents,
                             const std::vector<int>& argnums) override {
    std::vector<mx::array> all;
    for (const mx::array& p : primals) all.push_back(mx::zeros_like(p, stream()));
    for (size_t i = 0; i < argnums.size(); ++i) all[static_cast<size_t>(argnums[i])] = tangents[i];
    return mx::jvp(printed(), primals, all).second;
  }
  std::pair<std::vector<mx::array>, std::vector<int>> vmap(const std::vector<mx::array>& inputs,
                                                           const std::vector<int>& axes) override {
    const std::vector<int> first(call_->output_count(), 0);
    return {mx::vmap(printed(), axes, first)(inputs), first};
  }

  const char* name() const override { return call_->name(); }
  bool is_equivalent(const mx::Primitive& other) const override {
    const auto* o = dynamic_cast<const Primitive*>(&other);
    return o != nullptr && call_->equals(*o->call_);
  }
  std::vector<mx::Shape> output_shapes(const std::vector<mx::array>& inputs) override {
    std::vector<mx::Shape> shapes;
    for (const mx::array& result : printed()(inputs)) shapes.push_back(result.shape());
    return shapes;
  }

 private:
  static constexpr size_t kLarge = size_t{4} << 20;  // bytes
  static void release(DeferredCall* call) { call->release(); }
  static void check(const char* reason) {
    if (reason != nullptr) throw std::runtime_error(reason);
  }

  void place(const std::vector<mx::array>& inputs, mx::array& out,
             const DeferredCall::Output& spec) const {
    const size_t bytes = out.nbytes();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool donor = i < 64 && (spec.donors >> i & 1) != 0 && inputs[i].shape() == out.shape();
      if ((donor || spec.continues == static_cast<int32_t>(i)) && inputs[i].is_donatable() &&
          inputs[i].flags().row_contiguous && inputs[i].data_size() == out.size())
        return out.copy_shared_buffer(inputs[i]);
    }
    char* memory = nullptr;
    if (bytes >= kLarge && has_plain_buffers()) memory = LargeMemory::instance().take(bytes);
    if (memory != nullptr) {
      std::memcpy(memory - kSizeBytes, &bytes, kSizeBytes);
      return out.set_data(mx::allocator::Data(
          mx::allocator::Buffer(memory - kSizeBytes), [](mx::allocator::Buffer b) {
            LargeMemory::instance().give(static_cast<char*>(b.ptr()) + kSizeBytes);
          }));
    }
    out.set_data(mx::allocator::malloc(bytes));
  }

  std::function<std::vector<mx::array>(const std::vector<mx::array>&)> printed() const {
    return [call = call_](const std::vector<mx::array>& inputs) {
      std::vector<const void*> in;
      for (const mx::array& a : inputs) in.push_back(&a);
      std::vector<mx::array> results(call->output_count(), mx::array(0));
      std::vector<void*> out;
      for (mx::array& a : results) out.push_back(&a);
      check(call->replay(in.data(), out.data()));
      return results;
    };
  }
  static std::vector<mx::array> chosen(const std::vector<mx::array>& all,
                                       const std::vector<int>& numbers) {
    std::vector<mx::array> list;
    for (const int n : numbers) list.push_back(all[static_cast<size_t>(n)]);
    return list;
  }

  const std::shared_ptr<DeferredCall> call_;
};

/// The call's results for these arrays, lazily. Takes the call.
inline std::vector<mx::array> enqueue(DeferredCall* call, const std::vector<mx::array>& inputs) {
  const auto primitive =
      std::make_shared<Primitive>(mx::default_stream(mx::default_device()), call);
  std::vector<mx::Shape> shapes;
  std::vector<mx::Dtype> types;
  for (size_t i = 0; i < call->output_count(); ++i) {
    const DeferredCall::Output& o = call->output(i);
    shapes.emplace_back(o.shape, o.shape + o.rank);
    types.push_back(mlx_type(o.dtype));
  }
  return mx::array::make_arrays(std::move(shapes), types, primitive, inputs);
}

}  // namespace picokernel::graph
