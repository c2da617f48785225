// The tool as a process: standard streams that are closed or full, readers that go away, kill -9
// while writing, and command lines as a hostile user would write them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run_tool.hpp"

namespace tegula::tool_test {
namespace {

using ::testing::HasSubstr;

TEST(Process, OutputThatIsLostIsAnError) {
  TemporaryFolder const folder;
  Outcome const full = run_shell("tegula layout '(4,8)' >/dev/full", folder.path());
  EXPECT_EQ(full.status, 1);
  EXPECT_THAT(full.err, HasSubstr("cannot write standard output: No space left on device"));
  Outcome const closed = run_shell("tegula layout '(4,8)' >&-", folder.path());
  EXPECT_EQ(closed.status, 1);
  EXPECT_THAT(closed.err, HasSubstr("cannot write standard output"));
  Outcome const help = run_shell("tegula --help >/dev/full", folder.path());
  EXPECT_EQ(help.status, 1);
  Outcome const batch = run_shell(
      "printf '{\"id\":1,\"expr\":\"4\"}\\n' | tegula layout --batch - >/dev/full", folder.path());
  EXPECT_EQ(batch.status, 1);
}

TEST(Process, AFileBeyondTheLimitOfItsSizeIsNoSignal) {
  TemporaryFolder const folder;
  write(folder / "a.svg", "old");
  Outcome const outcome =
      run_shell("ulimit -f 1; tegula layout '(64,64)' --svg a.svg", folder.path());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("--svg a.svg: writing failed: File too large"));
  EXPECT_EQ(read(folder / "a.svg"), "old");
  EXPECT_EQ(run_shell("ulimit -f 0; tegula layout 8 >a.txt", folder.path()).status, 1);
}

TEST(Process, ThreadsThatTheSystemDoesNotStartAreDoneWithout) {
  TemporaryFolder const folder;
  // A thread's stack would be larger than the address space.
  std::string const no_threads = "ulimit -s 1000000000000 2>/dev/null || exit 77; ";
  std::string const gemm = "tegula gemm --m 256 --n 256 --k 64 --trans-b --device sim --workers 4";
  Outcome const outcome = run_shell(no_threads + gemm, folder.path());
  if (outcome.status == 77) GTEST_SKIP() << "the size of stacks is limited here";
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  // The clusters of this one wait for each other.
  Outcome const cooperative =
      run_shell(no_threads + gemm +
                    " --arch sm100 --kernel sm100 --config $(tegula info | awk '/gemm_sm100 "
                    "bf16->bf16 A:k B:k .* launch control/ && $4 == \"yes\" {print $1; exit}')",
                folder.path());
  EXPECT_EQ(cooperative.status, 1);
  EXPECT_THAT(cooperative.err, HasSubstr("need a host thread each, and the system starts 0"));
}

TEST(Process, ALongLaunchShowsOnATerminalThatItRuns) {
  TemporaryFolder const folder;
  Outcome const outcome = run_shell(
      "command -v script >/dev/null || exit 77; "
      "script -qec 'tegula gemm --m 8 --n 8 --k 2000000 --device sim --unchecked' /dev/null",
      folder.path());
  if (outcome.status == 77) GTEST_SKIP() << "this machine has no script, which makes a terminal";
  EXPECT_EQ(outcome.status, 0) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("] the first CTAs, "));
  EXPECT_THAT(outcome.out, HasSubstr(" s so far"));
}

TEST(Process, ABrokenPipeIsNoSignal) {
  TemporaryFolder const folder;
  // The tool starts when its reader has closed the pipe: its first write breaks, whatever the
  // pipe would hold.
  Outcome const outcome = run_shell(
      "{ until test -e closed; do sleep 0.01; done; tegula atoms; echo $? >status; } | "
      "{ exec <&-; touch closed; }; cat status >&2",
      folder.path());
  EXPECT_THAT(outcome.err, HasSubstr("1\n"));
}

TEST(Process, ClosedStreamsDoNotAbortAndAreNotTakenByFiles) {
  TemporaryFolder const folder;
  EXPECT_EQ(run_shell("tegula layout '(4,8' 2>&-", folder.path()).status, 1);
  EXPECT_EQ(run_shell("tegula layout '(4,8)' 2>&-", folder.path()).status, 0);
  EXPECT_EQ(run_shell("tegula layout --batch - <&-", folder.path()).status, 1);
  run_shell("tegula layout '(4,8)' --svg a.svg >&- 2>&-", folder.path());
  EXPECT_THAT(read(folder / "a.svg"), HasSubstr("</svg>"));
  EXPECT_THAT(read(folder / "a.svg"), ::testing::Not(HasSubstr("result")));
}

TEST(Process, AKilledToolLeavesTheOldPictureOrTheNew) {
  TemporaryFolder const folder;
  write(folder / "a.svg", "old");
  run_shell(
      "for i in $(seq 100); do tegula layout '(64,64):(64,1)' --svg a.svg >/dev/null & p=$!; "
      "sleep 0.00$((i % 10))$((i % 7)); kill -9 $p 2>/dev/null; wait $p 2>/dev/null; "
      "case \"$(tail -c 7 a.svg)\" in old|*'</svg>') ;; *) echo torn;; esac; done",
      folder.path());
  std::string const text = read(folder / "a.svg");
  EXPECT_TRUE(text == "old" || text.ends_with("</svg>\n")) << text.substr(0, 100);
}

