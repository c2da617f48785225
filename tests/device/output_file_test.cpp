// The one writer: whole or not at all, whatever the target is.

#include "tegula/io/output_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "scratch.hpp"
#include "tegula/io/text.hpp"
#include "thorough.hpp"

namespace tegula::io {
namespace {

namespace fs = std::filesystem;
using tegula::testing::contents;
using tegula::testing::message_of;
using tegula::testing::Scratch;
using ::testing::HasSubstr;

std::set<std::string> files_in(fs::path const& folder) {
  std::set<std::string> names;
  for (auto const& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

TEST(Text, NounsBehindOneAreSingular) {
  EXPECT_EQ(counted(1, "tile"), "1 tile");
  EXPECT_EQ(counted(std::size_t{0}, "tile"), "0 tiles");
  EXPECT_EQ(counted(-1, "byte"), "-1 bytes");
  EXPECT_EQ(counted(std::uint64_t{1}, "axis", "axes"), "1 axis");
  EXPECT_EQ(counted(2, "axis", "axes"), "2 axes");
  EXPECT_EQ(noun(1, "thread"), "thread");
}

TEST(OutputFile, NothingIsThereBeforeCommit) {
  Scratch const scratch;
  std::string const path = scratch.path("a");
  {
    OutputFile file(path);
    file.write("abc");
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_TRUE(files_in(fs::path(path).parent_path()).empty())
      << "what is not committed leaves nothing";
  OutputFile file(path);
  file.write("abc");
  file.commit();
  EXPECT_EQ(contents(path), "abc");
  EXPECT_EQ(files_in(fs::path(path).parent_path()), std::set<std::string>{"a"});
}

TEST(OutputFile, KeepsModesAndLinks) {
  Scratch const scratch;
  std::string const file = scratch.file("file", "old");
  ASSERT_EQ(chmod(file.c_str(), 0640), 0);
  fs::create_directory(scratch.path("sub"));
  fs::create_symlink("../file", scratch.path("sub/link"));
  fs::create_symlink("sub/link", scratch.path("chain"));
  write_file(scratch.path("chain"), "new");
  EXPECT_EQ(contents(file), "new");
  EXPECT_TRUE(fs::is_symlink(scratch.path("chain")) && fs::is_symlink(scratch.path("sub/link")));
  struct stat status = {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
  fs::create_symlink("nowhere", scratch.path("dangling"));
  write_file(scratch.path("dangling"), "made");
  EXPECT_EQ(contents(scratch.path("nowhere")), "made");
  std::string const longest(255, 'n');
  write_file(scratch.path(longest), "long");
  EXPECT_EQ(contents(scratch.path(longest)), "long");
}

TEST(OutputFile, DevicesAndPipesAreWrittenThrough) {
  Scratch const scratch;
  write_file("/dev/null", "lost");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT(message_of<io_error>([] { write_file("/dev/full", "x"); }),
              HasSubstr("No space left"));
  std::string const pipe = scratch.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = contents(pipe); });
  write_file(pipe, "through");
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(OutputFile, RefusesWhatCannotBeWritten) {
  Scratch const scratch;
  fs::create_symlink("loop", scratch.path("loop"));
  std::string const folder = fs::path(scratch.path("x")).parent_path();
  for (std::string const& path : {folder, folder + "/", scratch.path("no/file"),
                                  scratch.path("loop"), scratch.path("new/"), std::string()}) {
    EXPECT_THAT(message_of<io_error>([&] { OutputFile file(path); }),
                HasSubstr("cannot be opened for writing"))
        << path;
    EXPECT_THAT(message_of<io_error>([&] {
                  check_targets({{"--output", path}});
                }),
                HasSubstr("--output"));
  }
}

TEST(OutputFile, TargetsAreDifferentFiles) {
  Scratch const scratch;
  std::string const file = scratch.file("file", "old");
  fs::create_symlink("file", scratch.path("link"));
  fs::create_hard_link(file, scratch.path("hard"));
  std::string const fresh = scratch.path("fresh");
  check_targets({{"--a", file}, {"--b", fresh}, {"--c", "/dev/null"}, {"--d", "/dev/null"}});
  for (std::string const& other :
       {file, scratch.path("link"), scratch.path("hard"), scratch.path("./file")}) {
    EXPECT_THAT(message_of<io_error>([&] {
                  check_targets({{"--svg", file}, {"--output", other}});
                }),
                HasSubstr("the file that --svg writes"));
    EXPECT_THAT(message_of<io_error>([&] {
                  check_targets({{"--output", other}}, {{"--a", file}});
                }),
                HasSubstr("the file that --a reads"));
  }
  EXPECT_THAT(message_of<io_error>([&] {
                check_targets({{"--svg", fresh}, {"--output", scratch.path("./fresh")}});
              }),
              HasSubstr("--output"));
  EXPECT_FALSE(fs::exists(fresh)) << "a check writes nothing";
}

TEST(OutputFile, APipeThatNobodyReadsFromIsRefused) {
  Scratch const scratch;
  std::string const pipe = scratch.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(message_of<io_error>([&] { write_file(pipe, "x"); }),
              HasSubstr("pipe: cannot be opened for writing: it is a pipe that nobody reads from"));
}

/// Mounts a file system of 256 KiB at the folder, for this process alone; whether it may.
bool mount_small(std::string const& folder) {
  if (unshare(CLONE_NEWNS) != 0) return false;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=256k") == 0;
}

/// What a child process that fills its own small file system finds wrong; 0: nothing.
int overfill(std::string const& folder) {
  std::string const path = folder + "/file", old(100000, 'o');
  write_file(path, old);
  try {
    write_file(path, std::string(1 << 20, 'x'));
    return 1;
  } catch (io_error const& error) {
    if (std::string(error.what()).find("No space left on device") == std::string::npos) return 2;
  }
  if (contents(path) != old || files_in(folder) != std::set<std::string>{"file"}) return 3;
  std::string const fitting(100001, 'n');  // what did not fit is gone, so this does
  write_file(path, fitting);
  return contents(path) == fitting && files_in(folder) == std::set<std::string>{"file"} ? 0 : 4;
}

TEST(OutputFile, AFullDiskLeavesTheOldFile) {
  constexpr int kMayNotMount = 77;
  Scratch const scratch;
  fs::create_directory(scratch.path("disk"));
  pid_t const child = fork();
  if (child == 0)
    _exit(mount_small(scratch.path("disk")) ? overfill(scratch.path("disk")) : kMayNotMount);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kMayNotMount)
    GTEST_SKIP() << "this process may not mount a file system of its own to fill";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(OutputFile, ALimitOnTheSizeOfFilesLeavesTheOldFile) {
  Scratch const scratch;
  std::string const path = scratch.file("file", "old");
  pid_t const child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    rlimit const limit = {1 << 16, 1 << 16};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file(path, std::string(1 << 20, 'x'));
      _exit(1);
    } catch (io_error const& error) {
      _exit(std::string(error.what()).find("writing failed") == std::string::npos ? 2 : 0);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(files_in(fs::path(path).parent_path()), std::set<std::string>{"file"});
}

TEST(OutputFile, AKilledWriterLeavesAWholeFile) {
  Scratch const scratch;
  std::string const path = scratch.file("file", std::string(1 << 20, 'a'));
  for (int round = 0; round < thorough_or(100, 30); ++round) {
    pid_t const child = fork();
    if (child == 0) {
      for (char c = 'a';; c = c == 'z' ? 'a' : static_cast<char>(c + 1))
        write_file(path, std::string(1 << 20, c));
    }
    usleep(static_cast<useconds_t>(500 + 137 * round % 5000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    std::string const text = contents(path);
    ASSERT_EQ(text.size(), 1u << 20);
    ASSERT_EQ(text.find_first_not_of(text[0]), std::string::npos);
  }
}

TEST(OutputFile, AReaderBesideTenWritersSeesWholeFiles) {
  Scratch const scratch;
  std::string const path = scratch.file("file", std::string(1 << 16, 'a'));
  std::atomic<bool> done = false;
  std::vector<std::thread> writers;
  for (int i = 0; i < 10; ++i) {
    writers.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round)
        write_file(path, std::string(1 << 16, static_cast<char>('a' + i)));
    });
  }
  std::thread reader([&] {
    while (!done) {
      std::string const text = contents(path);
      EXPECT_EQ(text.size(), 1u << 16);
      EXPECT_EQ(text.find_first_not_of(text[0]), std::string::npos);
    }
  });
  for (auto& writer : writers) writer.join();
  done = true;
  reader.join();
  EXPECT_EQ(files_in(fs::path(path).parent_path()), std::set<std::string>{"file"});
}

TEST(Text, IsCutAndEscapedInSentences) {
  EXPECT_EQ(in_quotes("x.npy"), "'x.npy'");
  EXPECT_EQ(in_quotes("a\n\x1b[0m\x7f"), "'a\\x0a\\x1b[0m\\x7f'");
  EXPECT_EQ(in_quotes("\xc3\xa9\xc2\x9b\xff\xe2\x82"), "'\xc3\xa9\\xc2\\x9b\\xff\\xe2\\x82'");
  EXPECT_EQ(in_quotes(std::string(101, 'x')), "'" + std::string(100, 'x') + "...'");
  EXPECT_EQ(json_depth(R"({"a[[[":[1,{"b":"\"]"}]})"), 3);
  EXPECT_EQ(json_depth(std::string(100000, '[')), 100000);
}

}  // namespace
}  // namespace tegula::io
