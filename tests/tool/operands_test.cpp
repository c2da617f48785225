// The operands of `gemm` and `attention` from files: rounded once, fp8 as it stands there, refused
// where they are empty or too large; and options that say zero.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run_tool.hpp"
#include "tegula/io/files.hpp"
#include "tegula/io/safetensors.hpp"
#include "tegula/numeric/dtype.hpp"

namespace tegula::tool_test {
namespace {

using io::ElementType;
using ::testing::HasSubstr;

nlohmann::json run_json(std::vector<std::string> arguments, TemporaryFolder const& folder) {
  for (char const* const more : {"--json", "--device", "sim"}) arguments.push_back(more);
  Outcome const outcome = run_tool(arguments, "", folder.path());
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

std::vector<float> floats_of(TemporaryFolder const& folder, std::string const& name) {
  return io::to_floats(io::read_array((folder / name).string()));
}

template <class T>
void write_array(TemporaryFolder const& folder, std::string const& name, ElementType type,
                 std::vector<std::int64_t> const& shape, std::vector<T> const& values) {
  io::write_array((folder / name).string(), io::array_of(type, shape, values));
}

/// Numbers in [-1, 1), and none of them small.
std::vector<float> spread(std::size_t count, float largest) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = largest * (0.25f + static_cast<float>(i * 37 % 64) / 86) * (i % 3 == 0 ? -1 : 1);
  return values;
}

TEST(Operands, OfDoublesAreRoundedOnce) {
  TemporaryFolder const folder;
  // Rounded to f32 first, the second and third would be ties, which go to the even 1 and 1 + 2^-9.
  std::vector<double> a = {1,
                           1 + 0x1p-11 + 0x1p-30,
                           1 + 3 * 0x1p-11 - 0x1p-30,
                           -1 - 0x1p-11 - 0x1p-40,
                           0x1p-25 + 0x1p-60,
                           65519.999999,
                           0,
                           1e-300};
  std::vector<float> identity(64);
  for (std::size_t i = 0; i < 8; ++i) identity[9 * i] = 1;
  write_array(folder, "a.npy", ElementType::f64, {1, 8}, a);
  write_array(folder, "b.npy", ElementType::f32, {8, 8}, identity);
  run_json({"gemm", "--a", "a.npy", "--b", "b.npy", "--trans-b", "--dtype", "f16", "--out", "f32",
            "--output", "d.npy"},
           folder);
  EXPECT_EQ(floats_of(folder, "d.npy"), (std::vector<float>{1, 1 + 0x1p-10f, 1 + 0x1p-10f,
                                                            -1 - 0x1p-10f, 0x1p-24f, 65504, 0, 0}));
}

TEST(Operands, OfEightBitsAreThoseOfTheFiles) {
  TemporaryFolder const folder;
  constexpr std::size_t m = 16, n = 16, k = 32;
  std::vector<std::uint8_t> a(m * k), b(n * k);
  std::vector<double> exact(m * n);
  for (std::size_t i = 0; i < m * k; ++i)
    a[i] = to_float_e4m3(static_cast<float>(i * 7 % 9) - 4).bits;
  for (std::size_t i = 0; i < n * k; ++i)
    b[i] = to_float_e5m2(static_cast<float>(i * 5 % 7) - 3).bits;
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t p = 0; p < k; ++p)
        exact[i * n + j] += (static_cast<double>((i * k + p) * 7 % 9) - 4) *
                            (static_cast<double>((j * k + p) * 5 % 7) - 3);
  io::write_safetensors((folder / "w.safetensors").string(),
                        {{"a", io::array_of(ElementType::e4m3, {m, k}, a)},
                         {"b", io::array_of(ElementType::e5m2, {n, k}, b)}});
  write_array(folder, "b.npy", ElementType::e5m2, {n, k}, b);
  for (std::string const from : {"w.safetensors:b", "b.npy"}) {
    nlohmann::json const result = run_json({"gemm", "--a", "w.safetensors:a", "--b", from,
                                            "--trans-b", "--out", "f32", "--output", "d.npy"},
                                           folder);
    EXPECT_EQ(result["in"], "e4m3");
    EXPECT_EQ(result["in_b"], "e5m2");
    std::vector<float> const d = floats_of(folder, "d.npy");
    for (std::size_t i = 0; i < d.size(); ++i)
      ASSERT_EQ(d[i], exact[i]) << from << ", element " << i;
  }
}

TEST(Operands, WithoutElementsAreRefused) {
  TemporaryFolder const folder;
  write_array(folder, "rows.npy", ElementType::f16, {0, 64}, std::vector<std::uint16_t>());
  write_array(folder, "columns.npy", ElementType::f16, {64, 0}, std::vector<std::uint16_t>());
  write_array(folder, "tokens.npy", ElementType::f16, {0, 2, 64}, std::vector<std::uint16_t>());
  write_array(folder, "bias.npy", ElementType::f16, {0}, std::vector<std::uint16_t>());
  io::write_safetensors(
      (folder / "w.safetensors").string(),
      {{"w", io::array_of(ElementType::bf16, {16, 0}, std::vector<std::uint16_t>())}});
  struct Case {
    std::string command, option, file, shape;
  };
  for (auto const& [command, option, file, shape] :
       {Case{"gemm", "--a", "rows.npy", "(0, 64)"},
        {"gemm", "--b", "columns.npy", "(64, 0)"},
        {"gemm", "--c", "rows.npy", "(0, 64)"},
        {"gemm", "--bias", "bias.npy", "(0)"},
        {"gemm", "--a", "w.safetensors:w", "(16, 0)"},
        {"attention", "--q", "tokens.npy", "(0, 2, 64)"},
        {"attention", "--k", "tokens.npy", "(0, 2, 64)"},
        {"attention", "--v", "tokens.npy", "(0, 2, 64)"}}) {
    Outcome const outcome = run_tool({command, option, file, "--device", "sim"}, "", folder.path());
    EXPECT_EQ(outcome.status, 1) << option;
    EXPECT_EQ(outcome.err, "tegula: " + option + " " + file + " has shape " + shape +
                               "; every extent must be at least 1.\n");
  }
}

TEST(Operands, FactorsOfQAndKAreAboveZero) {
  TemporaryFolder const folder;
  float const infinity = std::numeric_limits<float>::infinity();
  for (float const factor : {0.0f, -1.0f, infinity, infinity - infinity}) {
    write_array(folder, "f.npy", ElementType::f32, {1, 2}, std::vector<float>{1, factor});
    for (std::string const option : {"--q-descale", "--k-descale"}) {
      Outcome const outcome = run_tool({"attention", "--dtype", "e4m3", "--heads", "2", option,
                                        "f.npy", "--seq-q", "16", "--device", "sim"},
                                       "", folder.path());
      EXPECT_EQ(outcome.status, 1) << factor;
      EXPECT_THAT(outcome.err,
                  ::testing::AllOf(HasSubstr(option + " f.npy holds "), HasSubstr("at (0, 1)")));
    }
  }
}

TEST(Operands, FactorsOfVAreFiniteAndSinksFiniteOrNone) {
  TemporaryFolder const folder;
  float const infinity = std::numeric_limits<float>::infinity(), nan = infinity - infinity;
  auto const outcome = [&](std::vector<std::string> const& options) {
    return run_tool(
        Words{"attention", "--heads", "2", "--seq-q", "16", "--device", "sim"} + options, "",
        folder.path());
  };
  for (float const factor : {nan, infinity, -infinity}) {
    write_array(folder, "v.npy", ElementType::f32, {1, 2}, std::vector<float>{1, factor});
    Outcome const refused = outcome({"--dtype", "e4m3", "--v-descale", "v.npy"});
    EXPECT_EQ(refused.status, 1) << factor;
    EXPECT_THAT(refused.err,
                ::testing::AllOf(HasSubstr("--v-descale v.npy holds "),
                                 HasSubstr("at (0, 1); every factor must be finite.")));
  }
  for (float const sink : {nan, infinity}) {
    write_array(folder, "s.npy", ElementType::f32, {2}, std::vector<float>{0, sink});
    Outcome const refused = outcome({"--sink", "s.npy"});
    EXPECT_EQ(refused.status, 1) << sink;
    EXPECT_THAT(refused.err,
                ::testing::AllOf(HasSubstr("--sink s.npy holds "),
                                 HasSubstr("at (1); every sink must be finite, or -inf")));
  }
  write_array(folder, "v.npy", ElementType::f32, {1, 2}, std::vector<float>{0, -2});
  write_array(folder, "s.npy", ElementType::f32, {2}, std::vector<float>{-infinity, -3});
  EXPECT_EQ(outcome({"--dtype", "e4m3", "--v-descale", "v.npy", "--sink", "s.npy"}).status, 0);
}

TEST(Operands, OfFilesAreOfOneTypeOrRoundedToOneThatIsSaid) {
  TemporaryFolder const folder;
  constexpr std::size_t size = 16 * 64;
  auto const numbers = spread(size, 1);
  std::vector<std::uint16_t> f16(size), bf16(size);
  std::vector<std::uint8_t> e4m3(size);
  for (std::size_t i = 0; i < size; ++i) {
    f16[i] = to_half(numbers[i]).bits;
    bf16[i] = to_bfloat16(numbers[i]).bits;
    e4m3[i] = to_float_e4m3(numbers[i]).bits;
  }
  auto const pair = [&](std::string const& name, std::vector<std::int64_t> const& shape) {
    io::write_safetensors((folder / name).string(),
                          {{"f16", io::array_of(ElementType::f16, shape, f16)},
                           {"bf16", io::array_of(ElementType::bf16, shape, bf16)},
                           {"f32", io::array_of(ElementType::f32, shape, numbers)},
                           {"e4m3", io::array_of(ElementType::e4m3, shape, e4m3)}});
  };
  pair("t.safetensors", {16, 1, 64});
  pair("m.safetensors", {16, 64});
  auto const outcome = [&](Words const& line) {
    return run_tool(line + Words{"--device", "sim"}, "", folder.path());
  };
  std::string const t = "t.safetensors:", m = "m.safetensors:";
  for (auto const& [q, k] : {std::pair("e4m3", "f16"), {"f16", "bf16"}, {"bf16", "e4m3"}}) {
    Words const line{"attention", "--q", t + q, "--k", t + k, "--v", t + k};
    Outcome const refused = outcome(line);
    EXPECT_EQ(refused.status, 1);
    EXPECT_EQ(refused.err, "tegula: --q " + t + q + " holds " + q + " and --k " + t + k + " " + k +
                               "; all must hold one type, or --dtype say the one that they are "
                               "rounded to.\n");
    EXPECT_EQ(outcome(line + Words{"--dtype", "bf16"}).status, 0);
  }
  EXPECT_THAT(outcome({"attention", "--k", t + "f16", "--v", t + "bf16"}).err,
              HasSubstr("--k " + t + "f16 holds f16 and --v " + t + "bf16 bf16;"));
  EXPECT_THAT(outcome({"attention", "--q", t + "f16", "--k", t + "f32"}).err,
              HasSubstr("--k " + t + "f32 holds f32, which no kernel multiplies; to round it"));
  // A and B likewise, but that there are kernels for both types of fp8.
  for (auto const& [a, b] : {std::pair("f16", "bf16"), {"bf16", "f16"}, {"f16", "e4m3"}}) {
    Words const line{"gemm", "--a", m + a, "--b", m + b, "--trans-b"};
    Outcome const refused = outcome(line);
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.err, HasSubstr("tegula: --a " + m + a + " --b " + m + b + ": gemm: in is " +
                                       a + " and in_b is " + b));
    EXPECT_EQ(outcome(line + Words{"--dtype", "bf16"}).status, 0);
  }
  EXPECT_THAT(outcome({"gemm", "--a", m + "f16", "--b", m + "f32", "--trans-b"}).err,
              HasSubstr("--b " + m + "f32 holds f32, which no kernel multiplies; to round it"));
}

