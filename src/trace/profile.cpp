// The public profile, on top of a session.
#include <cstdio>
#include <fstream>
#include <map>

#include <picokernel/diagnostic.h>
#include <picokernel/profile.h>

#include "trace/chrome_json.h"
#include "trace/session.h"
#include "trace/trace.h"

namespace picokernel {

namespace {
constexpr std::string_view kIntrusive =
    "split: every MLX operation was evaluated when it had been made, so that none was fused or "
    "overlapped";
}  // namespace

struct Profile::Impl {
  std::unique_ptr<trace::Session> session;  // null: a merged profile
  std::vector<TraceEvent> merged;
  trace::Metadata metadata;
  uint64_t dropped = 0;
  std::string path;
  bool split = false;

  trace::Metadata about() const {
    trace::Metadata about = session ? session->metadata() : metadata;
    for (auto& [key, value] : about)
      if (key == "dropped_events" && !session) value = static_cast<int64_t>(dropped);
    if (split) about.emplace_back("intrusive", std::string(kIntrusive));
    return about;
  }
};

Profile::Profile(std::string path, bool split) : impl_(std::make_unique<Impl>()) {
  impl_->path = std::move(path);
  impl_->session = std::make_unique<trace::Session>();
  impl_->split = split;
  if (split) trace::live_splits.fetch_add(1, std::memory_order_relaxed);
}

Profile::Profile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Profile::Profile(Profile&&) noexcept = default;
Profile& Profile::operator=(Profile&&) noexcept = default;

Profile::~Profile() {
  if (!impl_) return;
  try {
    stop();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "picokernel: %s\n", error.what());
  }
}

void Profile::stop() {
  if (!impl_->session || !impl_->session->recording()) return;
  impl_->session->stop();
  if (impl_->split) trace::live_splits.fetch_sub(1, std::memory_order_relaxed);
  if (!impl_->path.empty()) save(impl_->path);
}

const std::vector<TraceEvent>& Profile::events() const {
  return impl_->session ? impl_->session->events() : impl_->merged;
}

uint64_t Profile::dropped() const {
  return impl_->session ? impl_->session->dropped() : impl_->dropped;
}

std::string Profile::table() const {
  std::string text = impl_->split ? "intrusive, " + std::string(kIntrusive) + "\n" : "";
  text += trace::table(events());
  if (const uint64_t lost = dropped(); lost != 0)
    text += std::to_string(lost) + " events were dropped: their thread's ring was full\n";
  return text;
}

std::string Profile::lines(const SourceLine& source) const {
  if (source) return trace::lines(events(), source);
  std::map<std::string, std::vector<std::string>> files;
  return trace::lines(events(), [&](const std::string& file, int64_t line) {
    const auto [known, added] = files.try_emplace(file);
    std::ifstream in;
    if (added) in.open(file);
    for (std::string text; std::getline(in, text);) known->second.push_back(text);
    const auto i = static_cast<size_t>(line - 1);
    return i < known->second.size() ? known->second[i] : std::string();
  });
}

void Profile::save(const std::string& path) const {
  // A reader never sees half a file, and an older trace survives a full disk.
  const std::string partial = path + ".partial";
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  if (out) {
    std::vector<TraceEvent> all = events();
    trace::add_flows_and_counters(all);
    trace::write_chrome_json(out, all, impl_->about());
    out.close();
  }
  if (!out || std::rename(partial.c_str(), path.c_str()) != 0) {
    std::remove(partial.c_str());
    throw Error("the trace cannot be written to '" + path + "'");
  }
}

Profile Profile::merge(const Profile& first, const Profile& second, std::string_view name) {
  auto impl = std::make_unique<Impl>();
  impl->merged = trace::merge(first.events(), second.events(), name);
  impl->dropped = first.dropped() + second.dropped();
  impl->split = first.impl_->split || second.impl_->split;
  impl->metadata = first.impl_->session ? first.impl_->session->metadata() : first.impl_->metadata;
  return Profile(std::move(impl));
}

Span::Span(std::string_view name) noexcept {
  if (!trace::enabled()) return;
  try {
    name_ = trace::intern(name);
  } catch (...) {
    return;  // no memory for the name: the step goes unrecorded
  }
  begin_ = trace::now();
}

Span::~Span() {
  if (begin_ != 0) trace::complete(trace::Category::user, name_, begin_, trace::now());
}

}  // namespace picokernel
