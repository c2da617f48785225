// Images as a convolution reads them: loads by .im2col, against a convolution by its definition.
#include "tegula/arch/tma_im2col.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "broken_kernel.hpp"
#include "run_schedules.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula {
namespace {

/// A convolution of an image of `axes` spatial axes, W first.
struct Convolution {
  int axes = 2;
  int channels = 8, images = 2;
  std::array<int, 3> extent{1, 1, 1}, taps{1, 1, 1}, padding{}, stride{1, 1, 1}, dilation{1, 1, 1};

  /// Results along an axis.
  int results(std::size_t axis) const {
    return (extent[axis] + 2 * padding[axis] - (taps[axis] - 1) * dilation[axis] - 1) /
               stride[axis] +
           1;
  }
  int pixels() const { return images * results(0) * results(1) * results(2); }
  int all_taps() const { return taps[0] * taps[1] * taps[2]; }

  TensorMapDescription map(void* image, int channels_of_box, int pixels_of_box) const {
    TensorMapDescription d;
    d.dtype = DType::u32;
    d.mode = TmaMode::im2col;
    d.rank = axes + 2;
    d.address = image;
    d.extents[0] = channels;
    std::int64_t bytes = 4 * channels;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(axes); ++axis) {
      d.extents[axis + 1] = extent[axis];
      d.strides[axis] = bytes;
      bytes *= extent[axis];
      d.element_strides[axis + 1] = stride[axis];
      d.lower_corner[axis] = -padding[axis];
      d.upper_corner[axis] = padding[axis] - (taps[axis] - 1) * dilation[axis];
    }
    d.strides[static_cast<std::size_t>(axes)] = bytes;
    d.extents[static_cast<std::size_t>(axes) + 1] = images;
    d.box = {channels_of_box, pixels_of_box};
    return d;
  }

  /// What a result's tap reads of a channel, by the definition: 0 outside of the image.
  std::uint32_t read(std::vector<std::uint32_t> const& image, int result, int tap,
                     int channel) const {
    std::array<int, 3> const counts{results(0), results(1), results(2)};
    std::int64_t at = 0, scale = channels;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      int const x =
          result % counts[axis] * stride[axis] - padding[axis] + tap % taps[axis] * dilation[axis];
      if (x < 0 || x >= extent[axis]) return 0;
      at += x * scale;
      scale *= extent[axis];
      result /= counts[axis];
      tap /= taps[axis];
    }
    if (result >= images) return 0;
    return image[static_cast<std::size_t>(at + result * scale + channel)];
  }
};

constexpr int kMostWords = 4096;

struct Im2colParams {
  TensorMap map;
  std::uint32_t* out;
  int coordinate[5];
  std::uint16_t offset[3];
  int bytes;
};

/// Loads pixels, in each of two CTAs where it multicasts, and shows them.
template <int Rank, bool Multicast> struct LoadsPixels {
  using Params = Im2colParams;
  static constexpr int threads = 32;
  static constexpr Dim3 cluster = {Multicast ? 2 : 1, 1, 1};
  struct SharedStorage {
    alignas(1024) std::uint32_t words[kMostWords];
    Mbarrier full;
    template <class F> void name_buffers(F&& name) {
      name("words", words);
      name("full", full);
    }
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full), words = shared_address(smem.words);
    TmaCoordinate<Rank> c;
    TmaOffsets<Rank - 2> offsets;
    for (int i = 0; i < Rank; ++i) c.x[i] = p.coordinate[i];
    for (int i = 0; i < Rank - 2; ++i) offsets.x[i] = p.offset[i];
    if (thread_idx() == 0) {
      mbarrier_init(full, 1);
      fence_mbarrier_init();
      mbarrier_arrive_expect_tx(full, p.bytes);
      tma_prefetch_im2col(p.map, c, offsets);
    }
    cluster::sync();
    if (thread_idx() == 0 && cluster_cta_rank() == 0) {
      if constexpr (Multicast) {
        tma_load_im2col_multicast(words, p.map, c, offsets, full, 3);
      } else {
        tma_load_im2col(words, p.map, c, offsets, full);
      }
    }
    mbarrier_wait_parity(full, 0);
    if (cluster_cta_rank() == cluster_cta_count() - 1) {
      for (int i = thread_idx(); i < p.bytes / 4; i += threads)
        st_global(p.out + i, ld_shared<std::uint32_t>(words + 4u * static_cast<SharedAddr>(i)));
    }
    cluster::sync();
  }
};