TEST(Operands, WithoutABoundAreCounted) {
  TemporaryFolder const folder;
  Words const line{"attention", "--seq-q", "16", "--head-dim", "64", "--dtype", "f16"};
  nlohmann::json const large = run_json(line + Words{"--scale", "1e20"}, folder);
  EXPECT_TRUE(large["within_bound"]);
  EXPECT_EQ(large["O"]["without_bound"], 16 * 64);
  EXPECT_GT(large["O"]["not_finite"], 0);
  Outcome const text = run_tool(line + Words{"--scale", "1e20", "--device", "sim"});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out,
              ::testing::AllOf(HasSubstr("; 1024 results have no bound, for numbers on the way"),
                               HasSubstr(" results are NaN or infinite, and finite in float64\n"),
                               HasSubstr("\nwithin bounds where there are any\n")));
  nlohmann::json const usual = run_json(line, folder);
  EXPECT_EQ(usual["O"]["without_bound"], 0);
  EXPECT_EQ(usual["O"]["not_finite"], 0);
  // What is beyond the range of D's type has a bound.
  Words const gemm{"gemm", "--m",     "16",     "--n",     "16",  "--k",
                   "16",   "--alpha", "100000", "--dtype", "f16", "--trans-b"};
  nlohmann::json const beyond = run_json(gemm, folder);
  EXPECT_EQ(beyond["D"]["without_bound"], 0);
  EXPECT_GT(beyond["D"]["not_finite"], 0);
  EXPECT_THAT(run_tool(gemm + Words{"--device", "sim"}).out,
              ::testing::AllOf(HasSubstr("are NaN or infinite, and finite in float64\n"),
                               HasSubstr("\nwithin bounds\n")));
}

