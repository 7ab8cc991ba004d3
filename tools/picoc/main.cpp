// picoc: checks, optimises, emits, runs and tests files of IR.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "driver/backends.h"
#include "driver/compile.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "run.h"
#include "text_test.h"

namespace {

using namespace picokernel;

std::string read_file(const std::string& path) {
  std::stringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  if (std::filesystem::is_directory(path)) throw Error(path + " is a directory");
  std::ifstream in(path);
  if (!in) throw Error("cannot read " + path);
  text << in.rdbuf();
  return text.str();
}

std::vector<ir::Module> load(const std::string& path) {
  std::vector<ir::Module> modules = ir::parse(read_file(path), path, true);
  std::vector<Diagnostic> wrong;
  for (const ir::Module& m : modules)
    for (Diagnostic& d : ir::verify(m)) wrong.push_back(std::move(d));
  if (!wrong.empty()) throw CompileError(std::move(wrong));
  return modules;
}

std::string names_of_backends() {
  std::string names;
  for (const backend::Backend* b : driver::all_backends())
    names += (names.empty() ? "" : " ") + std::string(b->name);
  return names;
}

const backend::Backend& backend_named(const std::string& name) {
  const backend::Backend* found = driver::find_backend(name);
  if (found == nullptr)
    throw Error("unknown target " + name + "\n  targets: " + names_of_backends());
  return *found;
}

void print_header(std::ostream& out) { out << "picokernel " << ir::kTextVersion << "\n"; }

void optimise(const std::string& path, const std::vector<std::string>& names) {
  std::vector<passes::Pass> pipeline;
  for (const std::string& name : names) {
    const passes::Pass* pass = passes::find_pass(name);
    if (pass == nullptr) {
      std::string known;
      for (const passes::Pass& p : passes::all_passes())
        known += "\n  " + std::string(p.name) + ": " + std::string(p.summary);
      throw Error("unknown pass " + name + "; passes:" + known);
    }
    pipeline.push_back(*pass);
  }
  print_header(std::cout);
  for (ir::Module& m : load(path))
    std::cout << ir::print(driver::run_passes(std::move(m), pipeline, {}));
}

struct EmitOptions {
  bool after_each = false;
  std::string header, output, triple;  // empty: none, standard output, this machine
};

struct Output {
  std::string path, text;
};

// All of them or none: what stood there before stays until all are written.
void write_files(const std::vector<Output>& files) {
  std::vector<std::pair<std::string, std::string>> written;  // what is to be renamed, and to what
  for (const auto& [path, text] : files) {
    const bool device = std::filesystem::exists(path) && !std::filesystem::is_regular_file(path);
    const std::string part = device ? path : path + ".part" + std::to_string(getpid());
    std::ofstream out(part, std::ios::binary);
    if (!device) written.emplace_back(part, path);
    out << text;
    if (out.flush()) continue;
    for (const auto& [from, to] : written) std::remove(from.c_str());
    throw Error("cannot write " + path);
  }
  for (const auto& [from, to] : written)
    if (std::rename(from.c_str(), to.c_str()) != 0) throw Error("cannot write " + to);
}

void emit(const std::string& path, const std::string& target, const EmitOptions& options) {
  const backend::Backend& backend = backend_named(target);
  if (!options.header.empty() && backend.header == nullptr)
    throw Error("target " + target + " has no header");
  if (!options.triple.empty() && backend.file == nullptr)
    throw Error("target " + target + " is for this machine: leave --target out");
  if (backend.binary && options.output.empty() &&
      (options.after_each || isatty(STDOUT_FILENO) != 0))
    throw Error("target " + target + " makes no text: write it to a file by -o FILE");
  std::vector<ir::Module> emitted;
  std::string code;
  for (ir::Module& m : load(path)) {
    std::vector<Diagnostic> refused = picoc::refusals(backend, m);
    if (!refused.empty()) throw CompileError(std::move(refused));
    const driver::Observer show = [](void*, std::string_view pass, const ir::Module& module) {
      std::cout << "// after " << pass << "\n" << ir::print(module) << "\n";
    };
    emitted.push_back(
        driver::lower_for(backend, std::move(m), nullptr, options.after_each ? show : nullptr));
    if (backend.file == nullptr) code += backend.emit(emitted.back()).code;
  }
  if (emitted.empty()) throw Error(path + " has no function");
  if (backend.file != nullptr) code = backend.file(emitted, options.triple);
  std::vector<Output> files;
  if (!options.output.empty()) files.push_back({options.output, std::move(code)});
  if (!options.header.empty())
    files.push_back({options.header, backend.header(emitted, options.triple)});
  if (files.size() == 2 && files[0].path == files[1].path)
    throw Error("-o and --header name the same file");
  write_files(files);
  if (options.output.empty()) std::cout << code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Works on files of picokernel's IR (.pk)"};
  app.require_subcommand(1);
  std::string file, target, call;
  std::vector<std::string> names, paths;
  EmitOptions options;
  bool bless = false;
  int status = 0;

  CLI::App* check = app.add_subcommand("check", "Parse and verify");
  check->add_option("file", file, "a .pk file, or - for standard input")->required();
  check->callback([&] { load(file); });

  CLI::App* opt = app.add_subcommand("opt", "Run passes and print the result");
  opt->add_option("--pass", names, "passes, in order")->required()->delimiter(',');
  opt->add_option("file", file, "a .pk file, or -")->required();
  opt->callback([&] { optimise(file, names); });

  CLI::App* emit_command = app.add_subcommand("emit", "Print what a target makes of it");
  emit_command->add_option("target", target, "one of: " + names_of_backends())->required();
  emit_command->add_option("file", file, "a .pk file, or -")->required();
  emit_command->add_flag("--after-each", options.after_each, "print the IR after each pass too");
  emit_command->add_option("-o", options.output, "write to this file, not to standard output");
  emit_command->add_option("--header", options.header,
                           "write a header of the functions to this file (c, obj)");
  emit_command->add_option("--target", options.triple,
                           "the machine, such as aarch64-linux-gnu (obj; this one without)");
  emit_command->callback([&] { emit(file, target, options); });

  CLI::App* run =
      app.add_subcommand("run", "Run a function on the reference interpreter or a backend");
  run->add_option("file", file, "a .pk file, or -")->required();
  run->add_option("call", call, "such as '@f(1, [2.5, 3])'")->required();
  target = "ref";
  run->add_option("--backend", target, "a backend that the core can open")->capture_default_str();
  run->callback(
      [&] { std::cout << picoc::run_call(load(file), call, backend_named(target)) << "\n"; });

  CLI::App* test = app.add_subcommand("test", "Run text tests");
  test->add_option("paths", paths, ".pk files or folders of them")->required();
  test->add_flag("--bless", bless, "rewrite expectations that differ");
  test->callback([&] { status = picoc::run_tests(paths, bless); });

  // CLI11 would ask for a subcommand and not say what is wrong with this one.
  if (argc > 1 && argv[1][0] != '-') {
    std::string known;
    bool found = false;
    for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
      known += " " + command->get_name();
      found = found || command->get_name() == argv[1];
    }
    if (!found) {
      std::cerr << "unknown command " << argv[1] << "\n  commands:" << known << "\n";
      return 1;
    }
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return status;
}
