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

std::string to_bytes(const CacheKey& key) {
  std::string bytes;
  for (const CacheKey::Part& part : key.parts()) {
    PK_CHECK(part.text.find('\0') == part.text.npos, part.name, " holds a zero byte");
    bytes.append(part.name).append(1, '\0').append(part.text).append(1, '\0');
  }
  return bytes;
}

CacheKey key_from_bytes(std::string_view bytes) {
  CacheKey key;
  const auto next = [&] {
    const std::string_view text = bytes.substr(0, bytes.find('\0'));
    bytes.remove_prefix(std::min(bytes.size(), text.size() + 1));
    return text;
  };
  while (!bytes.empty()) {
    const std::string_view name = next();
    if (find_part(key, name) != nullptr) return {};
    key.add(name, std::string(next()));
  }
  return key;
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

std::tuple<size_t, size_t, Hash128> distance(const CacheKey& from, const CacheKey& to) {
  size_t bytes = 0;
  const std::vector<std::string> names = differing_parts(from, to);
  for (const std::string& name : names) {
    const CacheKey::Part *before = find_part(from, name), *after = find_part(to, name);
    const std::string_view a = before != nullptr ? std::string_view(before->text) : "";
    const std::string_view b = after != nullptr ? std::string_view(after->text) : "";
    const auto start = static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
    size_t end = 0;
    while (end < std::min(a.size(), b.size()) - start &&
           a[a.size() - 1 - end] == b[b.size() - 1 - end])
      ++end;
    bytes += std::max(a.size(), b.size()) - start - end;
  }
  return {names.size(), bytes, from.hash()};
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
  std::tuple<size_t, size_t, Hash128> best_distance;
  for (const auto& [other, entry] : entries_) {
    if (entry->state != State::ready) continue;
    const auto d = distance(other, key);
    if (best != nullptr && !(d < best_distance)) continue;
    best = &other;
    best_distance = d;
  }
  return best;
}

// The finished entry that was not asked for longest, if there are too many.
std::shared_ptr<KernelCacheBase::Entry> KernelCacheBase::extract_oldest() {
  if (entries_.size() <= kCapacity) return nullptr;
  auto oldest = entries_.end();
  for (auto at = entries_.begin(); at != entries_.end(); ++at)
    if (at->second->state == State::ready &&
        (oldest == entries_.end() || at->second->last_use < oldest->second->last_use))
      oldest = at;
  if (oldest == entries_.end()) return nullptr;
  return entries_.extract(oldest).mapped();
}

void KernelCacheBase::finish(const CacheKey& key, const std::shared_ptr<Entry>& entry,
                             State state) {
  entry->state = state;
  if (state == State::failed) entries_.erase(key);
  finished_.notify_all();
}

KernelCacheBase::Value KernelCacheBase::get_or_build(const CacheKey& key, Value (*build)(void*),
                                                     void* builder, CacheLookup* lookup) {
  std::unique_lock lock(mutex_);
  if (const auto found = entries_.find(key); found != entries_.end()) {
    const std::shared_ptr<Entry> entry = found->second;
    if (entry->state == State::building) {
      PK_CHECK(entry->builder != std::this_thread::get_id(), name_,
               ": the builder of a key asks for that key");
      finished_.wait(lock, [&] { return entry->state != State::building; });
    }
    if (entry->state == State::failed) std::rethrow_exception(entry->error);
    entry->last_use = ++clock_;
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
  entry->last_use = ++clock_;
  finish(key, entry, State::ready);
  const std::shared_ptr<Entry> oldest = extract_oldest();
  lock.unlock();  // values may be anything
  return value;
}

// In a forked child, with the lock held: threads that were building are gone, and so are those that
// waited, whose traces in the condition variable would confuse it.
void KernelCacheBase::drop_foreign_builds() {
  std::erase_if(entries_, [](const auto& entry) {
    return entry.second->state == State::building &&
           entry.second->builder != std::this_thread::get_id();
  });
  // Constructed anew in place: its destructor would wait for those threads.
  std::construct_at(&finished_);
  mutex_.unlock();
}

}  // namespace picokernel::runtime