/// Of a convolution, each tap of all results, a box of pixels at a time, against the definition.
template <int Axes, bool Multicast>
void expect_gathers(Convolution c, int box, sim::Options options, std::uint32_t seed) {
  constexpr int rank = Axes + 2;
  c.axes = Axes;
  sim::Machine machine(options);
  std::size_t const count =
      static_cast<std::size_t>(c.images * c.channels * c.extent[0] * c.extent[1] * c.extent[2]);
  std::vector<std::uint32_t> image(count);
  std::mt19937 random(seed);
  for (auto& word : image) word = static_cast<std::uint32_t>(random()) | 1;
  auto* const in = static_cast<std::uint32_t*>(machine.allocate(4 * count, "image"));
  auto* const out = static_cast<std::uint32_t*>(machine.allocate(4 * kMostWords, "out"));
  machine.upload(in, image.data(), 4 * count);
  int const width = c.channels / 2;  // the upper half of the channels, and as many beyond the last
  Im2colParams p{};
  p.map = sim::encode(c.map(in, c.channels, box));
  p.out = out;
  p.bytes = 4 * c.channels * box;
  for (int tap = 0; tap < c.all_taps(); ++tap) {
    for (int first = 0; first < c.pixels(); first += box) {
      p.coordinate[0] = width;
      int rest = first, rest_of_tap = tap;
      for (std::size_t axis = 0; axis < Axes; ++axis) {
        p.coordinate[axis + 1] = rest % c.results(axis) * c.stride[axis] - c.padding[axis];
        rest /= c.results(axis);
        p.offset[axis] = static_cast<std::uint16_t>(rest_of_tap % c.taps[axis] * c.dilation[axis]);
        rest_of_tap /= c.taps[axis];
      }
      p.coordinate[Axes + 1] = rest;
      sim::launch<LoadsPixels<rank, Multicast>>(machine, {Multicast ? 2 : 1, 1, 1}, p);
      std::vector<std::uint32_t> words(static_cast<std::size_t>(c.channels * box));
      machine.download(words.data(), out, 4 * words.size());
      for (int pixel = 0; pixel < box; ++pixel) {
        for (int channel = 0; channel < c.channels; ++channel) {
          std::uint32_t const wanted =
              width + channel < c.channels ? c.read(image, first + pixel, tap, width + channel) : 0;
          ASSERT_EQ(words[static_cast<std::size_t>(pixel * c.channels + channel)], wanted)
              << "tap " << tap << ", result " << first + pixel << ", channel " << channel;
        }
      }
    }
  }
}

sim::Options hopper() {
  sim::Options options;
  options.generation = sim::Generation::sm90;
  return options;
}

TEST(Im2col, GathersWhatTheTapsOfAConvolutionRead) {
  expect_gathers<1, false>({.extent = {13, 1, 1}, .taps = {3, 1, 1}, .padding = {1, 0, 0}}, 8,
                           hopper(), 1);
  expect_gathers<2, false>({.extent = {7, 5, 1}, .taps = {3, 3, 1}, .padding = {1, 1, 0}}, 16,
                           hopper(), 2);
  expect_gathers<2, true>({.extent = {9, 6, 1},
                           .taps = {3, 2, 1},
                           .padding = {2, 0, 0},
                           .stride = {2, 1, 1},
                           .dilation = {2, 3, 1}},
                          12, hopper(), 3);
  expect_gathers<3, false>({.images = 3,
                            .extent = {5, 4, 3},
                            .taps = {2, 3, 2},
                            .padding = {0, 1, 1},
                            .stride = {1, 2, 1}},
                           32, hopper(), 4);
}

TEST(Im2col, GathersOfRandomConvolutionsAtEverySchedule) {
  std::uint32_t seed = 0;
  for (sim::Options options : every_schedule(2, hopper())) {
    std::mt19937 random(++seed);
    auto const any = [&](int least, int most) {
      return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
    };
    Convolution c;
    c.images = any(1, 3);
    c.channels = 8 * any(1, 2);
    for (std::size_t axis = 0; axis < 2; ++axis) {
      c.taps[axis] = any(1, 3);
      c.dilation[axis] = any(1, 2);
      c.padding[axis] = any(0, 2);
      c.stride[axis] = any(1, 3);
      c.extent[axis] = any((c.taps[axis] - 1) * c.dilation[axis] + 1, 9);
    }
    expect_gathers<2, false>(c, any(1, 24), options, seed);
  }
}

