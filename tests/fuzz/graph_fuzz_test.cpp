// Random graphs: text round trip, every pass keeps the meaning, every backend that the core opens
// equals the interpreter bit for bit. PICOKERNEL_FUZZ_SEED and PICOKERNEL_FUZZ_COUNT choose what is
// run.
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "driver/backends.h"
#include "driver/kernel.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "passes/pass.h"
#include "random_graph.h"

namespace picokernel::fuzz {
namespace {

using backend::RefArray;

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Outcome {
  std::vector<RefArray> results, arguments;
};

std::string difference(const Outcome& a, const Outcome& b) {
  for (size_t i = 0; i < a.results.size(); ++i)
    if (!backend::equal(a.results[i], b.results[i]))
      return "result " + std::to_string(i) + " differs";
  for (size_t i = 0; i < a.arguments.size(); ++i)
    if (!backend::equal(a.arguments[i], b.arguments[i]))
      return "argument " + std::to_string(i) + " differs";
  return {};
}

Outcome interpret(const ir::Module& graph, std::vector<RefArray> arguments) {
  Outcome out;
  out.results = backend::run_graph(graph, arguments);
  out.arguments = std::move(arguments);
  return out;
}

// An array in memory with gaps and reversed axes, chosen by `layout`.
struct Placed {
  std::vector<std::byte> memory;
  std::vector<int64_t> strides;
  std::byte* data = nullptr;

