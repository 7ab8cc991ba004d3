// Compiled on the user's machine against the MLX that is installed there, at its first use. It
// knows nothing of Python.
#include "mlx_bridge.h"

#include <cstring>

#include <picokernel/mlx_primitive.h>

namespace picokernel::graph {
namespace {

const mx::array& at(const void* p) { return *static_cast<const mx::array*>(p); }
mx::array& at(void* p) { return *static_cast<mx::array*>(p); }

// MLX makes what arrays point to by make_shared, so the two words of a shared pointer lie at one
// distance. They are compared before either is followed.
bool is_array(const void* p) {
  static_assert(sizeof(mx::array) == 2 * sizeof(void*));
  const auto distance = [](const void* array) {
    uintptr_t words[2];
    std::memcpy(words, array, sizeof words);
    return words[0] - words[1];
  };
  const mx::array ours(0);
  return distance(&ours) == distance(p) && at(p).ndim() == 1 && at(p).shape(0) == 3 &&
         at(p).dtype() == mx::int16;
}

bool describe(const void* array, ArrayDescription* d) {
  try {
    *d = {picokernel_type(at(array).dtype()), at(array).ndim(), at(array).shape().data()};
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

const char* enqueue_call(DeferredCall* call, const void* const* inputs, size_t count,
                         void* const* outputs) {
  thread_local std::string reason;
  try {
    std::vector<mx::array> in;
    for (size_t i = 0; i < count; ++i) in.push_back(at(inputs[i]));
    const std::vector<mx::array> out = enqueue(call, in);
    for (size_t i = 0; i < out.size(); ++i) at(outputs[i]).overwrite_descriptor(out[i]);
    return nullptr;
  } catch (const std::exception& e) {
    reason = e.what();
    return reason.c_str();
  }
}

bool adopt(void* array, void* data, DType dtype, size_t rank, const int64_t* shape,
           void (*release)(void*), void* owner) {
  if (!has_plain_buffers()) return false;
  mx::array made(mx::Shape(shape, shape + rank), mlx_type(dtype), nullptr, {});
  made.set_data(mx::allocator::Data(mx::allocator::Buffer(static_cast<char*>(data) - kSizeBytes),
                                    [=](mx::allocator::Buffer) { release(owner); }));
  made.set_status(mx::array::Status::available);
  at(array).overwrite_descriptor(made);
  return true;
}

constexpr Bridge kBridge = {
    .size = sizeof(Bridge),
    .mlx_version = mx::version,
    .is_array = is_array,
    .on_cpu = on_cpu,
    .describe = describe,
    .enqueue = enqueue_call,
    .rebind = [](void* array, const void* value) { at(array).overwrite_descriptor(at(value)); },
    .trim = [] { return LargeMemory::instance().trim(); },
    .adopt = adopt,
};

}  // namespace
}  // namespace picokernel::graph

const picokernel::graph::Bridge* picokernel_mlx_bridge() { return &picokernel::graph::kBridge; }
