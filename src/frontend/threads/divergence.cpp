// Dependence on thread ids, followed through assignments and the branches around them.
#include "frontend/threads/divergence.h"

#include <algorithm>

namespace picokernel::frontend::threads {
namespace {

bool is_barrier(const Node& n) { return n.is("Object") && n.text.starts_with("simt.syncthreads"); }

// What differs by itself: ids of threads, and what an atomic found.
bool differs(const Node& n) {
  return n.is("Object") && (n.text.starts_with("simt.threadIdx.") || n.text == "simt.grid" ||
                            n.text == "simt.laneid" || n.text.starts_with("simt.atomic."));
}

bool finds_barrier(const Program& program, std::span<const Node> nodes, std::set<size_t>& asked) {
  return std::ranges::any_of(nodes, [&](const Node& n) {
    if (is_barrier(n)) return true;
    if (!n.is("Function")) return finds_barrier(program, n.fields, asked);
    const auto number = static_cast<size_t>(std::get<int64_t>(n.literal));
    return asked.insert(number).second && finds_barrier(program, program.at(number).body, asked);
  });
}

bool finds_ids(const Program& program, const Node& n, std::set<size_t>& asked) {
  if (differs(n)) return true;
  const auto inside = [&](const Node& field) { return finds_ids(program, field, asked); };
  if (!n.is("Function")) return std::ranges::any_of(n.fields, inside);
  const auto number = static_cast<size_t>(std::get<int64_t>(n.literal));
  return asked.insert(number).second && std::ranges::any_of(program.at(number).body, inside);
}

}  // namespace

bool has_barrier(const Program& program, std::span<const Node> nodes) {
  std::set<size_t> asked;
  return finds_barrier(program, nodes, asked);
}

Divergence::Divergence(const Program& program, const Function& function) : program_(program) {
  do {
    changed_ = false;
    look(function.body, std::nullopt);
  } while (changed_);
}

std::optional<std::string> Divergence::source(const Node& n) const {
  // All threads get the same from a barrier that counts.
  if (n.is("Call") && is_barrier(n[0])) return std::nullopt;
  if (differs(n)) return "`" + n.text + "`";
  if (n.is("Function")) {
    std::set<size_t> asked;
    if (finds_ids(program_, n, asked)) return "what it calls";
  }
  if (n.is("Name"))
    if (const auto known = sources_.find(n.text); known != sources_.end())
      return "`" + n.text + "`";
  for (const Node& field : n.fields)
    if (auto found = source(field)) return found;
  return std::nullopt;
}

void Divergence::mark(const Node& target, const std::optional<std::string>& source) {
  if (!source) return;
  if (target.is("Name")) changed_ |= sources_.try_emplace(target.text, *source).second;
  if (target.is("Tuple"))
    for (const Node& item : target.fields) mark(item, source);
}

void Divergence::assign(const Node& target, const Node& value,
                        const std::optional<std::string>& around) {
  if (target.is("Tuple") && value.is("Tuple") && target.fields.size() == value.fields.size()) {
    for (size_t i = 0; i < target.fields.size(); ++i) assign(target[i], value[i], around);
  } else {
    mark(target, around ? around : source(value));
  }
}

void Divergence::look(std::span<const Node> statements, const std::optional<std::string>& around) {
  const auto first = [](const std::optional<std::string>& a, std::optional<std::string> b) {
    return a ? a : std::move(b);
  };
  for (const Node& s : statements) {
    if (s.is("Assign")) {
      for (const Node& target : s[0].fields) assign(target, s[1], around);
    } else if (s.is("AnnAssign")) {
      assign(s[0], s[1], around);
    } else if (s.is("AugAssign")) {
      mark(s[0], first(around, source(s[2])));
    } else if (s.is("For")) {
      const auto inside = first(around, source(s[1]));
      mark(s[0], inside);
      look(s[2].fields, inside);
      look(s[3].fields, around);
    } else if (s.is("If") || s.is("While")) {
      const auto inside = first(around, source(s[0]));
      look(s[1].fields, inside);
      look(s[2].fields, s.is("If") ? inside : around);
    }
  }
}

}  // namespace picokernel::frontend::threads
