// picoc: checks, optimises, emits, runs and tests files of IR.
#include <fstream>
#include <iostream>
#include <sstream>

#include <CLI/CLI.hpp>

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

void emit(const std::string& path, const std::string& target, bool after_each) {
  const backend::Backend& backend = backend_named(target);
  for (ir::Module& m : load(path)) {
    std::vector<Diagnostic> refused = picoc::refusals(backend, m);
    if (!refused.empty()) throw CompileError(std::move(refused));
    const driver::Observer show = [](void*, std::string_view pass, const ir::Module& module) {
      std::cout << "// after " << pass << "\n" << ir::print(module) << "\n";
    };
    const ir::Module lowered =
        driver::lower_for(backend, std::move(m), nullptr, after_each ? show : nullptr);
    std::cout << backend.emit(lowered).code;
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Works on files of picokernel's IR (.pk)"};
  app.require_subcommand(1);
  std::string file, target, call;
  std::vector<std::string> names, paths;
  bool after_each = false, bless = false;
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
  emit_command->add_flag("--after-each", after_each, "print the IR after each pass too");
  emit_command->callback([&] { emit(file, target, after_each); });

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
