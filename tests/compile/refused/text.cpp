// The closing parenthesis is missing.
// prints: refuse("parse"
// prints: a comma or ) was expected

#include "tegula/layout/parse.hpp"

using namespace tegula;

template <Layout L> struct Tile {};

using Refused = Tile<"(4,4):(4,1"_layout>;
