#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tegula::testing {

/// A folder of its own for one test, removed at the end.
class Scratch {
 public:
  Scratch() {
    auto const* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("tegula-") + info->test_suite_name() + "-" + info->name() + "-" +
               std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Scratch(Scratch const&) = delete;
  Scratch& operator=(Scratch const&) = delete;

  std::string path(std::string const& name) const { return (folder_ / name).string(); }

  /// Writes the bytes to a file and returns its path.
  std::string file(std::string const& name, std::string const& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

 private:
  std::filesystem::path folder_;
};

/// The bytes of a file.
inline std::string contents(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The text of the exception E that f must throw; a failed test otherwise.
template <class E, class F> std::string message_of(F&& f) {
  try {
    f();
  } catch (E const& error) {
    return error.what();
  } catch (std::exception const& error) {
    ADD_FAILURE() << "another exception was thrown: " << error.what();
    return {};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace tegula::testing
