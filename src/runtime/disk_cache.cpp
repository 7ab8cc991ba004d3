// A file is a Header, the key, the value, and the hash of all bytes before it. Numbers are in the
// machine's byte order; another machine's read as another version.
#include "runtime/disk_cache.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <picokernel/diagnostic.h>

#include "support/hash.h"

namespace picokernel::runtime {
namespace {

constexpr uint64_t kDefaultBytes = uint64_t{512} << 20;
// Names are 32 hexadecimal digits and one of these: nothing of the user's is taken for ours.
constexpr std::string_view kSuffix = ".pkcache", kTemporarySuffix = ".pkcache-tmp";
constexpr time_t kAbandonedAfter = 600;   // seconds; writing takes milliseconds
constexpr time_t kTouchedEvery = 3600;    // seconds: how exact the order of last uses is
constexpr double kTidiedEvery = 1. / 16;  // of the cache's size, in bytes stored
constexpr uint64_t kLargestShare = 8;     // of an entry, and what is freed at once: an eighth
constexpr size_t kLargestFile = size_t{1} << 30;

struct Header {
  char magic[8] = {'p', 'k', 'c', 'a', 'c', 'h', 'e', '\n'};
  uint64_t version = 1;
  uint64_t key_bytes = 0, value_bytes = 0;
};
constexpr size_t kFrame = sizeof(Header) + sizeof(Hash128);  // what a file has beside key and value

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~File() { close(); }
  File& operator=(File&&) = delete;
  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  bool close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

std::string last_error() { return std::generic_category().message(errno); }

// Empty: only this user can have written it.
std::string whose(const struct stat& s) {
  if (s.st_uid != geteuid()) return "it belongs to another user";
  if ((s.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others can write to it (chmod 700)";
  return {};
}

File open_folder(const std::string& path, std::string& problem) {
  File folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat s;
  problem = !folder || fstat(folder.fd(), &s) != 0 ? last_error() : whose(s);
  return problem.empty() ? std::move(folder) : File(-1);
}

// What goes wrong shows when the folder is opened.
void make_folders(const std::string& path) {
  for (size_t end = 0; end != path.npos;) {
    end = path.find('/', end + 1);
    mkdir(path.substr(0, end).c_str(), S_IRWXU);
  }
}

// Calls read or write until all is done.
template <class Byte>
bool transfer(ssize_t (*call)(int, Byte*, size_t), const File& file, Byte* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = call(file.fd(), bytes + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

struct Entry {
  std::string key, value;
};

// `uses`: it becomes the last one used.
std::optional<Entry> read_entry(const File& folder, const std::string& name, bool uses) {
  // NONBLOCK: opening a pipe would wait for its writer.
  const File file(
      openat(folder.fd(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat s;
  if (!file || fstat(file.fd(), &s) != 0 || !S_ISREG(s.st_mode) || !whose(s).empty()) return {};
  const auto size = static_cast<size_t>(s.st_size);
  if (size < kFrame || size > kLargestFile) return {};
  std::string bytes(size, '\0');
  const auto read = [](int fd, char* to, size_t n) { return ::read(fd, to, n); };
  if (!transfer<char>(read, file, bytes.data(), size)) return {};

  Hash128 checksum;
  std::memcpy(&checksum, bytes.data() + size - sizeof checksum, sizeof checksum);
  if (hash_bytes({bytes.data(), size - sizeof checksum}) != checksum) return {};
  Header header;
  const Header ours;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, ours.magic, sizeof ours.magic) != 0 ||
      header.version != ours.version || header.key_bytes > size - kFrame ||
      header.value_bytes != size - kFrame - header.key_bytes)
    return {};
  if (uses && s.st_mtime < std::time(nullptr) - kTouchedEvery) futimens(file.fd(), nullptr);
  return Entry{bytes.substr(sizeof header, header.key_bytes),
               bytes.substr(sizeof header + header.key_bytes, header.value_bytes)};
}

std::string file_of(std::string_view key, std::string_view value) {
  Header header;
  header.key_bytes = key.size();
  header.value_bytes = value.size();
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(key).append(value);
  const Hash128 checksum = hash_bytes(bytes);
  return bytes.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
}

std::string name_of(std::string_view key) {
  return to_string(hash_bytes(key)) + std::string(kSuffix);
}

// Our files in a folder, and nothing else that may lie there.
struct Found {
  std::string name;
  uint64_t bytes = 0;
  time_t used = 0;
  bool temporary = false;
};

std::vector<Found> list(const File& folder) {
  std::vector<Found> all;
  DIR* dir = fdopendir(openat(folder.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir == nullptr) return all;
  while (const dirent* item = readdir(dir)) {
    const std::string_view name = item->d_name;
    constexpr size_t kDigits = 32;
    const bool temporary = name.ends_with(kTemporarySuffix);
    if (name.find_first_not_of("0123456789abcdef") != kDigits ||
        name.substr(kDigits) != (temporary ? kTemporarySuffix : kSuffix))
      continue;
    struct stat s;
    if (fstatat(folder.fd(), item->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode))
      continue;
    all.push_back({std::string(name), static_cast<uint64_t>(s.st_size), s.st_mtime, temporary});
  }
  closedir(dir);
  return all;
}

// Removes abandoned temporaries, and makes room by removing the entries whose last use is longest
// ago.
void tidy(const File& folder, uint64_t most_bytes, uint64_t room) {
  std::vector<Found> files = list(folder);
  uint64_t total = room;
  const time_t now = std::time(nullptr);
  std::erase_if(files, [&](const Found& f) {
    if (f.temporary && f.used < now - kAbandonedAfter)
      unlinkat(folder.fd(), f.name.c_str(), 0);
    else
      total += f.bytes;
    return f.temporary;
  });
  if (total <= most_bytes) return;
  std::ranges::sort(files, {}, &Found::used);
  for (const Found& f : files) {
    if (total <= most_bytes - most_bytes / kLargestShare) return;
    if (unlinkat(folder.fd(), f.name.c_str(), 0) == 0) total -= f.bytes;
  }
}

uint64_t seed() noexcept {
  try {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  } catch (const std::exception&) {  // no source of entropy: other processes differ by number
    return static_cast<uint64_t>(getpid()) << 32 ^ static_cast<uint64_t>(std::clock());
  }
}

std::string_view variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

uint64_t size_from(std::string_view text) {
  if (text.empty()) return kDefaultBytes;
  uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), bytes);
  const std::string_view unit(end, text.end());
  const size_t power = unit.empty()       ? 0
                       : unit.size() == 1 ? std::string_view("KMG").find(unit) + 1
                                          : 0;
  if (error != std::errc() || (power == 0 && !unit.empty()) ||
      __builtin_mul_overflow(bytes, uint64_t{1} << (10 * power), &bytes))
    throw LaunchError(Diagnostic{
        .message = "PICOKERNEL_CACHE_SIZE is '" + std::string(text) + "'",
        .notes = {"it takes a number of bytes, such as 512M or 2G; 0 keeps nothing on disk"}});
  return bytes;
}

}  // namespace

DiskCache::DiskCache(std::string folder, uint64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {}

std::optional<std::string> DiskCache::load(std::string_view key) const {
  if (most_bytes_ == 0) return {};
  std::string problem;
  const File folder = open_folder(folder_, problem);
  std::optional<Entry> entry;
  if (folder) entry = read_entry(folder, name_of(key), true);
  if (!entry || entry->key != key) return {};
  return std::move(entry->value);
}

std::string DiskCache::store(std::string_view key, std::string_view value) const {
  const std::string bytes = file_of(key, value);
  if (bytes.size() > most_bytes_ / kLargestShare) return {};
  if (folder_.empty()) return "there is no folder for it: HOME is not set";
  make_folders(folder_);
  std::string problem;
  const File folder = open_folder(folder_, problem);
  if (!folder) return folder_ + ": " + problem;

  std::mt19937_64 random(seed());
  // Every byte stored, by whatever process, has the same chance to bring about a look at the whole
  // folder.
  const double chance =
      static_cast<double>(bytes.size()) / (kTidiedEvery * static_cast<double>(most_bytes_));
  if (std::uniform_real_distribution<double>()(random) < chance)
    tidy(folder, most_bytes_, bytes.size());

  const uint64_t number = random();
  const std::string temporary =
      to_string(hash_bytes({reinterpret_cast<const char*>(&number), sizeof number})) +
      std::string(kTemporarySuffix);
  File file(openat(folder.fd(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                   S_IRUSR | S_IWUSR));
  const auto write = [](int fd, const char* from, size_t n) { return ::write(fd, from, n); };
  if (file && transfer<const char>(write, file, bytes.data(), bytes.size()) && file.close() &&
      renameat(folder.fd(), temporary.c_str(), folder.fd(), name_of(key).c_str()) == 0)
    return {};
  if (errno == ENOENT) return {};  // somebody has cleared the folder just now
  problem = last_error();
  unlinkat(folder.fd(), temporary.c_str(), 0);
  return folder_ + ": " + problem;
}

std::vector<std::string> DiskCache::keys() const {
  std::vector<std::string> keys;
  std::string problem;
  const File folder = open_folder(folder_, problem);
  if (!folder || most_bytes_ == 0) return keys;
  for (const Found& f : list(folder))
    if (!f.temporary)
      if (auto entry = read_entry(folder, f.name, false)) keys.push_back(std::move(entry->key));
  return keys;
}

DiskCache::Contents DiskCache::contents() const {
  Contents sum;
  if (const File folder = open_folder(folder_, sum.problem))
    for (const Found& f : list(folder)) {
      sum.entries += f.temporary ? 0 : 1;
      sum.bytes += f.bytes;
    }
  else if (access(folder_.c_str(), F_OK) != 0)
    sum.problem.clear();  // the first kernel makes it
  return sum;
}

uint64_t DiskCache::clear() const {
  uint64_t removed = 0;
  std::string problem;
  if (const File folder = open_folder(folder_, problem))
    for (const Found& f : list(folder))
      if (unlinkat(folder.fd(), f.name.c_str(), 0) == 0 && !f.temporary) ++removed;
  return removed;
}

DiskCache user_disk_cache() {
  const uint64_t bytes = size_from(variable("PICOKERNEL_CACHE_SIZE"));
  if (const auto folder = variable("PICOKERNEL_CACHE_DIR"); !folder.empty())
    return {std::string(folder), bytes};
  if (const auto caches = variable("XDG_CACHE_HOME"); caches.starts_with('/'))
    return {std::string(caches) + "/picokernel", bytes};
  const std::string_view home = variable("HOME");
  return {home.empty() ? "" : std::string(home) + "/.cache/picokernel", bytes};
}

}  // namespace picokernel::runtime