TEST(Process, PicturesGoThroughLinksAndDevices) {
  TemporaryFolder const folder;
  write(folder / "real.svg", "old");
  Outcome const linked =
      run_shell("ln -s real.svg link.svg && tegula layout 8 --svg link.svg && test -L link.svg",
                folder.path());
  EXPECT_EQ(linked.status, 0) << linked.err;
  EXPECT_THAT(read(folder / "real.svg"), HasSubstr("<svg"));
  EXPECT_EQ(run_shell("tegula layout 8 --svg /dev/null && test -c /dev/null", folder.path()).status,
            0);
  Outcome const full = run_shell("tegula layout 8 --svg /dev/full", folder.path());
  EXPECT_EQ(full.status, 1);
  EXPECT_THAT(full.err, HasSubstr("--svg /dev/full: writing failed"));
  Outcome const same = run_shell("tegula layout 8 --svg a --latex ./a", folder.path());
  EXPECT_EQ(same.status, 1);
  EXPECT_THAT(same.err, HasSubstr("--latex ./a: is the file that --svg writes"));
}

TEST(Process, DeepAndLongLinesOfABatchAreAnsweredLikeOthers) {
  std::string const deep =
      "{\"id\":" + std::string(100000, '[') + std::string(100000, ']') + ",\"expr\":\"4\"}";
  std::string const good = "{\"id\":1,\"expr\":\"size((4,8))\"}\n";
  Outcome const outcome = run_tool({"layout", "--batch", "-"},
                                   good + deep + "\n" + std::string(3 << 20, 'x') + "\n" + good);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("line 2 nests arrays and objects more than 64 deep"));
  EXPECT_THAT(outcome.out, HasSubstr("line 3 has more than 1048576 bytes"));
  EXPECT_EQ(outcome.out.find("{\"id\":1,\"result\":32}"), 0u);
  EXPECT_TRUE(outcome.out.ends_with("{\"id\":1,\"result\":32}\n"));
}

TEST(Process, LinesOfABatchAreReadWhole) {
  std::string const zero = std::string("{\"id\":1,\"expr\":\"4\"}") + '\0' + "{}\n";
  Outcome const outcome = run_tool({"layout", "--batch", "-"},
                                   zero +
                                       "{\"id\":1,\"id\":2,\"expr\":\"4\"}\n"
                                       "{\"id\":1,\"expr\":\"4\",\"expr\":\"8\"}\n"
                                       "{\"id\":123456789012345678901,\"expr\":\"4\"}\n"
                                       "{\"id\":18446744073709551615,\"expr\":\"size(4)\"}\n"
                                       "{\"id\":[{\"a\":1},{\"a\":1}],\"expr\":\"size(4)\"}\n");
  EXPECT_EQ(outcome.out,
            "{\"line\":1,\"error\":\"line 1 is not JSON\"}\n"
            "{\"line\":2,\"error\":\"line 2 has a key twice\"}\n"
            "{\"line\":3,\"error\":\"line 3 has a key twice\"}\n"
            "{\"line\":4,\"error\":\"line 4 has an id of more than 64 bits; a string or a smaller "
            "number is needed\"}\n"
            "{\"id\":18446744073709551615,\"result\":4}\n"
            "{\"id\":[{\"a\":1},{\"a\":1}],\"result\":4}\n");
}

TEST(Process, HostileCommandLinesAreRefusedWithAShortSentence) {
  std::string const megabyte(100000, 'x');
  for (std::vector<std::string> const& line : std::vector<std::vector<std::string>>{
           {"layout", ""},
           {"layout", "4", "--svg", ""},
           {"layout", "4", "--banks="},
           {"layout", "--batch", ""},
           {"layout", megabyte},
           {"layout", std::string(100000, '(')},
           {"layout", std::string(100000, '<')},
           {"layout", "4:1@4294967297"},
           {"layout", "left_inverse(2:4611686018427387904)"},
           {"layout", "logical_product((1,1),<4294967296,4294967296>)"},
           {"layout", "select(4611686018427387904,0,0)"},
           {"layout", "recast(Sw<3,4,3> o (8,64):(64,1),4294967304,16)"},
           {"layout", "size((4,8),5)"},
           {"layout", "\x1b[31m"},
           {"atom", megabyte},
           {"tiled-mma", "--atom", "SM80_16x8x16_F32F16F16F32_TN", "--tile", ""},
           {"tiled-mma", "--atom", "SM80_16x8x16_F32F16F16F32_TN", "--tile", "<1048576,1048576,16>",
            "--json"},
           {megabyte},
           {"--" + megabyte},
           {"gemm", "--alpha", ""},
           {"gemm", "--alpha", "nan"},
           {"gemm", "--beta", "0x10"},
           {"gemm", "--a", ""},
           {"gemm", "--scale-a", "1e-46"},
           {"gemm", "--tile", "4294967360x128"},
           {"gemm", "--m", "4294967296000"},
           {"gemm", "--dtype", ""},
           {"gemm", "--output", "/nowhere/x.npy"},
           {"gemm", "--output", "x.npy", "--report", "x.npy"},
           {"attention", "--scale", "1e-46"},
           {"attention", "--lse", "a.npy", "--output", "a.npy"}}) {
    Outcome const outcome = run_tool(line);
    std::string const what = line[0].substr(0, 20) + " " + line.back().substr(0, 40);
    EXPECT_TRUE(outcome.status == 1 || outcome.status == 2) << what << ": " << outcome.status;
    EXPECT_LT(outcome.err.size(), 1500u) << what;
    EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos) << what;
    EXPECT_TRUE(outcome.err.starts_with("tegula: ") && outcome.err.ends_with("\n")) << what;
  }
}

TEST(Process, SentencesNameTheValueThatWasWritten) {
  EXPECT_THAT(run_tool({"layout", "size((4,8),5)"}).err,
              HasSubstr("(4,8):(1,4), 5): there is no such mode"));
  EXPECT_THAT(run_tool({"gemm", "--tile", "0x10"}).err, HasSubstr("--tile is '0x10'"));
}

}  // namespace
}  // namespace tegula::tool_test