TEST(Operands, AreAppendedToAnEmptyCache) {
  TemporaryFolder const folder;
  Words const line{"attention",   "--heads", "2",        "--seq-q", "1",
                   "--lengths-k", "0,0",     "--append", "1,3"};
  for (Words const& more : {Words{}, Words{"--page-size", "16"}}) {
    nlohmann::json const result = run_json(line + more, folder);
    EXPECT_TRUE(result["within_bound"]);
    EXPECT_EQ(result["seq_k"], 3);
  }
  Outcome const none = run_tool({"attention", "--lengths-k", "0,0", "--device", "sim"});
  EXPECT_THAT(none.err, HasSubstr("--lengths-k is '0,0'; it must be lengths"));
}

TEST(Operands, OfNvf4AreQuantisedWithAFactorOfTheirFile) {
  TemporaryFolder const folder;
  constexpr std::size_t m = 16, n = 24, k = 64;
  // Without a factor the scales of small values are zero, and large ones are cut.
  struct Case {
    float a, b;
  };
  for (auto const& [largest_a, largest_b] :
       {Case{1, 0.003f}, {1e-6f, 1e-6f}, {5000, 5000}, {3e38f, 1e-3f}, {1e-36f, 1e30f}}) {
    auto const a = spread(m * k, largest_a), b = spread(n * k, largest_b);
    write_array(folder, "a.npy", ElementType::f32, {m, k}, a);
    write_array(folder, "b.npy", ElementType::f32, {n, k}, b);
    nlohmann::json const result =
        run_json({"gemm", "--a", "a.npy", "--b", "b.npy", "--scales", "nv", "--arch", "sm100",
                  "--scale-b", "2", "--output", "d.npy"},
                 folder);
    EXPECT_FALSE(result.contains("lost")) << result;
    EXPECT_FLOAT_EQ(result["scale_a"].get<float>(), result["tensor_factor_a"].get<float>());
    EXPECT_FLOAT_EQ(result["scale_b"].get<float>(), 2 * result["tensor_factor_b"].get<float>());
    std::vector<float> const d = floats_of(folder, "d.npy");
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        double exact = 0;
        for (std::size_t p = 0; p < k; ++p)
          exact += 2.0 * static_cast<double>(a[i * k + p]) * static_cast<double>(b[j * k + p]);
        error += std::pow(static_cast<double>(d[i * n + j]) - exact, 2), norm += exact * exact;
      }
    EXPECT_LT(std::sqrt(error / norm), 0.2) << largest_a << ", " << largest_b;
  }
  // What is generated has none.
  nlohmann::json const generated = run_json(
      {"gemm", "--scales", "nv", "--arch", "sm100", "--m", "16", "--n", "24", "--k", "64"}, folder);
  EXPECT_EQ(generated["scale_a"], 1);
  EXPECT_FALSE(generated.contains("tensor_factor_a"));
  // A factor that no scale can take up.
  write_array(folder, "a.npy", ElementType::f32, {m, k}, spread(m * k, 3e38f));
  Outcome const refused = run_tool({"gemm", "--a", "a.npy", "--scales", "nv", "--arch", "sm100",
                                    "--scale-a", "1e10", "--n", "24", "--device", "sim"},
                                   "", folder.path());
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err,
              HasSubstr("--scale-a is 10000000000, and --a a.npy is quantised with a factor"));
}

