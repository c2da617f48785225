#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run_tool.hpp"

/// `--bank-conflicts` and `--excess-sectors`: what an access may cost, in place of what the
/// kernel declares.
namespace tegula::tool_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::SizeIs;

/// gemm_sm90 declares two bank conflicts for each store of a D of f32.
Words const kF32 = {"gemm", "--device", "sim",       "--m",     "64",   "--n",   "64",
                    "--k",  "64",       "--trans-b", "--dtype", "bf16", "--out", "f32"};
/// gemm_sm80's lanes copy one element each, in rows that do not begin at a sector.
Words const kElements = {"gemm", "--device", "sim", "--m", "20", "--n", "36", "--k", "149"};

json findings(Words const& words) {
  Outcome const outcome = run_tool(words + Words{"--json"});
  json const findings = json::parse(outcome.out)["report"]["findings"];
  EXPECT_EQ(outcome.status, findings.empty() ? 0 : 1) << outcome.err;
  return findings;
}

TEST(BankConflictsOption, TakesThePlaceOfWhatTheKernelDeclares) {
  EXPECT_THAT(findings(kF32), SizeIs(0));
  EXPECT_THAT(findings(kF32 + Words{"--bank-conflicts", "2"}), SizeIs(0));
  json const found = findings(kF32 + Words{"--bank-conflicts", "1"});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0]["kind"], "bank_conflicts");
  EXPECT_EQ(found[0]["buffer"], "D");
  EXPECT_GE(found[0]["count"], 64 * 64 / (32 * 2)) << "each store of 32 x 2 elements";
  EXPECT_THAT(
      found[0]["message"].get<std::string>(),
      HasSubstr(
          "st.shared of 8 bytes by 32 lanes takes 4 passes over the banks of shared memory, 2 more "
          "than it needs, where 1 more is declared: lanes 2 and 4 ask bank 4 for row 0, column 4 "
          "of stage"));
}

TEST(LimitOptions, FindTheSameAtEverySchedule) {
  auto const found = [](Words const& schedule) {
    Words const limits = {"--bank-conflicts", "0", "--excess-sectors", "0"};
    std::vector<std::string> keys;
    for (json const& f : findings(kElements + limits + schedule))
      keys.push_back(f["kind"].dump() + f["where"].dump() + f["buffer"].dump() + f["count"].dump());
    std::sort(keys.begin(), keys.end());
    return keys;
  };
  std::vector<std::string> const expected = found({});
  EXPECT_FALSE(expected.empty());
  for (char const* const seed : {"1", "2", "3"})
    EXPECT_EQ(found({"--scheduler", "random", "--seed", seed}), expected) << seed;
}

TEST(ExcessSectorsOption, FindsAccessesThatTouchMore) {
  EXPECT_THAT(findings(kElements), SizeIs(0)) << "gemm_sm80 declares nothing";
  EXPECT_THAT(findings(kElements + Words{"--excess-sectors", "31"}), SizeIs(0));
  json const found = findings(kElements + Words{"--excess-sectors", "0"});
  ASSERT_FALSE(found.empty());
  for (json const& finding : found) {
    EXPECT_EQ(finding["kind"], "uncoalesced");
    EXPECT_THAT(finding["message"].get<std::string>(),
                HasSubstr("more than its bytes need, where 0 more are declared: lane 0 is at "));
  }
}

TEST(LimitOptions, RefuseWhatIsNoNumberOfThem) {
  for (std::string const option : {"--bank-conflicts", "--excess-sectors"}) {
    for (std::string const value :
         {"-1", "", "1.5", "two", "0x2", "2147483648", "99999999999999999999"}) {
      for (Words const& command : {kElements, Words{"attention", "--device", "sim"}}) {
        Outcome const outcome = run_tool(command + Words{option, value});
        EXPECT_EQ(outcome.status, 2);
        EXPECT_EQ(outcome.out, "");
        EXPECT_EQ(outcome.err, "tegula: " + option + ": '" + value +
                                   "' is not a whole number from 0 to 2147483647 (see `tegula " +
                                   command[0] + " --help`)\n");
      }
    }
  }
}

}  // namespace
}  // namespace tegula::tool_test
