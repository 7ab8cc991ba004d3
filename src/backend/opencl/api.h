// What is used of OpenCL's C API (Khronos, The OpenCL Specification 1.2), looked up at run time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace picokernel::backend::opencl {

using Handle = struct Opaque*;  // a platform, device, context, queue, program, kernel, buffer
using Properties = intptr_t;

inline constexpr int32_t kDeviceNotFound = -1, kBuildFailure = -11;
inline constexpr uint64_t kAnyDevice = 0xFFFFFFFF, kReadWrite = 1;
inline constexpr Properties kContextPlatform = 0x1084;
inline constexpr uint32_t kDeviceName = 0x102B, kDeviceLocalMemory = 0x1023,
                          kDeviceMaxGroup = 0x1004, kDeviceExtensions = 0x1030, kBuildLog = 0x1183,
                          kKernelMaxGroup = 0x11B0;

// X(name, result, parameters)
#define PK_OPENCL_FUNCTIONS(X)                                                                     \
  X(clGetPlatformIDs, int32_t, (uint32_t, Handle*, uint32_t*))                                     \
  X(clGetDeviceIDs, int32_t, (Handle, uint64_t, uint32_t, Handle*, uint32_t*))                     \
  X(clGetDeviceInfo, int32_t, (Handle, uint32_t, size_t, void*, size_t*))                          \
  X(clCreateContext, Handle, (const Properties*, uint32_t, const Handle*, void*, void*, int32_t*)) \
  X(clCreateCommandQueue, Handle, (Handle, Handle, uint64_t, int32_t*))                            \
  X(clCreateProgramWithSource, Handle, (Handle, uint32_t, const char**, const size_t*, int32_t*))  \
  X(clBuildProgram, int32_t, (Handle, uint32_t, const Handle*, const char*, void*, void*))         \
  X(clGetProgramBuildInfo, int32_t, (Handle, Handle, uint32_t, size_t, void*, size_t*))            \
  X(clReleaseProgram, int32_t, (Handle))                                                           \
  X(clCreateKernel, Handle, (Handle, const char*, int32_t*))                                       \
  X(clGetKernelWorkGroupInfo, int32_t, (Handle, Handle, uint32_t, size_t, void*, size_t*))         \
  X(clReleaseKernel, int32_t, (Handle))                                                            \
  X(clSetKernelArg, int32_t, (Handle, uint32_t, size_t, const void*))                              \
  X(clCreateBuffer, Handle, (Handle, uint64_t, size_t, void*, int32_t*))                           \
  X(clReleaseMemObject, int32_t, (Handle))                                                         \
  X(clEnqueueWriteBuffer, int32_t,                                                                 \
    (Handle, Handle, uint32_t, size_t, size_t, const void*, uint32_t, void*, void*))               \
  X(clEnqueueReadBuffer, int32_t,                                                                  \
    (Handle, Handle, uint32_t, size_t, size_t, void*, uint32_t, void*, void*))                     \
  X(clEnqueueNDRangeKernel, int32_t,                                                               \
    (Handle, Handle, uint32_t, const size_t*, const size_t*, const size_t*, uint32_t, void*,       \
     void*))                                                                                       \
  X(clFinish, int32_t, (Handle))

struct Api {
#define PK_OPENCL_POINTER(name, result, parameters) result(*name) parameters = nullptr;
  PK_OPENCL_FUNCTIONS(PK_OPENCL_POINTER)
#undef PK_OPENCL_POINTER
};

}  // namespace picokernel::backend::opencl