TEST(Operands, SayWhatWasLostOfTheirFiles) {
  TemporaryFolder const folder;
  constexpr std::size_t k = 64;
  float const infinity = std::numeric_limits<float>::infinity();
  std::vector<double> values(16 * k, 1);
  values[3] = 500, values[5] = -1e6, values[7] = static_cast<double>(infinity), values[9] = 1e-9;
  values[11] = 1e300, values[13] = 1e-300, values[15] = 0, values[16 + k] = -1e-40;
  write_array(folder, "a.npy", ElementType::f64, {16, k}, values);
  struct Case {
    char const* type;
    int beyond, zero;
  };
  auto const run_with = [&](std::vector<std::string> const& options) {
    std::vector<std::string> line = {"gemm", "--a", "a.npy", "--n", "16", "--trans-b"};
    line.insert(line.end(), options.begin(), options.end());
    return line;
  };
  for (auto const& [type, beyond, zero] :
       {Case{"e4m3", 4, 3}, {"f16", 2, 3}, {"bf16", 1, 1}, {"tf32", 1, 1}}) {
    nlohmann::json lost = run_json(run_with({"--in", type}), folder)["lost"];
    EXPECT_EQ(lost["A"]["beyond_range"], beyond) << type << lost;
    EXPECT_EQ(lost["A"]["became_zero"], zero) << type << lost;
    EXPECT_EQ(lost["A"]["became_nan"], 0) << type;
    EXPECT_EQ(lost.size(), 1u) << "B was generated";
  }
  Outcome const text = run_tool(run_with({"--in", "e4m3", "--device", "sim"}), "", folder.path());
  EXPECT_THAT(text.out, HasSubstr("A lost values when it was rounded to e4m3: 4 lay beyond its "
                                  "range, 3 became zero\n"));
  nlohmann::json b = run_json({"gemm", "--b", "a.npy", "--m", "16", "--trans-b", "--in", "e4m3",
                               "--in-b", "e5m2", "--out", "f32"},
                              folder);
  EXPECT_EQ(b["lost"]["B"]["beyond_range"], 3);
  EXPECT_EQ(b["lost"]["B"]["became_zero"], 3);
  // C and the bias are rounded to D's type.
  nlohmann::json c = run_json({"gemm", "--c", "a.npy", "--k", "16"}, folder);
  EXPECT_EQ(c["lost"]["C"]["beyond_range"], 1);
  // The operands of attention are, too.
  write_array(folder, "q.npy", ElementType::f32, {16, 1, k}, spread(16 * k, 1e5f));
  nlohmann::json q =
      run_json({"attention", "--q", "q.npy", "--dtype", "f16", "--seq-k", "16"}, folder);
  EXPECT_GT(q["lost"]["Q"]["beyond_range"], 100);
  EXPECT_FALSE(q["lost"].contains("K"));
}

