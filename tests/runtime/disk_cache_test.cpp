// Entries on disk: there as a whole, or not at all.
#include "runtime/disk_cache.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <picokernel/diagnostic.h>

#include "runtime/folder.h"
#include "support/build_id.h"
#include "support/hash.h"

namespace picokernel::runtime {
namespace {

namespace fs = std::filesystem;
using Clock = fs::file_time_type::clock;
using std::chrono::hours;

constexpr uint64_t kMost = 1 << 20;

class DiskCacheTest : public ::testing::Test {
 protected:
  DiskCache open(uint64_t most = kMost) const {
    return {(folder_.path() / "cache").string(), most};
  }
  fs::path file(std::string_view key) const {
    return folder_.path() / "cache" / (to_string(hash_bytes(key)) + ".pkcache");
  }
  size_t files() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_.path() / "cache"))
      ++count;
    return count;
  }
  static std::string read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  static void write(const fs::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  const TemporaryFolder folder_;
};

TEST_F(DiskCacheTest, GivesBackWhatWasStored) {
  EXPECT_EQ(open().load("key"), std::nullopt);
  EXPECT_EQ(open().store("key", "value"), "");
  EXPECT_EQ(open().store("another", std::string(1000, '\0')), "");
  EXPECT_EQ(open().load("key"), "value");
  EXPECT_EQ(open().load("another"), std::string(1000, '\0'));
  EXPECT_EQ(open().load("ke"), std::nullopt);
  EXPECT_EQ(open().store("key", ""), "");
  EXPECT_EQ(open().load("key"), "");
  EXPECT_EQ(open().contents().entries, 2u);
  EXPECT_EQ(files(), 2u);
  std::vector<std::string> keys = open().keys();
  std::ranges::sort(keys);
  EXPECT_EQ(keys, (std::vector<std::string>{"another", "key"}));
}

