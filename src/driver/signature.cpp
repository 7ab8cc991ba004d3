// Checks of a call's arguments.
#include "driver/signature.h"

#include <algorithm>

#include "support/check.h"

namespace picokernel::driver {
namespace {

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::span<const int64_t> shape_of(const Arg& a) { return {a.shape, a.rank}; }

// Two points of the array are one element: it cannot be written sensibly.
// From the smallest stride up, each dimension has to step over what those before it span. Slices
// and transposes do.
bool overlaps_itself(const Arg& a) {
  std::vector<std::pair<int64_t, int64_t>> dimensions;  // stride, span
  for (size_t d = 0; d < a.rank; ++d) {
    if (a.shape[d] == 0) return false;
    const int64_t stride = std::abs(a.strides[d]);
    if (a.shape[d] > 1) dimensions.emplace_back(stride, stride * (a.shape[d] - 1));
  }
  std::ranges::sort(dimensions);
  auto spanned = static_cast<int64_t>(size_of(a.dtype));
  for (const auto& [stride, span] : dimensions) {
    if (stride < spanned) return true;
    spanned += span;
  }
  return false;
}

Diagnostic at(const Location& where, std::string message, std::vector<std::string> notes) {
  return {.severity = Severity::error,
          .location = where,
          .message = std::move(message),
          .notes = std::move(notes)};
}

}  // namespace

Signature signature_of(std::span<const Arg> args, uint64_t key) {
  Signature s{.parts = {}, .key = key};
  for (const Arg& a : args) {
    Signature::Part p{.kind = a.kind, .dtype = a.dtype, .weak = a.weak, .rank = a.rank, .ones = 0};
    for (size_t d = 0; d < a.rank; ++d) p.ones |= uint64_t{a.shape[d] == 1} << d;
    s.parts.push_back(p);
  }
  return s;
}

std::vector<frontend::ArgSpec> arg_specs(std::span<const Arg> args,
                                         std::span<const std::string> names) {
  std::vector<frontend::ArgSpec> specs;
  for (size_t i = 0; i < args.size(); ++i) {
    const Arg& a = args[i];
    specs.push_back({.kind = a.kind == Arg::Kind::array ? frontend::ArgSpec::Kind::array
                                                        : frontend::ArgSpec::Kind::scalar,
                     .dtype = a.dtype,
                     .weak = a.weak,
                     .name = a.name != nullptr  ? a.name
                             : i < names.size() ? names[i]
                                                : "arg" + std::to_string(i),
                     .shape = {a.shape, a.shape + a.rank}});
  }
  return specs;
}

std::optional<std::vector<int64_t>> bind_symbols(const ir::Module& graph,
                                                 std::span<const Arg> args) {
  std::vector<int64_t> symbols(graph.sizes.symbol_count(), -1);
  const auto each_dim = [&](auto&& f) {
    for (size_t i = 0; i < args.size(); ++i) {
      const std::vector<SizeId>& shape = graph.type(graph.params()[i]).shape;
      for (size_t d = 0; d < args[i].rank; ++d)  // without the last one of pairs
        if (!f(shape[d], args[i].shape[d])) return false;
    }
    return true;
  };
  each_dim([&](SizeId s, int64_t v) {
    const SizeNode& n = graph.sizes[s];
    if (n.kind == SizeKind::symbol && symbols[static_cast<size_t>(n.constant)] < 0)
      symbols[static_cast<size_t>(n.constant)] = v;
    return true;
  });
  if (!each_dim([&](SizeId s, int64_t v) { return graph.sizes.eval(s, symbols) == v; }))
    return std::nullopt;
  for (const ir::Guard& g : graph.guards) {
    const int64_t left = graph.sizes.eval(g.left, symbols),
                  right = graph.sizes.eval(g.right, symbols);
    const bool holds = g.relation == ir::Relation::eq   ? left == right
                       : g.relation == ir::Relation::ne ? left != right
                                                        : left >= right;
    if (!holds) return std::nullopt;
  }
  return symbols;
}

std::string describe(const Arg& a) {
  if (a.weak && is_complex(a.dtype)) return "a Python complex";
  if (a.kind == Arg::Kind::scalar)
    return a.weak ? (is_float(a.dtype) ? "a Python float" : "a Python int")
                  : "a " + std::string(numpy_name(a.dtype)) + " scalar";
  return std::string(numpy_name(a.dtype)) + " " + shape_text(shape_of(a));
}

std::string label(std::span<const Arg> args, size_t i, std::span<const std::string> names) {
  std::string text = "argument " + std::to_string(i + 1);
  if (args[i].name != nullptr) return text + " '" + args[i].name + "'";
  if (i < names.size()) return text + " '" + names[i] + "'";
  return text;
}

void check_outputs(const std::string& kernel, std::span<const OutputSpec> specs,
                   std::span<const Arg> outs, const Location& where) {
  std::vector<Diagnostic> wrong;
  for (size_t i = 0; i < specs.size(); ++i) {
    const Arg& out = outs[i];
    const OutputSpec& want = specs[i];
    if (out.data == nullptr && out.shape == nullptr) continue;  // the caller will allocate it
    const std::string name =
        "kernel " + kernel + ": out" + (specs.size() > 1 ? "[" + std::to_string(i) + "]" : "");
    const std::string needs = std::string(numpy_name(want.dtype)) + " " + shape_text(want.shape);
    if (!std::ranges::equal(shape_of(out), want.shape))
      wrong.push_back(at(where,
                         name + " has shape " + shape_text(shape_of(out)) + ", the result has " +
                             shape_text(want.shape),
                         {"out is never broadcast: pass an array of shape " +
                          shape_text(want.shape) + ", or no out"}));
    else if (!same_kind(want.dtype, out.dtype))
      wrong.push_back(
          at(where, name + " is " + std::string(numpy_name(out.dtype)) + ", the result is " + needs,
             {"NumPy's 'same_kind' casting allows no " + std::string(numpy_name(want.dtype)) +
              " to " + std::string(numpy_name(out.dtype)) +
              ": use .astype in the kernel, or an out of " + std::string(numpy_name(want.dtype))}));
    if (!out.writeable)
      wrong.push_back(at(where, name + " is read-only", {"pass a writeable array, or no out"}));
    if (overlaps_itself(out))
      wrong.push_back(at(where, name + " has overlapping elements",
                         {"arrays that are broadcast or made of overlapping windows cannot be "
                          "written: pass a copy"}));
  }
  if (!wrong.empty()) throw LaunchError(std::move(wrong));
}

void check_written(const std::string& kernel, std::span<const std::string> names,
                   const std::vector<bool>& written, std::span<const Arg> args,
                   const Location& where) {
  std::vector<Diagnostic> wrong;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!written[i]) continue;
    const std::string name = "kernel " + kernel + " writes " + label(args, i, names);
    if (!args[i].writeable)
      wrong.push_back(
          at(where, name + ", which is read-only",
             {"pass a writeable array; captured and read-only arrays, and those of jax and MLX, "
              "can only be read"}));
    if (overlaps_itself(args[i]))
      wrong.push_back(at(where, name + ", which has overlapping elements",
                         {"arrays that are broadcast or made of overlapping windows cannot be "
                          "written: pass a copy"}));
  }
  if (!wrong.empty()) throw LaunchError(std::move(wrong));
}

}  // namespace picokernel::driver