TEST(Operands, SayWhatWasLostOfTheirBlocks) {
  TemporaryFolder const folder;
  constexpr std::size_t k = 64;
  std::vector<float> values = spread(16 * k, 1);
  // A block of 16 far below the file's largest; the small ones beside 1 are their format's.
  for (std::size_t i = 0; i < 16; ++i) values[k + i] = i == 5 ? 0 : 1e-7f;
  values[2 * k] = 1e-7f;
  auto const lost = [&](char const* scales) {
    write_array(folder, "a.npy", ElementType::f32, {16, k}, values);
    std::vector<std::string> const line = {"gemm", "--a",    "a.npy", "--scales", scales, "--in",
                                           "e2m1", "--arch", "sm100", "--n",      "16"};
    nlohmann::json result = run_json(line, folder);
    return result["lost"]["A"];
  };
  EXPECT_EQ(lost("nv")["became_zero"], 15);
  EXPECT_TRUE(lost("mx").is_null()) << "scales of powers of two reach further";
  values[3 * k] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(lost("nv")["became_nan"], 16);
  EXPECT_EQ(lost("mx")["became_nan"], 32);
}

TEST(Operands, OfFilesWithoutATypeSayWhichThereAre) {
  TemporaryFolder const folder;
  write_array(folder, "f32.npy", ElementType::f32, {16, 1, 64}, std::vector<float>(16 * 64, 1));
  write_array(folder, "f8.npy", ElementType::e4m3, {16, 64}, std::vector<std::uint8_t>(16 * 64));
  for (auto const& [line, remedy] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"gemm", "--a", "f32.npy"}, "--dtype must be f16, bf16, tf32, e4m3 or e5m2."},
           {{"gemm", "--b", "f32.npy"}, "--dtype must be f16, bf16, tf32, e4m3 or e5m2."},
           {{"gemm", "--a", "f8.npy", "--b", "f32.npy"}, "--in-b must be e4m3 or e5m2."},
           {{"attention", "--q", "f32.npy"}, "--dtype must be f16, bf16 or e4m3."}}) {
    std::vector<std::string> all = line;
    for (char const* const more : {"--device", "sim"}) all.push_back(more);
    Outcome const outcome = run_tool(all, "", folder.path());
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr(" f32.npy holds f32, which no kernel multiplies; to round "
                                       "it, " +
                                       remedy));
  }
}

