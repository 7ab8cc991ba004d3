// Builds what the backends c, obj and cuda make with the system's compilers, and loads it. CUDA C++
// is given a CPU's meaning, see cuda_on_cpu.h.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "backend/cpu_testing.h"
#include "driver/backends.h"
#include "driver/compile.h"

namespace picokernel::c_test {

// A backend, and a compiler with its flags, beside those that every test uses.
struct Build {
  std::string compiler, flags;
  const backend::Backend* backend = driver::find_backend("c");
  std::string language = "-std=c11";
  friend std::ostream& operator<<(std::ostream& out, const Build& b) {
    return out << b.backend->name << " " << b.compiler << " " << b.flags;
  }
};

inline bool is_cuda(const backend::Backend& b) { return b.name == "cuda"; }

inline bool is_present(const std::string& compiler) {
  return std::system(("command -v " + compiler + " > /dev/null").c_str()) == 0;
}

// A function that takes parameter slots, in front of one that `picoc emit` makes.
inline std::string adapter(const ir::Module& lowered, bool cuda) {
  const std::string entry = "pk_" + lowered.name;
  std::string before, call;
  size_t slot = 0;
  const auto add = [&](std::string text) { call += (call.empty() ? "" : ", ") + text; };
  for (const ir::ValueId v : lowered.params()) {
    const std::string at = "p[" + std::to_string(slot) + "]";
    const std::string scalar = "s" + std::to_string(slot++);
    const ir::Type& t = lowered.type(v);
    if (t.kind == ir::TypeKind::ptr) {
      add(cuda ? "Pointer{" + at + "}" : "(void *)(uintptr_t)" + at);
    } else if (t.dtype == DType::f32 || t.dtype == DType::f64) {
      before += (t.dtype == DType::f32 ? "  float " : "  double ") + scalar + ";\n  memcpy(&" +
                scalar + ", &" + at + ", sizeof " + scalar + ");\n";
      add(scalar);
    } else {
      std::string name = is_half(t.dtype) ? "uint16_t" : std::string(numpy_name(t.dtype)) + "_t";
      if (is_bool(t.dtype)) name = "bool";
      add("(" + name + ")" + at);
    }
  }
  const std::string head = "void call_" + entry + "(const uint64_t *p)";
  call = entry + "(" + call + ");";
  if (!cuda) return head + ";\n" + head + " {\n" + before + "  " + call + "\n}\n";
  size_t rank = 0;  // without a loop, every thread would do the same
  ir::walk(lowered, [&](ir::OpId id) {
    if (lowered.ops[id].opcode == ir::Opcode::parallel) rank = lowered.ops[id].operands.size();
  });
  const char* const grids[] = {"{1, 1, 1}, {1, 1, 1}", "{3, 1, 1}, {4, 1, 1}"};
  const std::string grid = rank < 2 ? grids[rank] : "{2, 3, 1}, {4, 2, 1}";
  return "extern \"C\" " + head + " {\n" + before + "  run_grid(" + grid + ", [&] { " + call +
         " });\n}\n";
}

// Kernels of one file.
class Kernels {
 public:
  void add(ir::Module m) {
    m.name = "k" + std::to_string(modules_.size());
    ir::verify_or_throw(m, "the test");
    modules_.push_back(std::move(m));
  }
  const std::vector<ir::Module>& modules() const { return modules_; }

  struct Files {
    std::string c, object;
  };
  /// As `picoc emit` makes them; the C functions that take slots are in `c`. Made once.
  const Files& files(const backend::Backend& backend) const {
    const auto [it, fresh] = files_.try_emplace(&backend);
    Files& files = it->second;
    if (!fresh) return files;
    std::vector<ir::Module> lowered;
    for (const ir::Module& m : modules_) lowered.push_back(driver::lower_for(backend, m));
    files.c = backend.file(lowered, {});
    if (backend.binary) {
      files.object = std::move(files.c);
      files.c = "#include <string.h>\n" + backend.header(lowered, {});
      files.c.replace(files.c.find("#pragma once"), 12, "");  // a warning outside of headers
    }
    if (is_cuda(backend)) files.c = "#include <cstdint>\n" + files.c;
    for (const ir::Module& m : lowered) files.c += adapter(m, is_cuda(backend));
    return files;
  }

 private:
  std::vector<ir::Module> modules_;
  mutable std::map<const backend::Backend*, Files> files_;
};

// Kernels as a shared object, in a folder that goes with it.
class Library {
 public:
  Library(const Kernels& kernels, const Build& build) {
    std::string pattern = (std::filesystem::temp_directory_path() / "pk_c_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    std::string inputs = (folder_ / "k.c").string();
    const std::string so = (folder_ / "k.so").string();
    const Kernels::Files& files = kernels.files(*build.backend);
    std::ofstream(inputs) << files.c;
    if (!files.object.empty()) {
      const std::string object = (folder_ / "k.o").string();
      std::ofstream(object, std::ios::binary) << files.object;
      inputs += " " + object;
    }
    const std::string command = build.compiler + " " + build.language +
                                " -pedantic -Wall -Wextra -Werror " + build.flags +
                                " -shared -fPIC -Wl,-z,defs -o " + so + " " + inputs + " -lm > " +
                                (folder_ / "log").string() + " 2>&1";
    if (std::system(command.c_str()) == 0) handle_ = dlopen(so.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    std::ifstream log(folder_ / "log");
    const char* loading = dlerror();
    ADD_FAILURE() << command << "\n"
                  << std::string(std::istreambuf_iterator<char>(log), {}).substr(0, 4000)
                  << (loading != nullptr ? loading : "");
  }
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
    std::filesystem::remove_all(folder_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  bool loaded() const { return handle_ != nullptr; }
  void* find(const std::string& symbol) const { return dlsym(handle_, symbol.c_str()); }

 private:
  std::filesystem::path folder_;
  void* handle_ = nullptr;
};

class Compiled : public runtime::Executable {
 public:
  Compiled(const Library& library, const std::string& kernel)
      : call_(reinterpret_cast<Call>(library.find("call_pk_" + kernel))) {}
  void launch(const uint64_t* params) override { call_(params); }

 private:
  using Call = void (*)(const uint64_t*);
  Call call_;
};

inline std::vector<Build> builds() {
  std::vector<Build> list;
  for (const char* compiler : {"gcc", "clang"})
    if (is_present(compiler))
      for (const char* flags : {"-O0", "-O3 -march=native"}) list.push_back({compiler, flags});
  // gcc brings the sanitizer's runtime as a shared object.
  if (is_present("gcc"))
    list.push_back({"gcc", "-O1 -fsanitize=undefined -fno-sanitize-recover=all"});
  if (const backend::Backend* obj = driver::find_backend("obj"); obj != nullptr && !list.empty())
    list.push_back({list[0].compiler, "-O1", obj});
  if (is_present("g++"))
    list.push_back({"g++", "-O2 -ffp-contract=off -march=native", driver::find_backend("cuda"),
                    "-x c++ -std=c++20 -Wno-long-long -include " PK_SOURCE_DIR
                    "/tests/backend/cuda_on_cpu.h"});
  return list;
}
inline std::string build_name(const ::testing::TestParamInfo<Build>& p) {
  std::string name = std::string(p.param.backend->name) + "_";
  for (const char c : p.param.compiler + p.param.flags)
    if (std::isalnum(static_cast<unsigned char>(c))) name += c;
  return name;
}

}  // namespace picokernel::c_test
