// Running calls of IR functions.
#include "run.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "backend/ref/interpreter.h"
#include "driver/backends.h"
#include "driver/compile.h"
#include "driver/kernel.h"
#include "ir/lexer.h"
#include "ir/text.h"
#include "support/check.h"

namespace picoc {
namespace {

using namespace picokernel;
using backend::equal;
using backend::RefArray;

// Reads values of known dtypes: 2.5, true, nan, [1, 2], [[1], [2]].
class ValueReader {
 public:
  explicit ValueReader(const std::string& text) : lexer_(text, "call") {}

  std::string function() {
    return std::string(
        lexer_.expect(ir::Token::Kind::global, "a function such as @f").text.substr(1));
  }
  bool accept(std::string_view t) { return lexer_.accept(t); }
  void expect(std::string_view t) { lexer_.expect(t); }
  bool at_end() const { return lexer_.at_end(); }
  bool at(std::string_view t) const { return lexer_.peek().text == t; }

  RefArray value(DType dtype) {
    RefArray a{.dtype = dtype, .shape = {}, .elements = {}};
    read(a, 0);
    return a;
  }

 private:
  void read(RefArray& a, size_t depth) {
    if (!lexer_.accept("[")) {
      a.elements.push_back(scalar(a.dtype));
      return;
    }
    if (a.shape.size() == depth) a.shape.push_back(-1);
    int64_t count = 0;
    for (bool first = true; !lexer_.accept("]"); first = false) {
      if (!first) lexer_.expect(",");
      read(a, depth + 1);
      ++count;
    }
    if (a.shape[depth] != -1 && a.shape[depth] != count)
      lexer_.fail(lexer_.peek(), "rows differ in length");
    a.shape[depth] = count;
  }

  uint64_t scalar(DType dtype) {
    const bool negative = lexer_.accept("-");
    const ir::Token t = lexer_.next();
    const std::string text = (negative ? "-" : "") + std::string(t.text);
    // The constant's own syntax: one place knows how values are written.
    const std::string program = "kernel @c() -> (" + std::string(text_name(dtype)) +
                                ") { %0 = constant " + text + " : " +
                                std::string(text_name(dtype)) + " return %0 }";
    const std::vector<ir::Module> parsed = ir::parse(program, "value " + text);
    return parsed[0].ops[ir::OpId(size_t{0})].attribute;
  }

