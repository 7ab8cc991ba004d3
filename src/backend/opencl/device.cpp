// Copies arrays to the device, runs a grid, and copies back what it wrote.
#include "backend/opencl/device.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#include <picokernel/diagnostic.h>

#include "backend/c_like/printer.h"
#include "backend/opencl/api.h"
#include "support/check.h"
#include "trace/trace.h"

namespace picokernel::backend::opencl {
namespace {

using runtime::Grid;
using runtime::Reach;

constexpr size_t kAlignment = 128;  // of a buffer: the largest type's (OpenCL 1.2, 6.1.5)

class Device {
 public:
  static Device& get() {
    static Device device;
    return device;
  }

  // A child of fork has the parent's handles, which do not work there.
  std::string problem() const {
    if (problem_.empty() && getpid() != process_)
      return "this process was forked after OpenCL began; start it by spawn instead";
    return problem_;
  }

  std::string text(uint32_t what) const {
    size_t size = 0;
    cl.clGetDeviceInfo(device, what, 0, nullptr, &size);
    std::string value(size, '\0');
    cl.clGetDeviceInfo(device, what, size, value.data(), nullptr);
    return value.c_str();
  }
  template <class T>
  T number(uint32_t what) const {
    T value = 0;
    cl.clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
    return value;
  }

  Api cl;
  Handle device = nullptr, context = nullptr, queue = nullptr;

 private:
  Device() : process_(getpid()) {
    void* const library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      problem_ =
          "libOpenCL.so.1 is not installed: apt-get install ocl-icd-libopencl1, and a driver: "
          "pocl-opencl-icd runs on the CPU";
      return;
    }
    const auto find = [&](const char* name) {
      void* const found = dlsym(library, name);
      if (found == nullptr) problem_ = "libOpenCL.so.1 lacks " + std::string(name);
      return found;
    };
#define PK_OPENCL_FIND(name, result, parameters) \
  cl.name = reinterpret_cast<decltype(cl.name)>(find(#name));
    PK_OPENCL_FUNCTIONS(PK_OPENCL_FIND)
#undef PK_OPENCL_FIND
    if (!problem_.empty()) return;
    uint32_t count = 0;
    std::vector<Handle> platforms(16);
    if (cl.clGetPlatformIDs(16, platforms.data(), &count) != 0) count = 0;
    platforms.resize(std::min<size_t>(count, 16));
    for (const Handle platform : platforms) {
      uint32_t devices = 0;
      if (cl.clGetDeviceIDs(platform, kAnyDevice, 1, &device, &devices) != 0 || devices == 0)
        continue;
      const Properties properties[] = {kContextPlatform, reinterpret_cast<Properties>(platform), 0};
      int32_t status = 0;
      context = cl.clCreateContext(properties, 1, &device, nullptr, nullptr, &status);
      if (status == 0) queue = cl.clCreateCommandQueue(context, device, 0, &status);
      if (status == 0) return;
    }
    problem_ = "OpenCL finds no device here: apt-get install pocl-opencl-icd runs it on the CPU";
  }

  std::string problem_;
  const pid_t process_;
};

void require(int32_t status, const char* what) {
  if (status == 0) return;
  throw LaunchError(Diagnostic{.message = "opencl: " + std::string(what) + " failed with status " +
                                          std::to_string(status)});
}

// Arguments whose memory overlaps share a buffer, so that writes through one are seen by others.
struct Region {
  uint64_t begin = 0, end = 0;
  bool written = false;
  Handle buffer = nullptr;
  uint64_t offset() const { return begin % kAlignment; }  // as the host aligned it
};

class OpenClExecutable : public runtime::Executable {
 public:
  OpenClExecutable(const Artifact& artifact, const ir::Module& m)
      : dynamic_(c_like::uses_dynamic(m)) {
    std::set<ir::ValueId> written;
    ir::walk(m, [&](ir::OpId id) {
      const ir::Op& op = m.ops[id];
      if (op.opcode == ir::Opcode::store) written.insert(op.operands[1]);
      if (ir::info(op.opcode).atomic()) written.insert(op.operands[0]);
      if (op.opcode == ir::Opcode::shared)
        shared_ += op.attribute * size_of(m.type(op.results[0]).dtype);
    });
    for (const ir::ValueId v : m.params())
      params_.push_back(
          {m.type(v).dtype, m.type(v).kind == ir::TypeKind::ptr, written.contains(v)});
    build(artifact);
  }
  ~OpenClExecutable() override {
    if (!device_.problem().empty()) return;
    if (kernel_ != nullptr) device_.cl.clReleaseKernel(kernel_);
    if (program_ != nullptr) device_.cl.clReleaseProgram(program_);
  }