// As a rank of a mixture of experts has them for whose experts no token came.
TEST(Operands, OfGroupsWithoutRowsGiveAnEmptyD) {
  TemporaryFolder const folder;
  auto const run_with = [&](std::vector<std::string> const& options) {
    std::vector<std::string> line = {"gemm", "--n", "16", "--output", "d.npy"};
    line.insert(line.end(), options.begin(), options.end());
    nlohmann::json const result = run_json(line, folder);
    EXPECT_TRUE(result["within_bound"]);
    return std::pair(result, io::describe_array((folder / "d.npy").string()).shape);
  };
  using Shape = std::vector<std::int64_t>;
  for (std::vector<std::string> const& options : std::vector<std::vector<std::string>>{
           {"--groups", "0", "--k", "16"},
           {"--groups", "0,0", "--grouping", "masked", "--k", "16"},
           {"--groups", "0,0", "--k", "128", "--scales", "1x128,128x128"},
           {"--groups", "0,0", "--k", "128", "--scales", "mx", "--arch", "sm100"},
           {"--groups", "0", "--k", "16", "--beta", "1"}}) {
    auto const [result, shape] = run_with(options);
    EXPECT_EQ(shape, (Shape{0, 16}));
    for (char const* const zero : {"m", "rows", "rows_checked", "flops_per_second"})
      EXPECT_EQ(result[zero], 0) << zero;
    EXPECT_FALSE(result["D"].contains("worst")) << result["D"];
  }
  auto const [masked, of_masked] =
      run_with({"--groups", "0,0", "--grouping", "masked", "--m", "3", "--k", "16"});
  EXPECT_EQ(of_masked, (Shape{6, 16}));
  EXPECT_EQ(masked["rows"], 0);
  // Of groups of k, each has a D, of no columns.
  auto const [by_k, of_k] = run_with({"--groups", "0,0", "--grouping", "k", "--m", "3"});
  EXPECT_EQ(of_k, (Shape{6, 16}));
  EXPECT_EQ(by_k["k"], 0);
  EXPECT_EQ(by_k["rows_checked"], 6);
  EXPECT_EQ(floats_of(folder, "d.npy"), std::vector<float>(96));
  Outcome const text = run_tool({"gemm", "--groups", "0", "--n", "16", "--device", "sim"});
  EXPECT_THAT(text.out, ::testing::AllOf(HasSubstr("D = A B^T: m 0, n 16, k 256, "),
                                         HasSubstr("\nno rows: nothing to compute or to check\n")));
}

/// As `gemm --groups` has them: so many groups without rows.
std::string empty_groups(int groups) {
  std::string text = "0";
  for (int i = 1; i < groups; ++i) text += ",0";
  return text;
}

TEST(Operands, WhoseTermsAreBeyondF32AreNotCalledWrong) {
  TemporaryFolder const folder;
  for (char const* const beta : {"3e38", "-3e38"})
    run_json({"gemm", "--m", "64", "--n", "64", "--k", "64", "--alpha", "3e38", "--beta", beta},
             folder);
}

