// What a backend is: capabilities, the passes that make IR printable, emit, and open where this
// host can run it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "passes/pass.h"
#include "runtime/executable.h"

namespace picokernel::backend {

// One operation of a printed source, in order: what a trace says of it.
struct PrintedOp {
  std::string_view category;  // the trace's: "h2d", "op_lazy", "op", "sync", "d2h", "alloc"
  uint32_t line = 0;          // of the printed source, from 1
  ir::OpId op = {};           // in the emitted module; invalid for sync and the like
};

// Text or object code, and what is needed to open it without the IR.
struct Artifact {
  std::string code;                        // source text, or an object file
  std::string entry;                       // the function's name in it
  std::vector<PrintedOp> operations = {};  // source-printing backends
};

// How kernels of threads run: not at all; each thread of a grid interpreted; as loops over the
// grid, which pass lower_threads makes; or as they are, by a device that has grids.
enum class Threads : uint8_t { none, interpreted, loops, grid };

struct Backend {
  std::string_view name;
  std::string_view summary;
  ir::Level level;                         // what it emits: graphs (source printers) or kernels
  std::span<const passes::Pass> legalize;  // run in order after the common passes
  // Sentences on ops or types that it cannot do, each at the user's line; empty: emit will succeed.
  std::vector<Diagnostic> (*check)(const ir::Module&);
  Artifact (*emit)(const ir::Module&);  // asserts, never reports a user's error
  // Null where the core cannot run it: source backends are opened by the Python binding.
  std::unique_ptr<runtime::Executable> (*open)(const Artifact&, const ir::Module&);
  // Empty when this host can run it, else why not and what to install. The binding adds its own for
  // source backends.
  std::string (*why_not_live)();
  // What its code depends on beside the kernel, such as the processor: part of the cache key. Null:
  // nothing.
  std::string (*target)() = nullptr;
  bool prints_only = false;  // shows what another backend makes; never live
  // The same for arrays of the backend's own library, which stay where they are. Null: there are
  // none.
  const Backend* own_arrays = nullptr;
  // Its functions are called by people, with contiguous arrays and sizes: graphs are lowered by
  // lower_arrays.
  bool takes_arrays = false;
  // Kernels as one file of functions for other programs, and what declares those. `triple` names
  // the machine, such as aarch64-linux-gnu; empty: this one. They throw Error. Null: no such files.
  std::string (*file)(std::span<const ir::Module> kernels, std::string_view triple) = nullptr;
  std::string (*header)(std::span<const ir::Module> kernels, std::string_view triple) = nullptr;
  // An artifact's code and entry are all that `open` needs, in any process of this build of the
  // core on this target: they may be kept on disk. `open` gets an empty module then.
  bool storable = false;
  bool binary = false;           // what it emits is no text
  bool returns_results = false;  // results stay results; else they become written parameters
  Threads threads = Threads::none;
  bool threads_only = false;  // it runs no kernels of arrays
};

}  // namespace picokernel::backend