  void launch(const uint64_t*) override { PK_UNREACHABLE("opencl runs grids"); }

  void launch(std::span<const uint64_t> params, std::span<const Reach> reach, const Grid& grid,
              uint64_t) override {
    if (const std::string problem = device_.problem(); !problem.empty())
      throw LaunchError(
          Diagnostic{.message = "backend 'opencl' cannot run here", .notes = {problem}});
    check_limits(grid);
    const Api& cl = device_.cl;
    std::vector<Region> regions = regions_of(params, reach);
    // Handles of kernels hold their arguments.
    const std::lock_guard lock(mutex_);
    const Buffers buffers(device_, regions);
    uint32_t at = 0;
    for (size_t i = 0; i < params_.size(); ++i) {
      if (!params_[i].pointer) {
        require(cl.clSetKernelArg(kernel_, at++, size_of(params_[i].dtype), &params[i]),
                "clSetKernelArg");
        continue;
      }
      const uint64_t begin = params[i] + static_cast<uint64_t>(reach[i].low) * width(i);
      const Region& r = *std::ranges::find_if(
          regions, [&](const Region& one) { return one.begin <= begin && begin <= one.end; });
      const auto place = static_cast<int64_t>(r.offset() + params[i] - r.begin);
      require(cl.clSetKernelArg(kernel_, at++, sizeof r.buffer, &r.buffer), "clSetKernelArg");
      require(cl.clSetKernelArg(kernel_, at++, sizeof place, &place), "clSetKernelArg");
    }
    if (dynamic_)
      require(cl.clSetKernelArg(kernel_, at++,
                                static_cast<size_t>((grid.shared_bytes + 7) / 8 * 8 + 8), nullptr),
              "clSetKernelArg");
    size_t all[3], local[3];
    for (size_t d = 0; d < 3; ++d) {
      local[d] = static_cast<size_t>(grid.threads[d]);
      all[d] = local[d] * static_cast<size_t>(grid.blocks[d]);
    }
    {
      const trace::Span span(trace::Category::device, name_);
      require(cl.clEnqueueNDRangeKernel(device_.queue, kernel_, 3, nullptr, all, local, 0, nullptr,
                                        nullptr),
              "clEnqueueNDRangeKernel");
      require(cl.clFinish(device_.queue), "clFinish");
    }
    buffers.read_back();
  }

 private:
  struct Param {
    DType dtype;
    bool pointer, written;
  };

  class Buffers {
   public:
    Buffers(const Device& device, std::vector<Region>& regions)
        : device_(device), regions_(regions) {
      const Api& cl = device.cl;
      for (Region& r : regions) {
        int32_t status = 0;
        const size_t bytes = r.end - r.begin;
        r.buffer = cl.clCreateBuffer(device.context, kReadWrite, r.offset() + bytes + kAlignment,
                                     nullptr, &status);
        if (status == 0 && bytes != 0) {
          const trace::Span span(trace::Category::h2d, names().write, bytes);
          status =
              cl.clEnqueueWriteBuffer(device.queue, r.buffer, 1, r.offset(), bytes,
                                      reinterpret_cast<const void*>(r.begin), 0, nullptr, nullptr);
        }
        if (status != 0) release();
        require(status, "copying an array to the device");
      }
    }
    ~Buffers() { release(); }
    Buffers(const Buffers&) = delete;
    Buffers& operator=(const Buffers&) = delete;

    void read_back() const {
      for (const Region& r : regions_) {
        const size_t bytes = r.end - r.begin;
        if (!r.written || bytes == 0) continue;
        const trace::Span span(trace::Category::d2h, names().read, bytes);
        require(
            device_.cl.clEnqueueReadBuffer(device_.queue, r.buffer, 1, r.offset(), bytes,
                                           reinterpret_cast<void*>(r.begin), 0, nullptr, nullptr),
            "copying an array back");
      }
    }