  Placed(const RefArray& a, uint64_t layout) {
    const auto size = static_cast<int64_t>(size_of(a.dtype));
    strides.resize(a.shape.size());
    int64_t stride = size * (1 + static_cast<int64_t>(layout % 2)), low = 0;
    const bool fortran = (layout & 2) != 0;
    for (size_t i = 0; i < a.shape.size(); ++i) {
      const size_t d = fortran ? i : a.shape.size() - 1 - i;
      const bool reversed = ((layout >> (2 + d)) & 1) != 0;
      strides[d] = reversed ? -stride : stride;
      if (reversed) low -= std::max<int64_t>(a.shape[d] - 1, 0) * stride;
      stride *= std::max<int64_t>(a.shape[d], 1);
    }
    memory.assign(static_cast<size_t>(stride + size), std::byte{0xA5});
    data = memory.data() - low;
    each(a, [&](size_t i, std::byte* at) {
      std::memcpy(at, &a.elements[i], static_cast<size_t>(size));
    });
  }
  void take_back(RefArray& a) {
    each(a, [&](size_t i, std::byte* at) {
      ir::visit(a.dtype, [&]<class T>(T*) {
        T v;
        std::memcpy(&v, at, sizeof v);
        a.elements[i] = ir::Scalar::of(v).bits;
      });
    });
  }
  template <class F>
  void each(const RefArray& a, F&& f) {
    for (size_t i = 0; i < a.elements.size(); ++i) {
      std::byte* at = data;
      size_t rest = i;
      for (size_t d = a.shape.size(); d-- > 0;) {
        at += static_cast<int64_t>(rest % static_cast<size_t>(a.shape[d])) * strides[d];
        rest /= static_cast<size_t>(a.shape[d]);
      }
      f(i, at);
    }
  }
};

Outcome run_on(const backend::Backend& backend, const Program& p, uint64_t layout) {
  Outcome out{.results = {}, .arguments = p.arguments};
  std::vector<Placed> placed;
  for (const RefArray& a : p.arguments)
    placed.emplace_back(a, layout = layout * 6364136223846793005u + 1442695040888963407u);
  std::vector<driver::Arg> args;
  for (size_t i = 0; i < p.arguments.size(); ++i) {
    const RefArray& a = p.arguments[i];
    const bool scalar = p.graph.type(p.graph.params()[i]).is_scalar();
    args.push_back({.kind = scalar ? driver::Arg::Kind::scalar : driver::Arg::Kind::array,
                    .dtype = a.dtype,
                    .rank = static_cast<uint8_t>(a.shape.size()),
                    .data = placed[i].data,
                    .shape = a.shape.data(),
                    .strides = placed[i].strides.data(),
                    .bits = a.elements.empty() ? 0 : a.elements[0]});
  }
  driver::Kernel kernel("fuzz", {}, {});
  const driver::Plan& plan =
      kernel.plan(args, {}, backend, 0,
                  [&](std::span<const frontend::ArgSpec>) { return driver::Traced{p.graph}; });
  std::vector<Placed> results;
  std::vector<driver::Arg> outs;
  for (const driver::OutputSpec& spec : plan.outputs()) {
    RefArray r{.dtype = spec.dtype, .shape = spec.shape, .elements = {}};
    size_t count = 1;
    for (const int64_t s : spec.shape) count *= static_cast<size_t>(s);
    r.elements.assign(count, 0);
    results.emplace_back(r, 0);
    results.back().strides = spec.strides;
    outs.push_back({.dtype = spec.dtype,
                    .rank = static_cast<uint8_t>(spec.shape.size()),
                    .data = results.back().data,
                    .shape = spec.shape.data(),
                    .strides = spec.strides.data()});
    out.results.push_back(std::move(r));
  }
  plan.launch(args, outs);
  for (size_t i = 0; i < results.size(); ++i) results[i].take_back(out.results[i]);
  for (size_t i = 0; i < placed.size(); ++i) placed[i].take_back(out.arguments[i]);
  return out;
}

// What is wrong with a program, or nothing.
std::string check(const Program& p, uint64_t seed) {
  const ir::Module& graph = p.graph;
  if (!ir::verify(graph).empty())
    return "the generator made a malformed graph: " + to_string(ir::verify(graph));
  const std::string text = ir::print(graph);
  if (ir::print(ir::parse(text, "fuzz")[0]) != text) return "the text does not round-trip";
  const Outcome expected = interpret(graph, p.arguments);
  for (const passes::Pass& pass : passes::all_passes()) {
    if (pass.name == "bind_outputs" || pass.name.starts_with("lower_"))
      continue;  // they change the signature; backends run them
    if (pass.name == "expand_functions" || pass.name == "expand_inexact")
      continue;  // they change the last digits
    const bool bound = pass.name == "materialize" || pass.name == "assign_scratch" ||
                       pass.name == "isolate_params";
    if (bound && !graph.results.empty()) continue;
    const ir::Module after = pass.run(graph, {});
    if (const auto wrong = ir::verify(after); !wrong.empty())
      return "malformed after " + std::string(pass.name) + ": " + to_string(wrong) + "\n" +
             ir::print(after);
    const std::string what = difference(expected, interpret(after, p.arguments));
    if (!what.empty())
      return "pass " + std::string(pass.name) + " changes the meaning: " + what + "\n" +
             ir::print(after);
  }
  for (const backend::Backend* b : driver::all_backends()) {
    if (b->open == nullptr || b->threads_only || !b->why_not_live().empty()) continue;
    const std::string what = difference(expected, run_on(*b, p, seed));
    if (!what.empty()) return "backend " + std::string(b->name) + ": " + what;
  }
  return {};
}

TEST(GraphFuzz, PassesAndBackendsKeepTheMeaning) {
  const uint64_t first = from_environment("PICOKERNEL_FUZZ_SEED", 1),
                 count = from_environment("PICOKERNEL_FUZZ_COUNT", 400);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    constexpr int kSteps = 24;
    std::string wrong = check(random_program(seed, kSteps), seed);
    if (wrong.empty()) continue;
    for (int steps = 0; steps < kSteps; ++steps) {
      const Program p = random_program(seed, steps);
      const std::string smaller = check(p, seed);
      if (smaller.empty()) continue;
      FAIL() << "seed " << seed << ", " << steps << " steps: " << smaller << "\n"
             << ir::print(p.graph);
    }
    FAIL() << "seed " << seed << ": " << wrong;
  }
}

}  // namespace
}  // namespace picokernel::fuzz
