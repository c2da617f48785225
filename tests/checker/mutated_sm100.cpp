// grouped_gemm_sm100 in its forms among the kernels that are mutated, and with it gemm_sm100, whose
// values they are: small configurations, each with groups that go round the ring, an empty one, one
// that ends within a tile.

#include "mutated_kernel.hpp"
#include "tegula/kernel/grouped_gemm_sm100.hpp"
#include "tegula/kernel/grouped_gemm_sm100_table.hpp"

namespace tegula::mutants {
namespace {

struct Sm100Case {
  char const* name;
  GemmSm100Config config;
  Grouping grouping = Grouping::none;
  int m = 1, n = 1, k = 1;       ///< of A: all rows, or those of each group where masked
  std::array<int, 3> ends = {};  ///< of the groups, where there are any
  bool adds = false;             ///< with a C
  bool in_place = false;         ///< which is D
  bool strict_scopes = false;
};

constexpr Sm100Case by_the_letter(Sm100Case c, char const* name) {
  c.name = name, c.strict_scopes = true;
  return c;
}

constexpr DType e4m3 = DType::e4m3, e2m1 = DType::e2m1, f32 = DType::f32;

constexpr Sm100Case kPairByK = {.name = "grouped_gemm_sm100_pair_by_k",
                                .config = {.out = f32, .block_n = 64, .ctas = 2},
                                .grouping = Grouping::k,
                                .m = 150,
                                .n = 70,
                                .k = 900,
                                .ends = {72, 72, 850}};

constexpr Sm100Case kSm100Cases[] = {
    {.name = "grouped_gemm_sm100",
     .config = {.block_n = 64},
     .grouping = Grouping::contiguous,
     .m = 170,
     .n = 152,
     .k = 200,
     .ends = {130, 130, 165},
     .in_place = true},
    {.name = "grouped_gemm_sm100_masked",
     .config = {.block_n = 64},
     .grouping = Grouping::masked,
     .m = 70,
     .n = 50,
     .k = 344,
     .ends = {66, 0, 70},
     .adds = true},
    {.name = "grouped_gemm_sm100_by_k",
     .config = {.out = f32, .block_n = 64},
     .grouping = Grouping::k,
     .m = 130,
     .n = 61,
     .k = 800,
     .ends = {72, 72, 750}},
    {.name = "grouped_gemm_sm100_pair",
     .config = {.block_n = 64, .ctas = 2},
     .grouping = Grouping::contiguous,
     .m = 300,
     .n = 77,
     .k = 200,
     .ends = {130, 130, 300},
     .adds = true},
    kPairByK,
    by_the_letter(kPairByK, "grouped_gemm_sm100_pair_by_k_strict"),
    {.name = "grouped_gemm_sm100_mxf8",
     .config = {.a = e4m3, .b = e4m3, .block_n = 128, .scale = kMxScale},
     .grouping = Grouping::contiguous,
     .m = 280,
     .n = 140,
     .k = 400,
     .ends = {128, 128, 270}},
    {.name = "grouped_gemm_sm100_nvf4_by_k",
     .config = {.a = e2m1, .b = e2m1, .out = f32, .block_n = 128, .scale = kNvScale},
     .grouping = Grouping::k,
     .m = 100,
     .n = 40,
     .k = 2400,
     .ends = {64, 64, 2200}},
    {.name = "grouped_gemm_sm100_pair_mxf8_by_k",
     .config = {.a = e4m3, .b = e4m3, .out = f32, .block_n = 128, .ctas = 2, .scale = kMxScale},
     .grouping = Grouping::k,
     .m = 140,
     .n = 40,
     .k = 1000,
     .ends = {128, 128, 900}},
    {.name = "grouped_gemm_sm100_one", .config = {.block_n = 64}, .m = 70, .n = 58, .k = 80},
};

constexpr GroupedGemmSm100Config grouped(GemmSm100Config c) {
  c.grouped = true;
  return {c};
}
template <int I> struct Sm100KernelOf : GroupedGemmSm100<grouped(kSm100Cases[I].config)> {};

/// An operand's elements, in pairs where they are of 4 bits: (k, mn, matrices) of a tensor map.
TensorMap operand(Bench& bench, char const* name, DType type, std::int64_t mn, std::int64_t k,
                  std::int64_t matrices, TmaBoxes const& boxes) {
  bool const pairs = bits(type) < 8;
  std::int64_t const columns = pairs ? k / 2 : k;
  DType const stored = pairs ? DType::u8 : type;
  std::int64_t const ld = whole_lines(columns, stored, 16);
  void const* const memory = pairs ? bench.bytes(name, ld * mn * matrices, 0, 256)
                                   : bench.input(name, type, k, mn * matrices, ld);
  return sim::encode(
      describe(TmaMatrices{stored, memory, mn, columns, matrices, ld, ld * mn}, boxes));
}

/// Scales about one, (rows, k, matrices).
TensorMap scales(Bench& bench, char const* name, GemmSm100Config const& c, std::int64_t rows,
                 std::int64_t k, std::int64_t matrices, int times_128_rows) {
  std::int64_t const pieces_k = scale_pieces_k(static_cast<int>(k), c.scale.block),
                     pieces_m = scale_pieces_rows(static_cast<int>(rows)),
                     of_rows = kScalePieceBytes * pieces_k;
  int const one = c.scale.type == DType::ue8m0 ? 127 : 0x38;
  return sim::encode({.dtype = DType::u8,
                      .rank = 4,
                      .address = bench.bytes(name, of_rows * pieces_m * matrices, one - 4, 9),
                      .extents = {kScaleBoxBytes, 2 * pieces_k, pieces_m, matrices},
                      .strides = {kScaleBoxBytes, of_rows, of_rows * pieces_m},
                      .box = {kScaleBoxBytes, 2 * scale_pieces(c), times_128_rows, 1}});
}

GroupedGemmSm100Params sm100_params(Bench& bench, Sm100Case const& c) {
  GemmSm100Config const& config = c.config;
  bool const by_k = c.grouping == Grouping::k, masked = c.grouping == Grouping::masked;
  int const groups = c.grouping == Grouping::none ? 1 : 3;
  int const of_a = masked ? groups : 1, of_b = by_k ? 1 : groups, of_d = by_k ? groups : 1;
  std::int64_t const ldd = whole_lines(c.n, config.out, 16);
  void* const ends = bench.machine().allocate(sizeof c.ends, "ends");
  bench.machine().upload(ends, c.ends.data(), sizeof c.ends);

  GroupedGemmSm100Params p{
      .problem = {.a = operand(bench, "A", config.a, c.m, c.k, of_a, a_fetch(config)),
                  .b = operand(bench, "B", config.b, c.n, c.k, of_b, b_fetch(config)),
                  .m = c.m,
                  .n = c.n,
                  .k = c.k,
                  .a_batched = of_a > 1,
                  .b_batched = of_b > 1},
      .schedule = {.tiles = {.grouping = c.grouping,
                             .groups = groups,
                             .ends = static_cast<int const*>(ends),
                             .rows = c.m,
                             .depth = c.k,
                             .tiles_n = ceil_div(c.n, config.block_n)}}};
  p.scale_a = p.scale_b = p.problem.a;
  if (config.scale.block != 0) {
    p.scale_a = scales(bench, "scales of A", config, c.m, c.k, of_a, 1);
    p.scale_b = scales(bench, "scales of B", config, c.n, c.k, of_b, scale_rows_b(config));
  }
  std::int64_t const rows_d = std::int64_t{c.m} * (masked ? groups : 1);
  void* const d = bench.output("D", config.out, c.n, rows_d * of_d, ldd);
  if (c.in_place)  // some number
    bench.machine().fill(d, 0x3c, static_cast<std::size_t>(ldd * (rows_d - 1) + c.n) * 2);
  p.epilogue = {.d = d,
                .c = c.in_place ? d
                     : c.adds   ? bench.input("C", config.out, c.n, rows_d * of_d, ldd)
                                : nullptr,
                .ldd = ldd,
                .ldc = ldd,
                .d_group_stride = by_k ? ldd * c.m : 0,
                .c_group_stride = by_k ? ldd * c.m : 0,
                .n = c.n,
                .vectors = c.n * bits(config.out) % 128 == 0};
  return p;
}

template <int I> MutatedKernel mutated_sm100_case() {
  return {kSm100Cases[I].name, "grouped_gemm_sm100", [](sim::Options options) {
            options.throw_on_finding = false;
            options.generation = sim::Generation::sm100;
            options.strict.scopes = kSm100Cases[I].strict_scopes;
            Bench bench(std::move(options));
            using Kernel = Sm100KernelOf<I>;
            auto const params = sm100_params(bench, kSm100Cases[I]);
            sim::Report report =
                sim::launch<Kernel>(bench.machine(), Kernel::grid(params), params,
                                    global_tensors(grouped(kSm100Cases[I].config), params));
            return bench.outcome(std::move(report));
          }};
}

template <int... I> std::vector<MutatedKernel> sm100_cases(std::integer_sequence<int, I...>) {
  return {mutated_sm100_case<I>()...};
}

}  // namespace

std::vector<MutatedKernel> mutated_sm100() {
  return sm100_cases(std::make_integer_sequence<int, static_cast<int>(std::size(kSm100Cases))>());
}

}  // namespace tegula::mutants
