// Compiled kernels by content: one build for each key, and a word on what was different when there
// was none.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include <picokernel/api.h>

#include "runtime/fork.h"
#include "support/hash.h"
#include "trace/trace.h"

namespace picokernel::runtime {

/// What a kernel is made from: named texts such as graph, target and options. Equal keys have equal
/// parts in the same order; nothing else is compared.
class PK_API CacheKey {
 public:
  struct Part {
    std::string name;
    std::string text;
    friend bool operator==(const Part&, const Part&) = default;
  };

  CacheKey& add(std::string_view name, std::string text);
  const std::vector<Part>& parts() const { return parts_; }
  Hash128 hash() const { return hash_; }
  friend bool operator==(const CacheKey& a, const CacheKey& b) {
    return a.hash_ == b.hash_ && a.parts_ == b.parts_;
  }

 private:
  std::vector<Part> parts_;
  Hash128 hash_;  // of all parts so far
};

/// A key as one text and back. Parts hold no zero bytes. What is no such text gives a key that
/// equals no other.
PK_API std::string to_bytes(const CacheKey& key);
PK_API CacheKey key_from_bytes(std::string_view bytes);

/// The names of the parts in which the keys differ, in the order of `to`.
std::vector<std::string> differing_parts(const CacheKey& from, const CacheKey& to);
/// Orders keys by how near they are to `to`: by the parts that differ, then by how much of their
/// texts does.
std::tuple<size_t, size_t, Hash128> distance(const CacheKey& from, const CacheKey& to);
/// One line, for people: options: `fastmath=0` became `fastmath=1`.
std::string describe_difference(const CacheKey& from, const CacheKey& to);

/// What a lookup found.
struct CacheLookup {
  bool hit = false;
  std::string
      difference;  // of a miss: how the key differs from the nearest entry, or that there was none
};

/// The part of the cache that does not depend on the type of its values.
class PK_API KernelCacheBase {
 public:
  /// Finished entries. More of them, and those that were not asked for longest are forgotten; who
  /// holds a value keeps it.
  static constexpr size_t kCapacity = 1024;

  size_t size() const;
  /// Forgets all finished entries; who holds a value keeps it.
  void clear();

 protected:
  using Value = std::shared_ptr<void>;

  explicit KernelCacheBase(std::string name);
  ~KernelCacheBase();
  KernelCacheBase(const KernelCacheBase&) = delete;
  KernelCacheBase& operator=(const KernelCacheBase&) = delete;

  Value get_or_build(const CacheKey& key, Value (*build)(void* builder), void* builder,
                     CacheLookup* lookup);

 private:
  enum class State : uint8_t { building, ready, failed };
  struct Entry {
    State state = State::building;
    std::thread::id builder;
    uint64_t last_use = 0;
    Value value;
    std::exception_ptr error;
  };
  struct KeyHash {
    size_t operator()(const CacheKey& key) const noexcept { return key.hash().low; }
  };
  using Entries = std::unordered_map<CacheKey, std::shared_ptr<Entry>, KeyHash>;

  const CacheKey* nearest(const CacheKey& key) const;
  void finish(const CacheKey& key, const std::shared_ptr<Entry>& entry, State state);
  std::shared_ptr<Entry> extract_oldest();
  void drop_foreign_builds();

  const std::string name_;
  const trace::NameId hit_name_;
  mutable std::mutex mutex_;
  std::condition_variable finished_;
  Entries entries_;
  uint64_t clock_ = 0;
  ForkRegistration fork_registration_;
};

/// Maps keys to shared values of type V. Thread safe. Values are never null.
template <class V>
class KernelCache : public KernelCacheBase {
 public:
  /// `name` appears in traces: "executables: miss, options differ".
  explicit KernelCache(std::string name) : KernelCacheBase(std::move(name)) {}

  /// The value of `key`, made by `builder()` (anything that converts to std::shared_ptr<V>) at the
  /// first call. Calls for a key that another thread is building wait for that build, so a caller
  /// must hold no lock that the builder needs, an interpreter's lock included. What a builder
  /// throws reaches everybody who waited for it and is not kept: the next call builds again. A
  /// builder may look up other keys, never its own (InternalError).
  template <class Builder>
  std::shared_ptr<V> get_or_build(const CacheKey& key, Builder&& builder,
                                  CacheLookup* lookup = nullptr) {
    using Function = std::remove_reference_t<Builder>;
    const auto build = [](void* function) -> Value {
      return std::shared_ptr<V>((*static_cast<Function*>(function))());
    };
    return std::static_pointer_cast<V>(KernelCacheBase::get_or_build(
        key, build, const_cast<void*>(static_cast<const void*>(&builder)), lookup));
  }
};

}  // namespace picokernel::runtime
