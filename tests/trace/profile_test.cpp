// The public profile.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include <picokernel/diagnostic.h>
#include <picokernel/profile.h>

#include "trace/chrome_json.h"
#include "trace/trace.h"

namespace picokernel {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

class ProfileTest : public testing::Test {
 protected:
  ProfileTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("pk_profile_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ProfileTest() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(ProfileTest, WritesALegalTraceOfTheUsersSteps) {
  const auto path = folder_ / "trace.json";
  {
    const Profile profile(path.string());
    const Span outer("my step");
    const Span inner("größer \"inner\" step\n");
  }
  // The profile was made first, so it ends last and sees both spans.
  const std::string text = read(path);
  EXPECT_EQ(trace::check_chrome_json(text), std::vector<std::string>{});
  EXPECT_NE(text.find("\"name\":\"my step\",\"cat\":\"user\""), std::string::npos) << text;
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".partial"));
}

TEST_F(ProfileTest, TableEventsAndSaveAtAnyTime) {
  Profile profile;
  {
    const Span step("step");
  }
  EXPECT_EQ(profile.events().size(), 1u);
  {
    const Span step("step");
  }
  profile.stop();
  profile.stop();
  {
    const Span step("after the stop");
  }
  ASSERT_EQ(profile.events().size(), 2u);
  EXPECT_EQ(profile.events()[0].name, "step");
  EXPECT_EQ(profile.events()[0].category, "user");
  EXPECT_NE(profile.table().find("step"), std::string::npos);
  EXPECT_EQ(profile.dropped(), 0u);
  profile.save((folder_ / "later.json").string());
  EXPECT_TRUE(trace::check_chrome_json(read(folder_ / "later.json")).empty());
}

TEST_F(ProfileTest, LinesReadFiles) {
  const auto path = folder_ / "kernel.cpp";
  std::ofstream(path) << "first\n  fma = kernel(a * b);\n";
  const trace::Work work{.location = trace::intern(path.string() + ":2:3")};
  Profile profile;
  {
    const trace::KernelSpan call(trace::Category::call, trace::intern("fma"), work);
  }
  profile.stop();
  EXPECT_NE(profile.lines().find("kernel.cpp:2 "), std::string::npos) << profile.lines();
  EXPECT_NE(profile.lines().find("  fma = kernel(a * b);\n"), std::string::npos);
  EXPECT_EQ(profile.lines([](const std::string&, int64_t) { return ""; }).find("kernel(a"),
            std::string::npos);
}

TEST_F(ProfileTest, PathThatCannotBeWrittenIsAnError) {
  Profile profile((folder_ / "no" / "such" / "folder.json").string());
  {
    const Span step("step");
  }
  try {
    profile.stop();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("folder.json"), std::string::npos);
  }
  EXPECT_EQ(profile.events().size(), 1u);  // nothing is lost by it
}

TEST_F(ProfileTest, SplitProfilesSayThatTheyAreIntrusive) {
  Profile profile({}, true);
  EXPECT_TRUE(trace::splitting());
  profile.stop();
  EXPECT_FALSE(trace::splitting());
  EXPECT_TRUE(profile.table().starts_with("intrusive, split: "));
  Profile plain;
  {
    const Span step("step");
  }
  plain.stop();
  EXPECT_EQ(plain.table().find("intrusive"), std::string::npos);
  const Profile both = Profile::merge(plain, profile);
  EXPECT_TRUE(both.table().starts_with("intrusive, split: "));
  both.save((folder_ / "both.json").string());
  EXPECT_NE(read(folder_ / "both.json").find("\"intrusive\":\"split: "), std::string::npos);
}

TEST_F(ProfileTest, MergedProfilesLieSideBySide) {
  Profile first;
  {
    const Span step("a");
  }
  first.stop();
  Profile second;
  {
    const Span step("b");
  }
  second.stop();
  const Profile both = Profile::merge(first, second, "second");
  ASSERT_EQ(both.events().size(), 2u);
  EXPECT_NE(both.events()[0].pid, both.events()[1].pid);
  EXPECT_EQ(both.events()[1].process, "host (second)");
  both.save((folder_ / "both.json").string());
  EXPECT_TRUE(trace::check_chrome_json(read(folder_ / "both.json")).empty());
}

}  // namespace
}  // namespace picokernel