   private:
    struct Names {
      trace::NameId write = trace::intern("clEnqueueWriteBuffer"),
                    read = trace::intern("clEnqueueReadBuffer");
    };
    static const Names& names() {
      static const Names all;
      return all;
    }
    void release() {
      for (Region& r : regions_)
        if (r.buffer != nullptr) device_.cl.clReleaseMemObject(std::exchange(r.buffer, nullptr));
    }

    const Device& device_;
    std::vector<Region>& regions_;
  };

  uint64_t width(size_t i) const { return size_of(params_[i].dtype); }

  void build(const Artifact& artifact) {
    const Api& cl = device_.cl;
    name_ = trace::intern(artifact.entry);
    int32_t status = 0;
    const char* text = artifact.code.c_str();
    const size_t size = artifact.code.size();
    program_ = cl.clCreateProgramWithSource(device_.context, 1, &text, &size, &status);
    require(status, "clCreateProgramWithSource");
    status = cl.clBuildProgram(program_, 1, &device_.device, "-cl-std=CL1.2", nullptr, nullptr);
    if (status != 0) {
      size_t length = 0;
      cl.clGetProgramBuildInfo(program_, device_.device, kBuildLog, 0, nullptr, &length);
      std::string log(length, '\0');
      cl.clGetProgramBuildInfo(program_, device_.device, kBuildLog, length, log.data(), nullptr);
      cl.clReleaseProgram(program_);
      throw LaunchError(Diagnostic{
          .message = "the OpenCL of " + device_.text(kDeviceName) + " does not take this kernel",
          .notes = {log.c_str()}});
    }
    kernel_ = cl.clCreateKernel(program_, artifact.entry.c_str(), &status);
    require(status, "clCreateKernel");
  }

  void check_limits(const Grid& grid) const {
    size_t most = 0;
    device_.cl.clGetKernelWorkGroupInfo(kernel_, device_.device, kKernelMaxGroup, sizeof most,
                                        &most, nullptr);
    const auto threads = static_cast<size_t>(grid.threads[0] * grid.threads[1] * grid.threads[2]);
    if (threads > most)
      throw LaunchError(Diagnostic{
          .message = "blocks of " + std::to_string(threads) + " threads are too large for " +
                     device_.text(kDeviceName),
          .notes = {"this kernel runs there in blocks of up to " + std::to_string(most)}});
    const uint64_t shared = shared_ + static_cast<uint64_t>(grid.shared_bytes);
    if (const auto memory = device_.number<uint64_t>(kDeviceLocalMemory); shared > memory)
      throw LaunchError(Diagnostic{
          .message = std::to_string(shared) + " bytes of shared memory are too many for " +
                     device_.text(kDeviceName),
          .notes = {"a block has up to " + std::to_string(memory) + " there"}});
  }

  std::vector<Region> regions_of(std::span<const uint64_t> params,
                                 std::span<const Reach> reach) const {
    std::vector<Region> all;
    for (size_t i = 0; i < params_.size(); ++i)
      if (params_[i].pointer)
        all.push_back({.begin = params[i] + static_cast<uint64_t>(reach[i].low) * width(i),
                       .end = params[i] + static_cast<uint64_t>(reach[i].high) * width(i),
                       .written = params_[i].written});
    std::ranges::sort(all, {}, &Region::begin);
    std::vector<Region> merged;
    for (const Region& r : all) {
      if (!merged.empty() && r.begin <= merged.back().end) {
        merged.back().end = std::max(merged.back().end, r.end);
        merged.back().written |= r.written;
      } else {
        merged.push_back(r);
      }
    }
    return merged;
  }

  Device& device_ = Device::get();
  const bool dynamic_;
  uint64_t shared_ = 0;
  std::vector<Param> params_;
  trace::NameId name_{};
  std::mutex mutex_;
  Handle program_ = nullptr, kernel_ = nullptr;
};

}  // namespace

std::string why_not_live() { return Device::get().problem(); }

std::unique_ptr<runtime::Executable> open(const Artifact& artifact, const ir::Module& m) {
  return std::make_unique<OpenClExecutable>(artifact, m);
}

}  // namespace picokernel::backend::opencl