TEST(Operands, ThatDisagreeAreNamedByTheirFiles) {
  TemporaryFolder const folder;
  auto const file = [&](char const* name, ElementType type,
                        std::vector<std::int64_t> const& shape) {
    std::int64_t size = 1;
    for (std::int64_t const extent : shape) size *= extent;
    io::write_array(
        (folder / name).string(),
        io::array_of(type, shape, std::vector<std::uint16_t>(static_cast<std::size_t>(size))));
  };
  file("q.npy", ElementType::f16, {4, 2, 64});
  file("k.npy", ElementType::f16, {4, 3, 64});
  file("odd.npy", ElementType::f16, {4, 2, 7});
  file("b.npy", ElementType::f16, {16, 16});
  write_array(folder, "a.npy", ElementType::e4m3, {16, 16}, std::vector<std::uint8_t>(256));
  auto const refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--device", "sim"});
    Outcome const outcome = run_tool(arguments, "", folder.path());
    EXPECT_EQ(outcome.status, 1);
    return outcome.err;
  };
  EXPECT_THAT(refused({"attention", "--q", "q.npy", "--k", "k.npy"}),
              HasSubstr("--q q.npy --k k.npy: attention: heads is 2 and kv_heads is 3"));
  EXPECT_THAT(refused({"attention", "--q", "odd.npy"}),
              HasSubstr("--q odd.npy: attention: head_dim is 7"));
  EXPECT_THAT(refused({"attention", "--head-dim", "576", "--v", "q.npy"}),
              HasSubstr("--head-dim 576 --v q.npy: head_dim is 576 and head_dim_v is 64"));
  EXPECT_THAT(refused({"attention", "--q", "q.npy", "--out-type", "bf16"}),
              HasSubstr("--q q.npy: "));
  EXPECT_THAT(refused({"gemm", "--a", "a.npy", "--b", "b.npy", "--trans-b"}),
              HasSubstr("--a a.npy --b b.npy: gemm: in is e4m3 and in_b is f16"));
}

TEST(Operands, AreCountedInTheSingularWhereTheyAreOne) {
  Outcome const groups =
      run_tool({"gemm", "--groups", "16", "--device", "sim", "--sms", "1", "--explain"});
  EXPECT_THAT(groups.out, ::testing::AllOf(HasSubstr("simulated sm_90, 1 multiprocessor\n"),
                                           HasSubstr(", 1 group of rows\n")));
  Outcome const one =
      run_tool({"attention", "--seq-q", "1", "--seq-k", "1", "--device", "sim", "--explain"});
  EXPECT_THAT(one.out, HasSubstr(" 1 query, 1 key, "));
}

TEST(Operands, BeyondTheMemoryAreRefusedBeforeTheyAreMade) {
  struct Case {
    std::vector<std::string> line;
    std::string extents;
  };
  for (auto const& [line, extents] :
       {Case{{"gemm", "--m", "1000000", "--n", "1000000", "--k", "1000000"},
             "--m 1000000, --n 1000000, --k 1000000, --batch 1 need about 2.6e+04 GB"},
        {{"gemm", "--m", "1000000", "--n", "1000000", "--k", "16"}, "--k 16, --batch 1 need about"},
        {{"gemm", "--batch", "100000", "--m", "4096", "--n", "4096"}, "--batch 100000 need about"},
        {{"gemm", "--m", "1", "--n", "100000000", "--k", "8"}, "--n 100000000, --k 8"},
        {{"gemm", "--scales", "mx", "--arch", "sm100", "--m", "1", "--n", "2000000", "--k", "64"},
         "--n 2000000, --k 64"},
        {{"gemm", "--groups", empty_groups(50000)},
         "--n 256, --k 256, --groups of 50000 groups need about 19.7 GB"},
        {{"gemm", "--groups", "1,1", "--grouping", "masked", "--m", "4000000", "--n", "64"},
         "--m 4000000, --n 64, --k 256, --groups of 2 groups"},
        {{"gemm", "--groups", "1", "--grouping", "k", "--m", "200000", "--n", "4096"},
         "--m 200000, --n 4096, --k 1, --groups of 1 group need"},
        {{"attention", "--seq-q", "100000000", "--head-dim", "256", "--heads", "64"},
         "--seq-q 100000000, --seq-k 100000000, --head-dim 256"},
        {{"attention", "--seq-q", "1", "--seq-k", "4000000"}, "--seq-q 1, --seq-k 4000000"},
        {{"attention", "--seq-q", "1", "--lengths-k", "1,1,1", "--seq-k", "2000000"},
         "--batch 3, --heads 1, --kv-heads 1, --seq-q 1, --seq-k 2000000"}}) {
    std::vector<std::string> all = line;
    for (char const* const more : {"--device", "sim"}) all.push_back(more);
    Outcome const outcome = run_tool(all);
    EXPECT_EQ(outcome.status, 1) << extents;
    EXPECT_THAT(outcome.err,
                ::testing::AllOf(
                    HasSubstr("tegula: " + line[0] + ": --"), HasSubstr(extents),
                    HasSubstr(" GB of memory on a simulated machine; at most 2 GB may be taken")));
  }
}

