// What array.h leaves out of DLPack: versioned tensors, and the table of C functions that a type
// may offer so that its tensors are exchanged without a Python call. Layouts are those of dlpack.h
// 1.3.
#pragma once

#include <cstdint>

#include <picokernel/array.h>

namespace picokernel::python {

struct DLPackVersion {
  uint32_t major = 1, minor = 3;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx = nullptr;
  void (*deleter)(DLManagedTensorVersioned* self) = nullptr;
  uint64_t flags = 0;
  DLTensor dl_tensor;
};
inline constexpr uint64_t kDLReadOnly = 1, kDLIsCopied = 2;  // flags
inline constexpr uint32_t kDLMajor = 1;  // other majors may lay out the structs differently

// `type.__dlpack_c_exchange_api__`, a capsule named "dlpack_exchange_api". The functions return 0,
// or -1 with a Python error set; the interpreter's lock is held.
struct DLPackExchangeApi {
  DLPackVersion version;
  const DLPackExchangeApi* previous;  // of an older major version, or null
  void* allocate;
  int (*from_object)(void* object, DLManagedTensorVersioned** tensor);
  int (*to_object)(DLManagedTensorVersioned* tensor, void** object);  // takes the tensor
  void* borrow_from_object;
  void* current_stream;
};

enum : int32_t { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLROCMHost = 11 };
enum : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6
};

}  // namespace picokernel::python
