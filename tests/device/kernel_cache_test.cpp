// The cache of compiled kernels: what is kept comes back whole or not at all, whoever else uses it.

#include "kernel_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "scratch.hpp"
#include "tegula/device/error.hpp"

namespace tegula::device {
namespace {

namespace fs = std::filesystem;
using tegula::testing::message_of;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr std::uint64_t kPlenty = 1 << 30;

KernelKey key(std::string name) {
  return {std::move(name), "sm_90a", "NVRTC 13.0", "--std=c++20", "abc", "struct Kernel {};\n"};
}

/// A cubin stands for any bytes.
std::string cubin(int size, char first = '\0') {
  std::string bytes(static_cast<std::size_t>(size), first);
  for (std::size_t i = 1; i < bytes.size(); ++i) bytes[i] = static_cast<char>(bytes[i - 1] * 5 + 3);
  return bytes;
}

class KernelCacheTest : public ::testing::Test {
 protected:
  testing::Scratch scratch_;
  std::string folder_ = scratch_.path("kernels");
  KernelCache cache_{folder_, kPlenty};

  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (auto const& entry : fs::directory_iterator(folder_)) all.push_back(entry.path());
    return all;
  }
};

void write(std::string const& path, std::string const& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST_F(KernelCacheTest, GivesBackWhatItWasGiven) {
  EXPECT_EQ(cache_.load(key("a")), std::nullopt);
  for (int size : {1, 7, 8, 9, 100000}) {
    cache_.store(key("a"), cubin(size));
    EXPECT_THAT(cache_.load(key("a")), Optional(cubin(size)));
  }
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(KernelCacheTest, EveryPartOfTheKeyTellsKernelsApart) {
  KernelKey const all = key("a");
  cache_.store(all, cubin(10));
  for (auto const part : {&KernelKey::name, &KernelKey::arch, &KernelKey::compiler,
                          &KernelKey::options, &KernelKey::headers, &KernelKey::source}) {
    KernelKey other = all;
    other.*part += "x";
    EXPECT_EQ(cache_.load(other), std::nullopt);
  }
}

TEST_F(KernelCacheTest, ADamagedFileIsNotRead) {
  cache_.store(key("a"), cubin(40));
  std::string const path = cache_.path(key("a"));
  std::string const whole = testing::contents(path);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 1);
    write(path, bytes);
    EXPECT_EQ(cache_.load(key("a")), std::nullopt) << "byte " << i;
    write(path, whole.substr(0, i));
    EXPECT_EQ(cache_.load(key("a")), std::nullopt) << i << " bytes";
    EXPECT_TRUE(cache_.list().empty());
  }
  write(path, whole + "x");
  EXPECT_EQ(cache_.load(key("a")), std::nullopt);
  cache_.store(key("a"), cubin(40));  // compiled again
  EXPECT_THAT(cache_.load(key("a")), Optional(cubin(40)));
}

TEST_F(KernelCacheTest, AFileUnderAnotherKernelsNameIsNotTakenForIt) {
  cache_.store(key("a"), cubin(40));
  fs::copy_file(cache_.path(key("a")), cache_.path(key("b")));
  EXPECT_EQ(cache_.load(key("b")), std::nullopt);
}

TEST_F(KernelCacheTest, IsBoundedAndKeepsWhatWasUsedLast) {
  KernelCache const small(folder_, 3500);
  for (char const* name : {"a", "b", "c"}) {
    small.store(key(name), cubin(1000));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the file system's clock
  }
  EXPECT_TRUE(small.load(key("a")));
  small.store(key("d"), cubin(1000));
  EXPECT_TRUE(small.load(key("a")));
  EXPECT_FALSE(small.load(key("b")));
  EXPECT_TRUE(small.load(key("d")));
}

TEST_F(KernelCacheTest, ListsWhatIsKept) {
  cache_.store(key("b"), cubin(20));
  cache_.store(key("a"), cubin(30));
  std::vector<CachedKernel> const all = cache_.list();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "a");
  EXPECT_EQ(all[0].bytes, 30u);
  EXPECT_EQ(all[1].arch, "sm_90a");
  EXPECT_EQ(all[1].compiler, "NVRTC 13.0");
}

TEST_F(KernelCacheTest, ANoteIsNoKernel) {
  KernelKey const note = {.name = "a note", .compiler = "c"};
  cache_.store(note, "13.0");
  EXPECT_THAT(cache_.load(note), Optional(std::string("13.0")));
  EXPECT_TRUE(cache_.list().empty());
}

TEST_F(KernelCacheTest, WhatCannotBeWrittenIsSaidAndLeavesNothing) {
  fs::create_directories(folder_ + "/in_the_way");
  std::string const file = folder_ + "/in_the_way/file";
  write(file, "");
  EXPECT_THAT(
      message_of<device_error>([&] { KernelCache(file, kPlenty).store(key("a"), cubin(10)); }),
      HasSubstr("TEGULA_CACHE"));
  KernelCache("", kPlenty).store(key("a"), cubin(10));  // no place: nothing is kept
  EXPECT_EQ(KernelCache("", kPlenty).load(key("a")), std::nullopt);
}

/// Stores and loads kernels of the same names again and again; false where one came back wrong.
bool use(KernelCache const& cache, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    for (char name = 'a'; name < 'e'; ++name) {
      std::string const bytes = cubin(20000, name);
      auto const kept = cache.load(key({name}));
      if (kept && *kept != bytes) return false;
      if (!kept || i % 3 == 0) cache.store(key({name}), bytes);
    }
  }
  return true;
}

TEST_F(KernelCacheTest, ProcessesAndThreadsShareIt) {
  KernelCache const cache(folder_, 3 * 20500);  // kernels come and go
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    pid_t const child = fork();
    if (child == 0) _exit(use(cache, 50) ? 0 : 1);
    children.push_back(child);
  }
  std::vector<int> right(4);
  {
    std::vector<std::jthread> threads;
    for (int& result : right) threads.emplace_back([&] { result = use(cache, 50); });
  }
  EXPECT_THAT(right, ::testing::Each(1));
  for (pid_t const child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  for (fs::path const& file : files()) EXPECT_EQ(file.extension(), ".kernel") << file;
}

TEST_F(KernelCacheTest, AProcessThatIsKilledLeavesNoFalseKernel) {
  pid_t const child = fork();
  if (child == 0) {
    use(cache_, 1 << 20);
    _exit(0);
  }
  while (!cache_.load(key("d"))) std::this_thread::yield();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(use(cache_, 2));
}

}  // namespace
}  // namespace tegula::device
