// What stands round functions of C11.
#include "backend/c/c.h"

#include "backend/c_like/c11.h"
#include "backend/c_like/legalize.h"
#include "backend/c_like/printer.h"

namespace picokernel::backend {
namespace c {
namespace {

using ir::Opcode;

constexpr std::string_view kHead =
    R"(// C11, printed by picokernel; needs the C library alone (-lm).
// The results are the same bits with every compiler and on every machine as long as it computes
// what is written: -ffp-contract=off, and never -ffast-math.
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__FAST_MATH__) || (FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16)
#error "compile without -ffast-math, and on 32-bit x86 with -msse2 -mfpmath=sse"
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#else
#pragma STDC FP_CONTRACT OFF
#endif

)";

// Memory is freed where the region ends that allocates it.
std::vector<Diagnostic> check(const ir::Module& m) {
  std::vector<Diagnostic> refused;
  ir::walk(m, [&](ir::OpId id) {
    const ir::Op& op = m.ops[id];
    if (op.opcode != Opcode::yield) return;
    for (const ir::ValueId v : op.operands)
      if (const ir::Op* def = m.def(v); def != nullptr && def->opcode == Opcode::alloc)
        refused.push_back({.location = m.location(op),
                           .message = "c cannot hand memory out of the loop that allocates it",
                           .notes = {"allocate it before the loop"}});
  });
  return refused;
}

std::string file(std::span<const ir::Module> kernels, std::string_view triple) {
  if (!triple.empty()) throw Error("c prints one text for all machines: leave --target out");
  c_like::check_names(kernels);
  std::string text(kHead);
  for (const ir::Module& m : kernels) {
    if (&m != kernels.data()) text += "\n";
    text += c_like::notes(m) + c_like::Printer(m, c_like::kC11).function();
  }
  return text;
}

Artifact emit(const ir::Module& m) {
  return {.code = file({&m, 1}, {}), .entry = c_like::function_name(m)};
}

std::string header(std::span<const ir::Module> kernels, std::string_view) {
  return c_like::c_header(kernels, "");
}

std::string why_not_live() { return "it prints C to compile elsewhere; run kernels on `cpu`"; }

}  // namespace
}  // namespace c

const Backend c_backend{
    .name = "c",
    .summary = "C11 source, for programs without picokernel",
    .level = ir::Level::kernel,
    .legalize = c_like::kLegalize,
    .check = c::check,
    .emit = c::emit,
    .open = nullptr,
    .why_not_live = c::why_not_live,
    .prints_only = true,
    .takes_arrays = true,
    .file = c::file,
    .header = c::header,
};

}  // namespace picokernel::backend