TEST_F(DiskCacheTest, IsTheUsersAlone) {
  ASSERT_EQ(open().store("key", "value"), "");
  EXPECT_EQ(fs::status(folder_.path() / "cache").permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(file("key")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(DiskCacheTest, TruncatedAtAnyLengthIsAMiss) {
  ASSERT_EQ(open().store("key", "some value"), "");
  const std::string whole = read(file("key"));
  for (size_t size = 0; size < whole.size(); ++size) {
    write(file("key"), whole.substr(0, size));
    ASSERT_EQ(open().load("key"), std::nullopt) << size;
  }
  write(file("key"), whole + '\0');
  EXPECT_EQ(open().load("key"), std::nullopt);
  write(file("key"), whole);
  EXPECT_EQ(open().load("key"), "some value");
}

TEST_F(DiskCacheTest, AnyFlippedBitIsAMiss) {
  ASSERT_EQ(open().store("key", "some value"), "");
  std::string bytes = read(file("key"));
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    const auto flip = [&] { bytes[i / 8] = static_cast<char>(bytes[i / 8] ^ (1 << i % 8)); };
    flip();
    write(file("key"), bytes);
    ASSERT_EQ(open().load("key"), std::nullopt) << "bit " << i;
    flip();
  }
}

// Right checksums over wrong contents: a file of another version, and lengths that do not fit.
TEST_F(DiskCacheTest, AnyOtherHeaderIsAMiss) {
  ASSERT_EQ(open().store("key", "some value"), "");
  const std::string whole = read(file("key"));
  for (size_t i = 0; i < 32; ++i) {  // magic, version, lengths
    std::string bytes = whole.substr(0, whole.size() - sizeof(Hash128));
    bytes[i] = static_cast<char>(bytes[i] ^ 0x80);
    const Hash128 checksum = hash_bytes(bytes);
    write(file("key"), bytes.append(reinterpret_cast<const char*>(&checksum), sizeof checksum));
    ASSERT_EQ(open().load("key"), std::nullopt) << "byte " << i;
  }
}

TEST_F(DiskCacheTest, AnotherKeyUnderTheSameNameIsAMiss) {
  ASSERT_EQ(open().store("key", "value"), "");
  fs::rename(file("key"), file("other"));
  EXPECT_EQ(open().load("other"), std::nullopt);
}

TEST_F(DiskCacheTest, WhatIsNoPlainFileIsAMiss) {
  ASSERT_EQ(open().store("key", "value"), "");
  fs::rename(file("key"), folder_.path() / "target");
  fs::create_symlink(folder_.path() / "target", file("key"));
  EXPECT_EQ(open().load("key"), std::nullopt);
  EXPECT_EQ(open().store("key", "new"), "");  // in place of the link, not through it
  EXPECT_EQ(open().load("key"), "new");
  fs::remove(file("key"));

  ASSERT_EQ(mkfifo(file("key").c_str(), 0600), 0);
  EXPECT_EQ(open().load("key"), std::nullopt);  // and nobody waits for a writer
  fs::remove(file("key"));

  fs::create_directories(file("key") / "in it");
  EXPECT_EQ(open().load("key"), std::nullopt);
  EXPECT_NE(open().store("key", "value"), "");
  EXPECT_EQ(files(), 1u);  // the temporary is gone
}

TEST_F(DiskCacheTest, WhatOthersMayHaveWrittenIsAMiss) {
  ASSERT_EQ(open().store("key", "value"), "");
  for (const mode_t mode : {0620, 0602}) {
    chmod(file("key").c_str(), mode);
    EXPECT_EQ(open().load("key"), std::nullopt);
  }
  chmod(file("key").c_str(), 0644);
  EXPECT_EQ(open().load("key"), "value");

  for (const mode_t mode : {0720, 0702}) {
    chmod((folder_.path() / "cache").c_str(), mode);
    EXPECT_EQ(open().load("key"), std::nullopt);
    EXPECT_NE(open().store("key", "value").find("others can write to it"), std::string::npos);
  }
}

TEST_F(DiskCacheTest, OtherUsersFilesAndFoldersAreMisses) {
  ASSERT_EQ(open().store("key", "value"), "");
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(chown(file("key").c_str(), 12345, 12345), 0);
  EXPECT_EQ(open().load("key"), std::nullopt);
  EXPECT_EQ(open().store("key", "mine"), "");
  EXPECT_EQ(open().load("key"), "mine");
  ASSERT_EQ(chown((folder_.path() / "cache").c_str(), 12345, 12345), 0);
  EXPECT_EQ(open().load("key"), std::nullopt);
  EXPECT_NE(open().store("key", "value").find("belongs to another user"), std::string::npos);
}

TEST_F(DiskCacheTest, SaysWhyNothingIsStored) {
  EXPECT_NE(DiskCache("", kMost).store("key", "value").find("HOME is not set"), std::string::npos);
  write(folder_.path() / "file", "");
  const std::string path = folder_.path() / "file" / "cache";
  EXPECT_EQ(DiskCache(path, kMost).store("key", "value"), path + ": Not a directory");
  EXPECT_EQ(DiskCache(path, kMost).load("key"), std::nullopt);
}

TEST_F(DiskCacheTest, AFullDiskLeavesNothing) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};  // writing more fails as on a full disk, in the middle
    setrlimit(RLIMIT_FSIZE, &limit);
    const bool told = open().store("key", std::string(10000, 'x')).ends_with("File too large");
    _exit(told && files() == 0 && open().store("key", "short").empty() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(open().load("key"), "short");
}

TEST_F(DiskCacheTest, TheLeastRecentlyUsedMakeRoom) {
  constexpr uint64_t kEntry = 6000;
  const auto key = [](int i) { return "key " + std::to_string(i); };
  const DiskCache cache = open(10 * kEntry);  // so small that each store looks at the folder
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(cache.store(key(i), std::string(kEntry, 'x')), "");
    fs::last_write_time(file(key(i)), Clock::now() - hours(100 - i));
  }
  EXPECT_TRUE(cache.load(key(0)));  // which makes it the last one used
  for (int i = 8; i < 20; ++i) {
    ASSERT_EQ(cache.store(key(i), std::string(kEntry, 'x')), "");
    EXPECT_LE(cache.contents().bytes, cache.most_bytes());
    fs::last_write_time(file(key(i)), Clock::now() - hours(50 - i));
    EXPECT_TRUE(cache.load(key(0)));
    EXPECT_EQ(cache.keys().size(), cache.contents().entries);  // looking at all uses none
  }
  EXPECT_GE(cache.contents().entries, 7u);
  EXPECT_TRUE(cache.load(key(19)));
  EXPECT_FALSE(cache.load(key(1)));
  EXPECT_EQ(cache.store("large", std::string(2 * kEntry, 'x')), "");
  EXPECT_FALSE(cache.load("large"));
}

TEST_F(DiskCacheTest, SizeZeroTouchesNothing) {
  EXPECT_EQ(open(0).store("key", "value"), "");
  EXPECT_FALSE(fs::exists(folder_.path() / "cache"));
  ASSERT_EQ(open().store("key", "value"), "");
  EXPECT_EQ(open(0).load("key"), std::nullopt);
}

