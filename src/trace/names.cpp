// Interned texts and the tables of instrumented twins.
#include <array>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "support/check.h"
#include "trace/ring.h"

namespace picokernel::trace {

namespace {

// References into the deque stay valid as it grows.
struct Names {
  std::deque<std::string> texts;
  std::unordered_map<std::string_view, uint32_t> ids;

  uint32_t intern(std::string_view text) {
    if (const auto found = ids.find(text); found != ids.end()) return found->second;
    const auto id = static_cast<uint32_t>(texts.size());
    ids.emplace(texts.emplace_back(text), id);
    return id;
  }
};

struct Tables {
  std::mutex mutex;
  Names names;
  Names backends;
  uint32_t op_tables = 0;
};

// Never destroyed: threads may record until the very end of the process.
Tables& tables() {
  static Tables& instance = *[] {
    auto* made = new Tables;
    made->backends.intern("");  // kEnclosingBackend
    return made;
  }();
  return instance;
}

// Read without a lock at each run of a twin. Pages that are never used cost nothing.
constexpr size_t kMaxTables = size_t{1} << 18;
constinit std::array<std::atomic<const OpTable*>, kMaxTables> table_of{};

}  // namespace

NameId intern(std::string_view text) {
  Tables& t = tables();
  const std::lock_guard lock(t.mutex);
  return t.names.intern(text);
}

BackendId intern_backend(std::string_view name) {
  Tables& t = tables();
  const std::lock_guard lock(t.mutex);
  const uint32_t id = t.backends.intern(name);
  PK_CHECK(id <= 0xffff, "too many backends");
  return static_cast<BackendId>(id);
}

std::string_view name_of(NameId id) {
  Tables& t = tables();
  const std::lock_guard lock(t.mutex);
  return id < t.names.texts.size() ? std::string_view(t.names.texts[id]) : "?";
}

std::string_view backend_name(BackendId id) {
  Tables& t = tables();
  const std::lock_guard lock(t.mutex);
  return id < t.backends.texts.size() ? std::string_view(t.backends.texts[id]) : "?";
}

TableId register_ops(std::vector<OpInfo> ops, std::string_view backend) {
  const BackendId id = intern_backend(backend);
  Tables& t = tables();
  const std::lock_guard lock(t.mutex);
  if (t.op_tables == kMaxTables) return kMaxTables;  // none
  auto* table = new OpTable{.ops = std::move(ops), .backend = id, .counted = {}};
  const auto counts = [&](size_t op) {
    return op < table->ops.size() &&
           counts_faults(table->ops[op].category, static_cast<uint64_t>(table->ops[op].bytes));
  };
  auto counted = std::make_unique<bool[]>(table->boundaries());
  for (size_t i = 0; i < table->boundaries(); ++i)
    table->counted_boundaries += counted[i] = counts(i) || (i != 0 && counts(i - 1));
  if (table->counted_boundaries != 0) table->counted = std::move(counted);
  table_of[t.op_tables].store(table, std::memory_order_release);
  return t.op_tables++;
}

const OpTable* op_table(TableId id) noexcept {
  return id < kMaxTables ? table_of[id].load(std::memory_order_acquire) : nullptr;
}

void lock_names() { tables().mutex.lock(); }
void unlock_names() { tables().mutex.unlock(); }

}  // namespace picokernel::trace
