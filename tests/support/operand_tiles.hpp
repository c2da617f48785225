#pragma once

/// The operands of a product as kernels of tests have them in shared memory.
namespace tegula {

/// Two tiles, which findings call A and B.
template <class TileA, class TileB> struct OperandTiles {
  TileA a;
  TileB b;
  template <class F> void name_buffers(F&& name) {
    name("A", a);
    name("B", b);
  }
};

}  // namespace tegula