  ir::Lexer lexer_;
};

std::string print(const RefArray& a) {
  const auto one = [&](uint64_t bits) {
    ir::Module m;
    m.blocks.push({});
    m.ops.push({.opcode = ir::Opcode::constant, .scalar_dtype = a.dtype, .attribute = bits});
    m.ops[ir::OpId(size_t{0})].results.push_back(
        m.values.push({.type = m.types.intern({.dtype = a.dtype})}));
    std::string text = ir::print_op(m, ir::OpId(size_t{0}));  // %0 = constant 2.5 : f32
    text = text.substr(text.find("constant ") + 9);
    return text.substr(0, text.find(" :"));
  };
  size_t next = 0;
  const auto level = [&](auto&& self, size_t depth) -> std::string {
    if (depth == a.shape.size()) return one(a.elements[next++]);
    std::string text = "[";
    for (int64_t i = 0; i < a.shape[depth]; ++i) text += (i ? ", " : "") + self(self, depth + 1);
    return text + "]";
  };
  return level(level, 0);
}

struct Outcome {
  std::vector<RefArray> results, arguments;
};

// Elements as they lie in memory, and back.
std::vector<std::byte> pack(const RefArray& a) {
  const size_t size = size_of(a.dtype);
  std::vector<std::byte> memory(a.elements.size() * size + 1);
  for (size_t i = 0; i < a.elements.size(); ++i)
    std::memcpy(memory.data() + i * size, &a.elements[i], size);
  return memory;
}
void unpack(RefArray& a, const std::vector<std::byte>& memory) {
  ir::visit(a.dtype, [&]<class T>(T*) {
    for (size_t i = 0; i < a.elements.size(); ++i) {
      T v;
      std::memcpy(&v, memory.data() + i * sizeof(T), sizeof v);
      a.elements[i] = ir::Scalar::of(v).bits;
    }
  });
}

Outcome run_graph_on(const ir::Module& m, std::vector<RefArray> arguments,
                     const backend::Backend& backend) {
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::vector<int64_t>> strides;
  for (const RefArray& a : arguments) {
    memory.push_back(pack(a));
    std::vector<int64_t> s(a.shape.size());
    auto stride = static_cast<int64_t>(size_of(a.dtype));
    for (size_t d = s.size(); d-- > 0; stride *= a.shape[d]) s[d] = stride;
    strides.push_back(std::move(s));
  }
  std::vector<driver::Arg> args;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool scalar = m.type(m.params()[i]).is_scalar();
    args.push_back({.kind = scalar ? driver::Arg::Kind::scalar : driver::Arg::Kind::array,
                    .dtype = arguments[i].dtype,
                    .rank = static_cast<uint8_t>(arguments[i].shape.size()),
                    .data = memory[i].data(),
                    .shape = arguments[i].shape.data(),
                    .strides = strides[i].data(),
                    .bits = scalar ? arguments[i].elements[0] : 0});
  }
  driver::Kernel kernel(m.name, {}, {});
  const driver::Plan& plan = kernel.plan(
      args, {}, backend, 0, [&](std::span<const frontend::ArgSpec>) { return driver::Traced{m}; });
  Outcome out{.results = {}, .arguments = std::move(arguments)};
  std::vector<driver::Arg> outs;
  std::vector<std::vector<std::byte>> results;
  for (const driver::OutputSpec& spec : plan.outputs()) {
    RefArray r{.dtype = spec.dtype, .shape = spec.shape, .elements = {}};
    int64_t count = 1;
    for (const int64_t s : spec.shape) count *= s;
    r.elements.resize(static_cast<size_t>(count));
    results.push_back(pack(r));
    outs.push_back({.dtype = spec.dtype,
                    .rank = static_cast<uint8_t>(spec.shape.size()),
                    .data = results.back().data(),
                    .shape = spec.shape.data(),
                    .strides = spec.strides.data()});
    out.results.push_back(std::move(r));
  }
  plan.launch(args, outs);
  for (size_t i = 0; i < results.size(); ++i) unpack(out.results[i], results[i]);
  for (size_t i = 0; i < out.arguments.size(); ++i) unpack(out.arguments[i], memory[i]);
  return out;
}

// A kernel's parameter slots; arrays lie in `memory`.
std::vector<uint64_t> slots_of(const ir::Module& m, const std::vector<RefArray>& arguments,
                               std::vector<std::vector<std::byte>>& memory) {
  std::vector<uint64_t> slots;
  for (size_t i = 0; i < arguments.size(); ++i) {
    memory.push_back(pack(arguments[i]));
    const bool pointer = m.type(m.params()[i]).kind == ir::TypeKind::ptr;
    slots.push_back(pointer ? reinterpret_cast<uint64_t>(memory.back().data())
                            : arguments[i].elements[0]);
  }
  return slots;
}

Outcome run_kernel_on(const ir::Module& m, std::vector<RefArray> arguments,
                      const backend::Backend& backend) {
  std::vector<std::vector<std::byte>> memory;
  std::vector<uint64_t> params = slots_of(m, arguments, memory);
  Outcome out{.results = {}, .arguments = std::move(arguments)};
  std::vector<uint64_t> results(m.results.size(), 0);
  for (uint64_t& slot : results) params.push_back(reinterpret_cast<uint64_t>(&slot));
  const ir::Module lowered = driver::lower_for(backend, m);
  backend.open(backend.emit(lowered), lowered)->launch(params.data());
  for (size_t i = 0; i < results.size(); ++i) {
    RefArray r{.dtype = m.types[m.results[i]].dtype, .shape = {}, .elements = {0}};
    std::vector<std::byte> bytes(sizeof(uint64_t));
    std::memcpy(bytes.data(), &results[i], sizeof(uint64_t));
    unpack(r, bytes);
    out.results.push_back(std::move(r));
  }
  for (size_t i = 0; i < out.arguments.size(); ++i) unpack(out.arguments[i], memory[i]);
  return out;
}

Outcome run_on(const ir::Module& m, const std::vector<RefArray>& arguments,
               const backend::Backend& backend) {
  if (backend.open == nullptr)
    throw Error("the core cannot open backend " + std::string(backend.name));
  if (const std::string why = backend.why_not_live(); !why.empty())
    throw Error("backend " + std::string(backend.name) + " cannot run here: " + why);
  return m.level == ir::Level::graph ? run_graph_on(m, arguments, backend)
                                     : run_kernel_on(m, arguments, backend);
}

// The interpreter on the module as written: no pass has touched it.
Outcome interpret(const ir::Module& m, std::vector<RefArray> arguments) {
  Outcome out;
  if (m.level == ir::Level::graph) {
    out.results = backend::run_graph(m, arguments);
    out.arguments = std::move(arguments);
    return out;
  }
  std::vector<std::vector<std::byte>> memory;
  std::vector<uint64_t> params = slots_of(m, arguments, memory);
  for (const ir::Scalar& s : backend::run_kernel(m, params))
    out.results.push_back({.dtype = s.dtype, .shape = {}, .elements = {s.bits}});
  for (size_t i = 0; i < arguments.size(); ++i) unpack(arguments[i], memory[i]);
  out.arguments = std::move(arguments);
  return out;
}

struct Call {
  const ir::Module* module = nullptr;
  std::vector<RefArray> arguments;
};

Call read_call(ValueReader& reader, const std::vector<ir::Module>& modules) {
  const std::string name = reader.function();
  const auto found = std::ranges::find(modules, name, &ir::Module::name);
  if (found == modules.end()) throw Error("no function @" + name);
  Call call{.module = &*found, .arguments = {}};
  const size_t count = found->params().size();
  const auto wrong_count = [&] {
    return Error("@" + name + " takes " + std::to_string(count) +
                 (count == 1 ? " argument" : " arguments") + ", the call gives " +
                 (call.arguments.size() < count ? std::to_string(call.arguments.size()) : "more"));
  };
  reader.expect("(");
  for (const ir::ValueId p : found->params()) {
    if (reader.at(")")) throw wrong_count();
    if (!call.arguments.empty()) reader.expect(",");
    call.arguments.push_back(reader.value(found->type(p).dtype));
  }
  if (reader.at(",") || (count == 0 && !reader.at(")"))) throw wrong_count();
  reader.expect(")");
  return call;
}

std::string print(const std::vector<RefArray>& arrays) {
  std::string text;
  for (const RefArray& a : arrays) text += (text.empty() ? "" : ", ") + print(a);
  return text;
}

}  // namespace