TEST(Im2col, MapsThatTheDriverRefusesAreRefused) {
  std::uint32_t image[4096] = {};
  auto const address =
      reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(image) + 15) / 16 * 16);
  Convolution const c{.extent = {7, 5, 1}, .taps = {3, 3, 1}, .padding = {1, 1, 0}};
  auto const says = [&](auto change, std::string const& sentence) {
    TensorMapDescription d = c.map(address, 8, 16);
    EXPECT_EQ(sim::refusal(d), std::nullopt);
    EXPECT_EQ(sim::decode(sim::encode(d)), d);
    change(d);
    std::optional<std::string> const wrong = sim::refusal(d);
    ASSERT_TRUE(wrong.has_value()) << sentence;
    EXPECT_EQ(*wrong, "tensor map: " + sentence + ".");
  };
  using D = TensorMapDescription;
  says([](D& d) { d.rank = 2; }, "rank is 2; of im2col it must be 3, 4 or 5");
  says([](D& d) { d.box[1] = 1025; }, "box[1] is 1025; it must be 1 to 1024");
  says([](D& d) { d.lower_corner[1] = -129; },
       "lower_corner[1] is -129; of rank 4 it must be -128 to 127");
  says([](D& d) { d.upper_corner[0] = -8; },
       "lower_corner[0] is -1 and upper_corner[0] -8 of 7 elements along axis 1; the bounding box "
       "between them must hold one at least");
  says([](D& d) { d.element_strides[3] = 2; },
       "element_strides[3], of the images, is 2; of im2col it must be 1");
}

/// Wrong uses, of an image of 7 x 5 pixels of 8 channels.
template <int W, bool Tiled, bool Waits> struct UsesPixels {
  using Params = TensorMap;
  static constexpr int threads = 32;
  struct SharedStorage {
    alignas(1024) std::uint32_t words[128];
    Mbarrier full;
    template <class F> void name_buffers(F&& name) {
      name("words", words);
      name("full", full);
    }
  };
  static constexpr int load = __LINE__ + 8, read = __LINE__ + 13;
  TEGULA_DEVICE void operator()(TensorMap const& map, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full), words = shared_address(smem.words);
    if (thread_idx() == 0) {
      mbarrier_init(full, 1);
      fence_mbarrier_init();
      mbarrier_arrive_expect_tx(full, 512);
      if constexpr (!Tiled)
        tma_load_im2col(words, map, TmaCoordinate{0, W, -1, 0}, TmaOffsets<2>{1, 2}, full);
      if constexpr (Tiled) tma_load(words, map, TmaCoordinate{0, W, -1, 0}, full);
    }
    warp::sync();
    if (Waits) mbarrier_wait_parity(full, 0);
    if (!Waits) ld_shared<std::uint32_t>(words + 4u * static_cast<SharedAddr>(thread_idx()));
    if (!Waits) mbarrier_wait_parity(full, 0);
  }
};

template <class Kernel> sim::Report pixels_report(bool tiled_map = false, int written = 1120) {
  sim::Options options = hopper();
  options.throw_on_finding = false;
  sim::Machine machine(options);
  Convolution const c{.images = 1, .extent = {7, 5, 1}, .taps = {3, 3, 1}, .padding = {1, 1, 0}};
  void* const image = machine.allocate(1120, "image");
  machine.fill(image, 0, static_cast<std::size_t>(written));
  TensorMapDescription d = c.map(image, 8, 16);
  if (tiled_map) {
    d.mode = TmaMode::tiled;
    d.box = {8, 16, 1, 1};
  }
  return sim::launch<Kernel>(machine, {}, sim::encode(d));
}

TEST(Im2colChecker, FindsWrongUses) {
  using Right = UsesPixels<-1, false, true>;
  EXPECT_TRUE(pixels_report<Right>().ok()) << pixels_report<Right>().text();
  EXPECT_SAYS(
      only_finding(pixels_report<Right>(true), sim::FindingKind::invalid_operand, Right::load),
      "by .im2col is given a tensor map of mode tiled: it takes one of mode im2col");
  using Tiled = UsesPixels<-1, true, true>;
  EXPECT_SAYS(
      only_finding(pixels_report<Tiled>(), sim::FindingKind::invalid_operand, Tiled::load + 1),
      "by .tile is given a tensor map of mode im2col: it takes one of mode tiled");
  using Beyond = UsesPixels<6, false, true>;
  EXPECT_SAYS(
      only_finding(pixels_report<Beyond>(), sim::FindingKind::invalid_operand, Beyond::load),
      "begins at coordinate 6 of axis 1: the map's bounding box has -1 to 5 there");
  using Early = UsesPixels<-1, false, false>;
  only_finding(pixels_report<Early>(), sim::FindingKind::async_read_early, Early::read);
  EXPECT_SAYS(only_finding(pixels_report<Right>(false, 672), sim::FindingKind::uninitialized_read,
                           Right::load),
              "element (0, 0, 3, 0) of the tensor, which nobody has written");
}

}  // namespace
}  // namespace tegula