TEST_F(DiskCacheTest, ClearRemovesWhatIsOurs) {
  ASSERT_EQ(open().store("key", "value"), "");
  for (const char* name : {"notes.txt", "tmp-results.csv", "d41d8cd98f00b204e9800998ecf8427e"})
    write(folder_.path() / "cache" / name, "the user's");
  write(folder_.path() / "cache" / (std::string(32, '0') + ".pkcache-tmp"),
        "left by a killed process");
  EXPECT_EQ(open().clear(), 1u);
  EXPECT_EQ(open().contents().bytes, 0u);
  EXPECT_EQ(files(), 3u);
}

// Eight processes on the same keys, killed at any moment, over and over.
TEST_F(DiskCacheTest, KilledWritersLeaveTemporariesAtMost) {
  const auto value = [](int i) { return std::string(300'000, static_cast<char>('a' + i)); };
  const DiskCache cache = open(uint64_t{64} << 20);
  const auto whole_or_absent = [&](int i) {
    const auto found = cache.load(std::to_string(i));
    EXPECT_TRUE(!found || *found == value(i));
  };
  for (int round = 0; round < 10; ++round) {
    std::vector<pid_t> children;
    for (int c = 0; c < 8; ++c) {
      children.push_back(fork());
      if (children.back() == 0)
        for (int i = c;; i = (i + 1) % 8)
          static_cast<void>(cache.store(std::to_string(i), value(i)));
    }
    for (int looks = 0; looks < 20; ++looks)
      for (int i = 0; i < 8; ++i) whole_or_absent(i);
    std::this_thread::sleep_for(std::chrono::milliseconds(round));
    for (const pid_t child : children) kill(child, SIGKILL);
    for (const pid_t child : children) waitpid(child, nullptr, 0);
  }
  for (int i = 0; i < 8; ++i) whole_or_absent(i);
  // What they left is removed by whoever stores, once it is old.
  std::ofstream(folder_.path() / "cache" / (std::string(32, '1') + ".pkcache-tmp")).put('x');
  for (const auto& entry : fs::directory_iterator(folder_.path() / "cache"))
    if (entry.path().filename().string().ends_with("-tmp"))
      fs::last_write_time(entry, Clock::now() - hours(1));
  EXPECT_EQ(open(80'000).store("small", std::string(8000, 'x')), "");
  for (const auto& entry : fs::directory_iterator(folder_.path() / "cache"))
    EXPECT_FALSE(entry.path().filename().string().ends_with("-tmp"));
}

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value != nullptr ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(UserDiskCache, IsWhereTheEnvironmentSays) {
  const Variable home("HOME", "/home/me"), none("PICOKERNEL_CACHE_DIR", nullptr);
  const Variable size("PICOKERNEL_CACHE_SIZE", nullptr);
  {
    const Variable caches("XDG_CACHE_HOME", nullptr);
    EXPECT_EQ(user_disk_cache().folder(), "/home/me/.cache/picokernel");
    EXPECT_EQ(user_disk_cache().most_bytes(), uint64_t{512} << 20);
  }
  const Variable caches("XDG_CACHE_HOME", "/var/caches");
  EXPECT_EQ(user_disk_cache().folder(), "/var/caches/picokernel");
  {
    const Variable relative("XDG_CACHE_HOME", "caches");  // which the standard tells us to ignore
    EXPECT_EQ(user_disk_cache().folder(), "/home/me/.cache/picokernel");
    const Variable nobody("HOME", nullptr);
    EXPECT_EQ(user_disk_cache().folder(), "");
  }
  const Variable own("PICOKERNEL_CACHE_DIR", "/data/kernels");
  EXPECT_EQ(user_disk_cache().folder(), "/data/kernels");
}

TEST(UserDiskCache, ReadsSizes) {
  const auto size = [](const char* text) {
    const Variable variable("PICOKERNEL_CACHE_SIZE", text);
    return user_disk_cache().most_bytes();
  };
  EXPECT_EQ(size("0"), 0u);
  EXPECT_EQ(size("1000"), 1000u);
  EXPECT_EQ(size("3K"), 3072u);
  EXPECT_EQ(size("2G"), uint64_t{2} << 30);
  for (const char* wrong :
       {"K", "-1", "1.5G", "512 M", "512MB", "99999999999G", "18446744073709551616"})
    EXPECT_THROW(size(wrong), LaunchError) << wrong;
}

TEST(BuildId, IsThatOfTheLibrary) {
  EXPECT_EQ(build_id().size(), 40u);
  EXPECT_EQ(build_id().find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace picokernel::runtime
