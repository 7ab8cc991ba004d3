// The in-memory cache of kernels.
#include "runtime/kernel_cache.h"

#include <algorithm>

#include "support/check.h"

namespace picokernel::runtime {

namespace {

const CacheKey::Part* find_part(const CacheKey& key, std::string_view name) {
  const auto found = std::find_if(key.parts().begin(), key.parts().end(),
                                  [&](const auto& part) { return part.name == name; });
  return found == key.parts().end() ? nullptr : &*found;
}

// The line in which two texts first differ, shortened, as seen in `text`.
std::string excerpt(std::string_view text, std::string_view other) {
  constexpr size_t kLongest = 60;
  const size_t differs = static_cast<size_t>(
      std::mismatch(text.begin(), text.end(), other.begin(), other.end()).first - text.begin());
  size_t begin = differs == 0 ? 0 : text.rfind('\n', differs - 1) + 1;
  if (differs - begin > kLongest / 2) begin = differs - kLongest / 2;
  std::string_view line = text.substr(begin);
  line = line.substr(0, line.find('\n'));
  std::string out = begin != 0 && text[begin - 1] != '\n' ? "..." : "";
  out += line.substr(0, kLongest);
  if (line.size() > kLongest) out += "...";
  return "`" + out + "`";
}

std::string join(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

CacheKey& CacheKey::add(std::string_view name, std::string text) {
  PK_CHECK(find_part(*this, name) == nullptr, "a key has two parts named ", name);
  // Each part enters as a hash of fixed length, so no two lists of parts run together into one
  // text.
  const Hash128 hashes[] = {hash_, hash_bytes(name), hash_bytes(text)};
  hash_ = hash_bytes({reinterpret_cast<const char*>(hashes), sizeof hashes});
  parts_.push_back({std::string(name), std::move(text)});
  return *this;
}

std::vector<std::string> differing_parts(const CacheKey& from, const CacheKey& to) {
  std::vector<std::string> names;
  for (const CacheKey::Part& part : to.parts()) {
    const CacheKey::Part* before = find_part(from, part.name);
    if (before == nullptr || before->text != part.text) names.push_back(part.name);
  }
  for (const CacheKey::Part& part : from.parts())
    if (find_part(to, part.name) == nullptr) names.push_back(part.name);
  return names;
}

std::string describe_difference(const CacheKey& from, const CacheKey& to) {
  std::string out;
  for (const std::string& name : differing_parts(from, to)) {
    if (!out.empty()) out += "; ";
    const CacheKey::Part *before = find_part(from, name), *after = find_part(to, name);
    out += name + ": ";
    if (before == nullptr)
      out += "is new";
    else if (after == nullptr)
      out += "is gone";
    else
      out += excerpt(before->text, after->text) + " became " + excerpt(after->text, before->text);
  }
  return out;
}

KernelCacheBase::KernelCacheBase(std::string name)
    : name_(std::move(name)),
      hit_name_(trace::intern(name_ + ": hit")),
      finished_(std::make_unique<std::condition_variable>()),
      fork_registration_(
          ForkStage::cache,
          {this, [](void* self) { static_cast<KernelCacheBase*>(self)->mutex_.lock(); },
           [](void* self) { static_cast<KernelCacheBase*>(self)->mutex_.unlock(); },
           [](void* self) { static_cast<KernelCacheBase*>(self)->drop_foreign_builds(); }}) {}

KernelCacheBase::~KernelCacheBase() = default;

size_t KernelCacheBase::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) {
    return entry.second->state == State::ready;
  }));
}

void KernelCacheBase::clear() {
  Entries dropped;  // destroyed after the lock is released: values may be anything
  const std::lock_guard lock(mutex_);
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto next = std::next(at);
    if (at->second->state == State::ready) dropped.insert(entries_.extract(at));
    at = next;
  }
}

// The entry with the fewest differing parts; of several, the one whose hash is least, so that the
// answer does not depend on the table's order.
const CacheKey* KernelCacheBase::nearest(const CacheKey& key) const {
  const CacheKey* best = nullptr;
  std::pair<size_t, Hash128> best_rank;
  for (const auto& [other, entry] : entries_) {
    if (entry->state != State::ready) continue;
    const std::pair rank(differing_parts(other, key).size(), other.hash());
    if (best != nullptr && !(rank < best_rank)) continue;
    best = &other;
    best_rank = rank;
  }
  return best;
}

void KernelCacheBase::finish(const CacheKey& key, const std::shared_ptr<Entry>& entry,
                             State state) {
  entry->state = state;
  if (state == State::failed) entries_.erase(key);
  finished_->notify_all();
}

KernelCacheBase::Value KernelCacheBase::get_or_build(const CacheKey& key, Value (*build)(void*),
                                                     void* builder, CacheLookup* lookup) {
  std::unique_lock lock(mutex_);
  if (const auto found = entries_.find(key); found != entries_.end()) {
    const std::shared_ptr<Entry> entry = found->second;
    if (entry->state == State::building) {
      PK_CHECK(entry->builder != std::this_thread::get_id(), name_,
               ": the builder of a key asks for that key");
      finished_->wait(lock, [&] { return entry->state != State::building; });
    }
    if (entry->state == State::failed) std::rethrow_exception(entry->error);
    lock.unlock();
    trace::instant(trace::Category::cache, hit_name_);
    if (lookup != nullptr) *lookup = {true, {}};
    return entry->value;
  }

  // It compares with every entry: only for those who ask.
  const bool asked = lookup != nullptr || trace::enabled();
  const CacheKey* before = asked ? nearest(key) : nullptr;
  if (lookup != nullptr)
    *lookup = {false,
               before == nullptr ? "the cache was empty" : describe_difference(*before, key)};
  if (trace::enabled()) {
    const std::string why =
        before == nullptr ? "first entry"
                          : join(differing_parts(*before, key)) + " differ from the nearest entry";
    trace::instant(trace::Category::cache, trace::intern(name_ + ": miss, " + why));
  }
  const auto entry = std::make_shared<Entry>();
  entry->builder = std::this_thread::get_id();
  entries_.emplace(key, entry);
  lock.unlock();

  Value value;
  try {
    value = build(builder);
    PK_CHECK(value != nullptr, name_, ": a builder returned null");
  } catch (...) {
    lock.lock();
    entry->error = std::current_exception();
    finish(key, entry, State::failed);
    throw;
  }
  lock.lock();
  entry->value = value;
  finish(key, entry, State::ready);
  return value;
}

// In a forked child, with the lock held: threads that were building are gone, and so are those that
// waited, whose traces in the condition variable would confuse it.
void KernelCacheBase::drop_foreign_builds() {
  std::erase_if(entries_, [](const auto& entry) {
    return entry.second->state == State::building &&
           entry.second->builder != std::this_thread::get_id();
  });
  static_cast<void>(finished_.release());
  finished_ = std::make_unique<std::condition_variable>();
  mutex_.unlock();
}

}  // namespace picokernel::runtime
