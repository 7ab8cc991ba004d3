// The runner of text tests.
#include "text_test.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>

#include "driver/backends.h"
#include "driver/compile.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "run.h"

namespace picoc {
namespace {

using namespace picokernel;

struct Case {
  std::string directive;              // "pass fold"
  std::vector<std::string> lines;     // as in the file
  size_t first_line = 1;              // of lines[0] in the file
  size_t expect = std::string::npos;  // index of `// expect:`

  // The IR: empty lines for what stands before, so that places are those of the file.
  std::string source() const {
    std::string text(first_line - 1, '\n');
    for (size_t i = 0; i < std::min(expect, lines.size()); ++i) text += lines[i] + "\n";
    return text;
  }
};

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<Case> read_cases(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  std::vector<Case> cases(1);
  const std::vector<std::string> lines = split_lines(text.str());
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("// ----")) {
      cases.push_back({.directive = {}, .lines = {}, .first_line = i + 2});
      continue;
    }
    Case& c = cases.back();
    if (lines[i].starts_with("// test: ")) c.directive = lines[i].substr(9);
    if (lines[i] == "// expect:") c.expect = c.lines.size();
    c.lines.push_back(lines[i]);
  }
  return cases;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

std::string run_pipeline(const Case& c, const std::string& path) {
  const std::vector<std::string> directive = words(c.directive);
  std::string out;
  for (ir::Module& m : ir::parse(c.source(), path)) {
    ir::verify_or_throw(m, "parsing");
    if (directive[0] == "emit") {
      const backend::Backend* backend =
          directive.size() == 2 ? driver::find_backend(directive[1]) : nullptr;
      if (backend == nullptr) throw Error("emit names no target");
      if (std::vector<Diagnostic> refused = refusals(*backend, m); !refused.empty())
        throw CompileError(std::move(refused));
      out += backend->emit(driver::lower_for(*backend, std::move(m))).code;
      continue;
    }
    std::vector<passes::Pass> pipeline;
    for (size_t i = 1; i < directive.size(); ++i) {
      const passes::Pass* pass = passes::find_pass(directive[i]);
      if (pass == nullptr) throw Error("no pass " + directive[i]);
      pipeline.push_back(*pass);
    }
    out += ir::print(driver::run_passes(std::move(m), pipeline, {}));
  }
  return out;
}

std::string check_expectation(Case& c, const std::string& path, bool bless, bool& changed) {
  const std::vector<std::string> got = split_lines(run_pipeline(c, path));
  std::vector<std::string> expected;
  for (size_t i = std::min(c.expect, c.lines.size() - 1) + 1; i < c.lines.size(); ++i)
    if (c.lines[i].starts_with("//"))
      expected.push_back(c.lines[i].size() > 3 ? c.lines[i].substr(3) : "");
  if (c.expect != std::string::npos && got == expected) return {};
  if (bless) {
    c.lines.resize(std::min(c.expect, c.lines.size()));
    c.expect = c.lines.size();
    c.lines.push_back("// expect:");
    for (const std::string& line : got) c.lines.push_back(line.empty() ? "//" : "// " + line);
    changed = true;
    return {};
  }
  std::string text = "expected:\n";
  for (const std::string& line : expected) text += "  " + line + "\n";
  text += "got:\n";
  for (const std::string& line : got) text += "  " + line + "\n";
  return text;
}

// `check`: what the parser and the verifier refuse; `check numpy`: what that target does, too.
std::string check_errors(const Case& c, const std::string& path) {
  const std::vector<std::string> directive = words(c.directive);
  const backend::Backend* backend =
      directive.size() == 2 ? driver::find_backend(directive[1]) : nullptr;
  if (directive.size() > 1 && backend == nullptr) throw Error("check names no target");
  std::vector<Diagnostic> found;
  try {
    for (const ir::Module& m : ir::parse(c.source(), path, true)) {
      for (Diagnostic& d : ir::verify(m)) found.push_back(std::move(d));
      if (backend != nullptr && found.empty()) found = refusals(*backend, m);
    }
  } catch (const CompileError& error) {
    found = error.diagnostics();
  }
  std::multimap<size_t, std::string> expected;
  for (size_t i = 0; i < c.lines.size(); ++i)
    for (size_t at = c.lines[i].find("// error: "); at != std::string::npos;
         at = c.lines[i].find("// error: ", at + 1)) {
      const size_t next = c.lines[i].find(" // error: ", at + 1);
      expected.emplace(
          c.first_line + i,
          c.lines[i].substr(at + 10, next == std::string::npos ? next : next - at - 10));
    }
  std::string wrong;
  for (const Diagnostic& d : found) {
    std::string text = d.message;
    for (const std::string& note : d.notes) text += "; " + note;
    const auto [first, last] = expected.equal_range(d.location.line);
    const auto match = std::find_if(
        first, last, [&](const auto& e) { return text.find(e.second) != std::string::npos; });
    if (match == last)
      wrong += "unexpected error at line " + std::to_string(d.location.line) + ": " + text + "\n";
    else
      expected.erase(match);
  }
  for (const auto& [line, text] : expected)
    wrong += "no error at line " + std::to_string(line) + ": " + text + "\n";
  return wrong;
}

std::string check_round_trip(const Case& c, const std::string& path) {
  std::string original, again;
  for (const std::string& line : c.lines)
    if (!line.starts_with("//") && !line.starts_with("picokernel ") && !line.empty())
      original += line + "\n";
  const bool locations = original.find(" loc(") != std::string::npos;
  for (const ir::Module& m : ir::parse(c.source(), path)) {
    ir::verify_or_throw(m, "parsing");
    again += ir::print(m, {.locations = locations, .names = true});
  }
  return original == again ? std::string() : "printed again:\n" + again;
}

std::string check_runs(const Case& c, const std::string& path) {
  const std::vector<ir::Module> modules = ir::parse(c.source(), path);
  for (const ir::Module& m : modules) ir::verify_or_throw(m, "parsing");
  std::string wrong;
  size_t runs = 0;
  for (size_t i = 0; i < c.lines.size(); ++i) {
    if (!c.lines[i].starts_with("// run: ")) continue;
    ++runs;
    const std::string result = check_run(modules, c.lines[i].substr(8));
    if (!result.empty()) wrong += "line " + std::to_string(c.first_line + i) + ": " + result;
  }
  return runs == 0 ? "the case has no `// run:` line\n" : wrong;
}

std::string run_case(Case& c, const std::string& path, bool bless, bool& changed) {
  try {
    const std::string kind = words(c.directive).empty() ? "" : words(c.directive)[0];
    if (kind == "pass" || kind == "emit") return check_expectation(c, path, bless, changed);
    if (kind == "check") return check_errors(c, path);
    if (kind == "round-trip") return check_round_trip(c, path);
    if (kind == "run") return check_runs(c, path);
    return "no such test: `" + c.directive + "`\n";
  } catch (const std::exception& error) {
    return std::string(error.what()) + "\n";
  }
}

void write_cases(const std::string& path, const std::vector<Case>& cases) {
  std::ofstream out(path);
  for (const Case& c : cases) {
    if (&c != cases.data()) out << "// ----\n";
    for (const std::string& line : c.lines) out << line << "\n";
  }
}

}  // namespace

int run_tests(const std::vector<std::string>& paths, bool bless) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      if (entry.path().extension() == ".pk") files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  size_t passed = 0, failed = 0;
  for (const std::string& file : files) {
    std::vector<Case> cases = read_cases(file);
    bool changed = false;
    for (Case& c : cases) {
      const std::string wrong = run_case(c, file, bless, changed);
      if (wrong.empty()) {
        ++passed;
        continue;
      }
      ++failed;
      std::cout << file << ":" << c.first_line << ": FAILED (" << c.directive << ")\n" << wrong;
    }
    if (changed) write_cases(file, cases);
  }
  std::cout << passed << " passed, " << failed << " failed\n";
  return failed == 0 && passed != 0 ? 0 : 1;
}

}  // namespace picoc