TEST(Operands, PageTablesBeyondTheMemoryAreRefusedBeforeTheyAreMade) {
  for (std::string const batch : {"100000", "1000000000"}) {
    Outcome const outcome =
        run_tool({"attention", "--batch", batch, "--seq-k", "200000", "--page-size", "16",
                  "--seq-q", "1", "--device", "sim", "--explain"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, ::testing::AllOf(HasSubstr("tegula: --page-size is 16, and " + batch +
                                                        " sequences of 200000 keys take "),
                                              HasSubstr("they must be at most 33554432.")));
  }
}

TEST(Operands, OfMaskedGroupsTheirOwnRowsAreChecked) {
  TemporaryFolder const folder;
  nlohmann::json const result = run_json({"gemm", "--groups", "3,0,200,1", "--grouping", "masked",
                                          "--m", "100000", "--n", "8", "--k", "8"},
                                         folder);
  EXPECT_EQ(result["rows"], 204);
  EXPECT_EQ(result["rows_checked"], 204);
  EXPECT_TRUE(result["within_bound"]);
  std::vector<std::string> const without_m = {"gemm", "--groups", "3,20", "--grouping", "masked",
                                              "--n",  "8",        "--k",  "8"};
  EXPECT_EQ(run_json(without_m, folder)["m"], 20);
  EXPECT_THAT(run_tool({"gemm", "--help"}).out, HasSubstr("with --grouping masked the largest of"));
}

TEST(Operands, OfFilesBeyondTheMemoryAreRefusedBeforeTheyAreRead) {
  TemporaryFolder const folder;
  // A header of 2^40 elements, and a file as long without a byte written.
  constexpr std::int64_t rows = 1 << 20;
  std::string header = "{'descr': '<f2', 'fortran_order': False, 'shape': (1048576, 1048576), }";
  header.resize(117, ' ');
  header += '\n';
  write(folder / "big.npy",
        std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header);
  std::error_code error;
  std::filesystem::resize_file(folder / "big.npy", 10 + header.size() + 2 * rows * rows, error);
  if (error)
    GTEST_SKIP() << "this file system has no files of " << 2 * rows * rows
                 << " bytes without content";
  for (std::string const option : {"--a", "--b", "--c"}) {
    Outcome const outcome = run_tool(
        {"gemm", option, "big.npy", "--dtype", "f16", "--device", "sim"}, "", folder.path());
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, ::testing::AllOf(HasSubstr(option + " big.npy: about 2.2e+03 GB"),
                                              HasSubstr("GB are free")));
  }
}

TEST(Operands, CIsNotReadWhereBetaIsZero) {
  TemporaryFolder const folder;
  write_array(folder, "c.npy", ElementType::f32, {16, 16}, std::vector<float>(256, 1e4f));
  auto const with = [&](std::vector<std::string> const& options) {
    std::vector<std::string> line = {"gemm", "--m", "16",      "--n", "16",       "--trans-b",
                                     "--k",  "16",  "--dtype", "f16", "--output", "d.npy"};
    line.insert(line.end(), options.begin(), options.end());
    nlohmann::json const result = run_json(line, folder);
    EXPECT_TRUE(result["within_bound"]);
    return std::pair(result["beta"].get<double>(), floats_of(folder, "d.npy"));
  };
  auto const plain = with({});
  EXPECT_EQ(plain.first, 0);
  EXPECT_EQ(with({"--c", "c.npy", "--beta", "0"}), plain);
  EXPECT_EQ(with({"--c", "c.npy", "--beta", "-0"}).second, plain.second);
  auto const added = with({"--c", "c.npy"});
  EXPECT_EQ(added.first, 1);
  EXPECT_GT(added.second[0], 9000);
}

}  // namespace
}  // namespace tegula::tool_test
