// A layout that is a template argument reads, at run time, as the layout that it is: compiled and
// run by each host compiler, for one of them (clang 14) reads arrays of a padded template argument
// one member off.

#include <cstdio>

#include "tegula/layout/algebra.hpp"
#include "tegula/layout/offset.hpp"
#include "tegula/layout/swizzle.hpp"
#include "tegula/tensor/map.hpp"

using namespace tegula;

namespace {

template <Layout L> bool reads_as(Layout const& expected) {
  bool same = L.count == expected.count;
  for (int i = 0; i < L.count; ++i) {
    same = same && L.extents[i] == expected.extents[i] && L.strides[i] == expected.strides[i];
    same = same && L.axes[i] == expected.axes[i] && L.open[i] == expected.open[i] &&
           L.close[i] == expected.close[i];
  }
  return same && L.strides[0] == expected.strides[0] && L == expected;
}

template <Tuple T> bool reads_as(Tuple const& expected) {
  return T.values[1] == expected.values[1] && T == expected;
}

constexpr Layout plain = make_layout(layout(shape(3, 5), stride(7, 2)), layout(4, 100));
constexpr Layout coordinates = make_layout(along(1, 8, 4), along(0, 16, 1));
struct Source {
  static constexpr Layout value = coordinates;
};

}  // namespace

int main() {
  bool const right = reads_as<plain>(plain) && reads_as<coordinates>(coordinates) &&
                     reads_as<tuple(4, 9)>(tuple(4, 9)) && offset_of<plain>(16) == 107 &&
                     coordinate<1>(MapOf<Source>{}, 1) == 4 &&
                     coordinate<0>(MapOf<Source>{}, 8) == 1;
  std::puts(right ? "as they are" : "a template argument reads as another value");
  return right ? 0 : 1;
}
