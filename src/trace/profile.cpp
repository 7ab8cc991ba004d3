// The public profile, on top of a session.
#include <cstdio>
#include <fstream>

#include <picokernel/diagnostic.h>
#include <picokernel/profile.h>

#include "trace/chrome_json.h"
#include "trace/session.h"
#include "trace/trace.h"

namespace picokernel {

struct Profile::Impl {
  std::unique_ptr<trace::Session> session;  // null: a merged profile
  std::vector<TraceEvent> merged;
  trace::Metadata metadata;
  uint64_t dropped = 0;
  std::string path;
};

Profile::Profile(std::string path) : impl_(std::make_unique<Impl>()) {
  impl_->path = std::move(path);
  impl_->session = std::make_unique<trace::Session>();
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
  if (!impl_->path.empty()) save(impl_->path);
}

const std::vector<TraceEvent>& Profile::events() const {
  return impl_->session ? impl_->session->events() : impl_->merged;
}

uint64_t Profile::dropped() const {
  return impl_->session ? impl_->session->dropped() : impl_->dropped;
}

std::string Profile::table() const {
  std::string text = trace::table(events());
  if (const uint64_t lost = dropped(); lost != 0)
    text += std::to_string(lost) + " events were dropped: their thread's ring was full\n";
  return text;
}

void Profile::save(const std::string& path) const {
  // A reader never sees half a file, and an older trace survives a full disk.
  const std::string partial = path + ".partial";
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  if (out) {
    trace::write_chrome_json(out, events(),
                             impl_->session ? impl_->session->metadata() : impl_->metadata);
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
