// Arguments and backends of calls from C++.
#include "driver/cpp_call.h"

#include <algorithm>
#include <cstdlib>

#include "driver/backends.h"

namespace picokernel::driver {

using backend::Backend;

namespace {

std::string live_names() {
  std::string names;
  for (const Backend* b : all_backends())
    if (why_not_from_cpp(*b).empty()) names += (names.empty() ? "" : ", ") + std::string(b->name);
  return names;
}

}  // namespace

std::string why_not_from_cpp(const Backend& b) {
  if (b.open == nullptr) return "prints source here and runs from Python";
  return b.why_not_live();
}

const Backend& known_backend(std::string_view name, const Location& where) {
  if (const Backend* b = find_backend(name)) return *b;
  std::string all;
  for (const Backend* b : all_backends()) all += (all.empty() ? "" : ", ") + std::string(b->name);
  throw LaunchError(Diagnostic{.location = where,
                               .message = "there is no backend `" + std::string(name) + "`",
                               .notes = {"backends: " + all, "hint: live here: " + live_names()}});
}

const Backend& live_backend(std::string_view name, const Location& where, bool of_threads) {
  const char* variable = std::getenv("PICOKERNEL_BACKEND");
  if (name.empty() && variable != nullptr) name = variable;
  if (name.empty()) {
    check_environment();
    for (const Backend* b : all_backends())
      if (!b->threads_only && why_not_from_cpp(*b).empty()) return *b;
  }
  const Backend& b = known_backend(name, where);
  std::string reason = why_not_from_cpp(b);
  if (b.threads_only && !of_threads) reason = "it runs kernels of threads only";
  if (!reason.empty())
    throw LaunchError(Diagnostic{
        .location = where,
        .message = "backend `" + std::string(name) + "` cannot run this kernel: " + reason,
        .notes = {"hint: live here: " + live_names()}});
  return b;
}

Arg to_arg(const picokernel::detail::Argument& a) {
  if (a.scalar)
    return {.kind = Arg::Kind::scalar, .dtype = a.dtype, .weak = a.weak, .bits = a.bits};
  const ArrayView& v = *a.view;
  // Views made of nothing, or of a range without memory; the others were checked when made.
  if (v.data() == nullptr && std::ranges::find(v.shape(), 0) == v.shape().end()) [[unlikely]]
    throw LaunchError(Diagnostic{.message = "an array has elements and a null data pointer",
                                 .notes = {"hint: was a default-constructed ArrayView passed?"}});
  return {.dtype = v.dtype(),
          .weak = a.weak,
          .writeable = v.writeable(),
          .rank = static_cast<uint8_t>(v.rank()),
          .data = v.data(),
          .shape = v.shape().data(),
          .strides = v.strides().data()};
}

std::vector<std::string> parameter_names(std::string_view kernel,
                                         const std::vector<std::string>& given, size_t count,
                                         const Location& where) {
  if (!given.empty() && given.size() != count)
    throw CompileError(Diagnostic{.location = where,
                                  .message = "kernel `" + std::string(kernel) + "` has " +
                                             std::to_string(count) + " parameters and " +
                                             std::to_string(given.size()) + " names for them",
                                  .notes = {"hint: name all parameters or none"}});
  std::vector<std::string> names = given;
  for (size_t i = names.size(); i < count; ++i) names.push_back("p" + std::to_string(i));
  return names;
}

}  // namespace picokernel::driver
