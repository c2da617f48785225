#pragma once

/// Cases of arguments that an entry point must refuse, each by a sentence of its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "scratch.hpp"
#include "tegula/device/arguments.hpp"

namespace tegula::testing {

template <class Arguments> struct Case {
  char const* what;
  std::function<void(Arguments&)> change;
  std::vector<std::string> parts;  ///< of the sentence
};

template <class Arguments>
void expect_refused(Arguments (*good)(), std::vector<Case<Arguments>> const& cases,
                    std::string const& operation) {
  ASSERT_NO_THROW(check(good(), 90));
  std::set<std::string> sentences;
  for (auto const& c : cases) {
    SCOPED_TRACE(c.what);
    auto arguments = good();
    c.change(arguments);
    auto const sentence = message_of<argument_error>([&] { check(arguments, 90); });
    EXPECT_THAT(sentence, ::testing::StartsWith(operation + ": "));
    EXPECT_EQ(sentence.back(), '.');
    for (auto const& part : c.parts) EXPECT_THAT(sentence, ::testing::HasSubstr(part));
    EXPECT_TRUE(sentences.insert(sentence).second)
        << "another case has the same sentence: " << sentence;
  }
}

}  // namespace tegula::testing