std::vector<Diagnostic> refusals(const backend::Backend& backend, const ir::Module& m) {
  if (backend.level != ir::Level::graph || m.level != ir::Level::kernel) return backend.check(m);
  Diagnostic d{.message = std::string(backend.name) + " takes graphs, this is a kernel"};
  const auto& ops = m.blocks[ir::Module::body()].ops;
  if (!ops.empty()) d.location = m.location(m.ops[ops[0]]);
  std::string targets;
  for (const backend::Backend* b : driver::all_backends())
    if (b->level == ir::Level::kernel) targets += " " + std::string(b->name);
  d.notes.push_back("targets of kernels:" + targets);
  return {std::move(d)};
}

std::string run_call(const std::vector<ir::Module>& modules, const std::string& text,
                     const backend::Backend& backend) {
  ValueReader reader(text);
  const Call call = read_call(reader, modules);
  const Outcome out = run_on(*call.module, call.arguments, backend);
  return print(call.module->results.empty() ? out.arguments : out.results);
}

std::string check_run(const std::vector<ir::Module>& modules, const std::string& line) {
  ValueReader reader(line);
  const Call call = read_call(reader, modules);
  const bool leaves = reader.accept("leaves");
  if (!leaves) reader.expect("==");
  std::vector<RefArray> expected;
  std::vector<DType> dtypes;
  if (leaves)
    for (const ir::ValueId p : call.module->params()) dtypes.push_back(call.module->type(p).dtype);
  else
    for (const ir::TypeId t : call.module->results) dtypes.push_back(call.module->types[t].dtype);
  for (const DType t : dtypes) {
    if (!expected.empty()) reader.expect(",");
    expected.push_back(reader.value(t));
  }
  std::string wrong;
  const auto compare = [&](std::string_view who, const Outcome& out) {
    const std::vector<RefArray>& got = leaves ? out.arguments : out.results;
    if (!std::ranges::equal(got, expected, equal))
      wrong += std::string(who) + " gives " + print(got) + ", expected " + print(expected) + "\n";
  };
  compare("the interpreter", interpret(*call.module, call.arguments));
  for (const backend::Backend* b : driver::all_backends())
    if (b->open != nullptr && !b->threads_only && b->why_not_live().empty())
      compare(b->name, run_on(*call.module, call.arguments, *b));
  return wrong;
}

}  // namespace picoc
