// The file formats: what is written is read back, what NumPy writes is read, and every malformed
// file is refused with a sentence.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>

#include "scratch.hpp"
#include "tegula/io/files.hpp"
#include "tegula/io/npy.hpp"
#include "tegula/io/safetensors.hpp"

namespace tegula::io {
namespace {

using tegula::testing::contents;
using tegula::testing::message_of;
using tegula::testing::Scratch;
using ::testing::HasSubstr;

constexpr ElementType kAllTypes[] = {
    ElementType::boolean, ElementType::u8,  ElementType::s8,  ElementType::u16,  ElementType::s16,
    ElementType::u32,     ElementType::s32, ElementType::u64, ElementType::s64,  ElementType::f16,
    ElementType::bf16,    ElementType::f32, ElementType::f64, ElementType::e4m3, ElementType::e5m2};

Array random_array(ElementType type, std::vector<std::int64_t> shape, unsigned seed) {
  std::mt19937 random(seed);
  Array array{type, std::move(shape), {}};
  array.data.resize(static_cast<std::size_t>(array.size() * size_of(type)));
  for (auto& byte : array.data)
    byte = static_cast<std::byte>(type == ElementType::boolean ? random() % 2 : random() % 256);
  return array;
}

void expect_same(Array const& a, Array const& b) {
  EXPECT_EQ(a.type, b.type);
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.data, b.data);
}

std::string npy(std::string header, std::string const& data, char major = 1) {
  header += '\n';
  std::string file = std::string("\x93NUMPY") + major + '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i)
    file += static_cast<char>((header.size() >> (8 * i)) & 0xff);
  return file + header + data;
}

std::string safetensors(std::string const& header, std::string const& data) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>((header.size() >> (8 * i)) & 0xff);
  return file + header + data;
}

std::string npy_error(std::string const& bytes) {
  Scratch const scratch;
  auto const path = scratch.file("x.npy", bytes);
  auto const message = message_of<io_error>([&] { read_npy(path); });
  EXPECT_THAT(message, HasSubstr("x.npy")) << "the sentence must name the file";
  return message;
}

std::string safetensors_error(std::string const& bytes) {
  Scratch const scratch;
  auto const path = scratch.file("x.safetensors", bytes);
  auto const message = message_of<io_error>([&] { Safetensors{path}; });
  EXPECT_THAT(message, HasSubstr("x.safetensors")) << "the sentence must name the file";
  return message;
}

TEST(Npy, ReadsBackWhatItWrites) {
  Scratch const scratch;
  unsigned seed = 0;
  for (auto const type : kAllTypes) {
    for (auto const& shape :
         std::vector<std::vector<std::int64_t>>{{}, {1}, {7}, {3, 5}, {2, 0, 4}, {2, 3, 4, 5}}) {
      auto const array = random_array(type, shape, ++seed);
      write_npy(scratch.path("a.npy"), array);
      expect_same(read_npy(scratch.path("a.npy")), array);
      EXPECT_EQ((contents(scratch.path("a.npy")).size() - array.data.size()) % 64, 0u)
          << "the data must begin at a multiple of 64";
    }
  }
}

TEST(Npy, WritesTheHeaderThatNumPyWrites) {
  Scratch const scratch;
  write_npy(scratch.path("a.npy"), array_of<float>(ElementType::f32, {2}, {1, 2}));
  // numpy.save(path, numpy.float32([1, 2])), byte for byte.
  std::string const header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_EQ(contents(scratch.path("a.npy")), std::string("\x93NUMPY\x01\0\x76\0", 10) + header +
                                                 std::string(117 - header.size(), ' ') + "\n" +
                                                 std::string("\0\0\x80\x3f\0\0\0\x40", 8));
}

TEST(Npy, ReadsFortranOrderBigEndianAndLaterVersions) {
  Scratch const scratch;
  auto const fortran = scratch.file(
      "f.npy", npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", "\1\2\3\4\5\6"));
  EXPECT_EQ(read_npy(fortran).as<std::uint8_t>(), (std::vector<std::uint8_t>{1, 3, 5, 2, 4, 6}));
  auto const big =
      scratch.file("b.npy", npy("{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}",
                                std::string("\1\2\3\4", 4), 2));
  EXPECT_EQ(read_npy(big).as<std::uint16_t>(), (std::vector<std::uint16_t>{0x102, 0x304}));
  auto const bf16 = scratch.file(
      "v.npy",
      npy("{\"shape\": (1L,), 'descr': 'bfloat16', 'fortran_order': False,}", "\x80\x3f", 3));
  EXPECT_EQ(to_doubles(read_npy(bf16)), std::vector<double>{1.0});
  // As numpy.save writes arrays of ml_dtypes' fp8 types, and under their names.
  for (auto const& [descr, bits] : {std::pair("<V1", "\x38"),
                                    {"float8_e4m3fn", "\x38"},
                                    {"<f1", "\x3c"},
                                    {"float8_e5m2", "\x3c"}}) {
    auto const fp8 = scratch.file("fp8.npy", npy(std::string("{'descr': '") + descr +
                                                     "', 'fortran_order': False, 'shape': (1,)}",
                                                 bits));
    EXPECT_EQ(to_doubles(read_npy(fp8)), std::vector<double>{1.0}) << descr;
  }
}

TEST(Npy, RefusesMalformedFilesWithASentence) {
  std::string const good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  std::string const four(4, '\0');
  EXPECT_THAT(npy_error(""), HasSubstr("truncated"));
  EXPECT_THAT(npy_error("PK\3\4 an archive"), HasSubstr("does not begin with"));
  EXPECT_THAT(npy_error(npy(good, four, 9)), HasSubstr("version 9.0"));
  EXPECT_THAT(npy_error(npy(good, four).substr(0, 9)), HasSubstr("length of the .npy header"));
  EXPECT_THAT(npy_error(npy(good, four).substr(0, 40)), HasSubstr("truncated"));
  EXPECT_THAT(npy_error(npy(good, "\0\0")), HasSubstr("holds 0 bytes of data"));
  EXPECT_THAT(npy_error(npy(good, four + "x")),
              HasSubstr("holds 5 bytes of data, and its array (1) of f32 has 4"));
  EXPECT_THAT(npy_error(npy("{'descr': '<f4', 'fortran_order': False}", four)),
              HasSubstr("missing"));
  EXPECT_THAT(npy_error(npy(
                  "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", four)),
              HasSubstr("twice"));
  EXPECT_THAT(npy_error(npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", four)),
              HasSubstr("True or False"));
  EXPECT_THAT(npy_error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,)}", four)),
              HasSubstr("')' is missing"));
  EXPECT_THAT(npy_error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (x,)}", four)),
              HasSubstr("integer"));
  EXPECT_THAT(npy_error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", four)),
              HasSubstr("(N) is no tuple"));
  EXPECT_THAT(npy_error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (01,)}", four)),
              HasSubstr("begins with 0"));
  EXPECT_THAT(
      npy_error(
          npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", four)),
      HasSubstr("64 bits"));
  EXPECT_THAT(npy_error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", four)),
              HasSubstr("negative"));
  EXPECT_THAT(
      npy_error(
          npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", four)),
      HasSubstr("2^62"));
  EXPECT_THAT(
      npy_error(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", four)),
      HasSubstr("records"));
  EXPECT_THAT(npy_error(npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", four)),
              HasSubstr("'|O'"));
  EXPECT_THAT(npy_error(npy("{'descr': '<f4, 'fortran_order'", four)), HasSubstr("malformed"));
  EXPECT_THAT(npy_error(npy(good + " 1", four)), HasSubstr("text follows"));
  EXPECT_THAT(message_of<io_error>([] { read_npy("no/such/file.npy"); }),
              HasSubstr("cannot be opened for reading"));
}

TEST(Npy, RefusesToWriteWhatIsNotAnArray) {
  Scratch const scratch;
  EXPECT_THAT(message_of<std::invalid_argument>([&] {
                write_npy(scratch.path("a.npy"), {ElementType::f32, {3}, {}});
              }),
              HasSubstr("cannot fill"));
  EXPECT_THAT(message_of<io_error>([&] {
                write_npy(scratch.path("no/a.npy"), random_array(ElementType::f32, {1}, 1));
              }),
              HasSubstr("cannot be opened for writing"));
  EXPECT_THROW(array_of<float>(ElementType::f16, {1}, {1.0f}), std::invalid_argument);
  EXPECT_THROW(random_array(ElementType::f16, {1}, 1).as<float>(), std::invalid_argument);
}

TEST(Safetensors, ReadsBackWhatItWrites) {
  Scratch const scratch;
  std::map<std::string, Array> tensors;
  unsigned seed = 0;
  for (auto const type : kAllTypes)
    for (auto const& shape : std::vector<std::vector<std::int64_t>>{{}, {7}, {3, 5}, {2, 0, 4}})
      tensors.emplace(std::string(to_string(type)) + shape_text(shape),
                      random_array(type, shape, ++seed));
  write_safetensors(scratch.path("a.safetensors"), tensors, {{"format", "pt"}});
  Safetensors const file(scratch.path("a.safetensors"));
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  EXPECT_EQ(file.tensors().size(), tensors.size());
  for (auto const& [name, array] : tensors) {
    expect_same(file.read(name), array);
    EXPECT_EQ(file.tensors().at(name).begin % size_of(array.type), 0)
        << name << " must be aligned to its element";
  }
  EXPECT_THAT(message_of<io_error>([&] { file.read("nothing"); }),
              HasSubstr("has no tensor 'nothing'; it holds 60: 'bf16"));
}

TEST(Safetensors, AFileIsNotReplacedWhereOtherTensorsWouldBeLost) {
  Scratch const scratch;
  std::string const path = scratch.path("a.safetensors");
  Array const one = random_array(ElementType::f32, {3}, 1),
              other = random_array(ElementType::f32, {3}, 2);
  write_array(path + ":x", one);
  write_array(path + ":x", other);  // the same tensor anew
  expect_same(read_array(path + ":x"), other);
  for (std::string const& name : {path + ":y", path})
    EXPECT_THAT(
        message_of<io_error>([&] { write_array(name, one); }),
        HasSubstr("holds 1 other tensor than '" + std::string(name == path ? "output" : "y") +
                  "' (x), which would be lost"));
  expect_same(read_array(path + ":x"), other);
  std::string const text = scratch.path("b.safetensors");
  std::ofstream(text) << "no tensors";
  write_array(text + ":y", one);
  expect_same(read_array(text + ":y"), one);
}

TEST(Safetensors, RefusesMalformedFilesWithASentence) {
  auto const one = [](std::string const& entry, std::string const& data) {
    return safetensors("{\"t\":" + entry + "}", data);
  };
  std::string const four(4, '\0');
  EXPECT_THAT(safetensors_error("abc"), HasSubstr("truncated"));
  EXPECT_THAT(safetensors_error(std::string(8, '\x7f')), HasSubstr("at most 100000000"));
  EXPECT_THAT(safetensors_error(safetensors("{}", "").substr(0, 9)), HasSubstr("truncated"));
  EXPECT_THAT(safetensors_error(safetensors("{", "")), HasSubstr("not JSON"));
  EXPECT_THAT(safetensors_error(safetensors("\xef\xbb\xbf{}", "")),
              HasSubstr("mark of the byte order"));
  EXPECT_THAT(safetensors_error(safetensors(std::string("{}\0{}", 5), "")),
              HasSubstr("a byte that is zero"));
  EXPECT_THAT(safetensors_error(safetensors("[]", "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(safetensors_error(safetensors("{}", "x")), HasSubstr("too long"));
  EXPECT_THAT(safetensors_error(safetensors("{\"__metadata__\":{\"a\":1}}", "")),
              HasSubstr("not a string"));
  EXPECT_THAT(safetensors_error(safetensors("{\"__metadata__\":[]}", "")),
              HasSubstr("object of strings"));
  EXPECT_THAT(safetensors_error(one("1", four)), HasSubstr("exactly the keys"));
  EXPECT_THAT(safetensors_error(one(R"({"dtype":"F32","shape":[1]})", four)),
              HasSubstr("exactly the keys"));
  EXPECT_THAT(safetensors_error(one(R"({"dtype":4,"shape":[1],"data_offsets":[0,4]})", four)),
              HasSubstr("its dtype 4 is not a string"));
  EXPECT_THAT(safetensors_error(one(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})", four)),
              HasSubstr("not a list"));
  EXPECT_THAT(safetensors_error(one(R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})", four)),
              HasSubstr("not an integer"));
  EXPECT_THAT(safetensors_error(one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", four)),
              HasSubstr("negative"));
  EXPECT_THAT(safetensors_error(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})", four)),
              HasSubstr("list of two"));
  EXPECT_THAT(safetensors_error(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", four)),
              HasSubstr("the 8 bytes"));
  EXPECT_THAT(safetensors_error(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", four)),
              HasSubstr("end before they begin"));
  EXPECT_THAT(safetensors_error(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", "\1")),
              HasSubstr("truncated"));
  EXPECT_THAT(
      safetensors_error(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})", four + four)),
      HasSubstr("hole"));
  EXPECT_THAT(safetensors_error(one(
                  R"({"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,4]})", four)),
              HasSubstr("2^62"));
  EXPECT_THAT(safetensors_error(one(
                  R"({"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,4]})", four)),
              HasSubstr("63 bits"));
  std::string const t = R"("t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_THAT(safetensors_error(safetensors("{" + t + "," + t + "}", four)),
              HasSubstr("'t' twice"));
  EXPECT_THAT(
      safetensors_error(safetensors(
          "{" + t + R"(,"u":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", four + "xx")),
      HasSubstr("overlap"));
}

// As in checkpoints of mxfp4, whose other tensors are wanted.
TEST(Safetensors, OfATypeThatIsNotKnownAreRefusedWhereTheyAreAskedFor) {
  Scratch const scratch;
  auto const with = [](std::string const& offsets, std::string const& more = "") {
    return safetensors(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                       R"("s":{"dtype":"F8_E8M0","shape":[3],"data_offsets":)" +
                           offsets + "}" + more + "}",
                       std::string("\0\0\x80\x3f", 4) + "abc");
  };
  std::string const path = scratch.file("mx.safetensors", with("[4,7]"));
  EXPECT_EQ(to_doubles(read_array(path + ":x")), std::vector<double>{1.0});
  EXPECT_EQ(describe_array(path + ":x").shape, std::vector<std::int64_t>{1});
  Safetensors const file(path);
  EXPECT_EQ(file.tensor("s").dtype, "F8_E8M0");
  EXPECT_EQ(file.tensor("s").type, std::nullopt);
  for (auto const& asked : std::vector<std::function<void()>>{[&] { read_array(path + ":s"); },
                                                              [&] { describe_array(path + ":s"); }})
    EXPECT_THAT(message_of<io_error>(asked),
                HasSubstr("tensor 's' has dtype \"F8_E8M0\"; BOOL, U8 to U64"));
  // Their bytes are the file's all the same.
  EXPECT_THAT(safetensors_error(with("[4,8]")), HasSubstr("truncated"));
  EXPECT_THAT(safetensors_error(with("[7,4]")), HasSubstr("end before they begin"));
  EXPECT_THAT(safetensors_error(with("[5,7]")), HasSubstr("hole"));
  EXPECT_THAT(safetensors_error(with("[2,7]")), HasSubstr("overlap"));
}

TEST(Safetensors, WithTheEmptyNameIsShownAndRead) {
  Scratch const scratch;
  std::string const path = scratch.path("a.safetensors");
  Array const empty = random_array(ElementType::u8, {2}, 1);
  write_safetensors(path, {{"", empty}, {"x", random_array(ElementType::u8, {3}, 2)}});
  expect_same(read_array(path + ":"), empty);
  EXPECT_THAT(message_of<io_error>([&] { read_array(path + ":y"); }),
              HasSubstr("has no tensor 'y'; it holds 2: '', 'x'."));
  EXPECT_THAT(message_of<io_error>([&] { check_array_target(scratch.path("b.safetensors:")); }),
              HasSubstr("the name behind the colon is empty"));
}

TEST(Safetensors, DeepOrWideHeadersAreRefusedOrReadAtOnce) {
  std::string const deep(100000, '[');
  EXPECT_THAT(safetensors_error(safetensors(deep, "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(safetensors_error(safetensors("{\"t\":" + deep, "")), HasSubstr("exactly the keys"));
  EXPECT_THAT(safetensors_error(safetensors("{\"t\":{\"dtype\":" + deep, "")),
              HasSubstr("its dtype [...] is not a string"));
  EXPECT_THAT(safetensors_error(safetensors("{\"t\":{\"shape\":" + deep, "")),
              HasSubstr("not an integer"));
  std::string braces;
  for (int i = 0; i < 100000; ++i) braces += "{\"a\":";
  EXPECT_THAT(safetensors_error(safetensors(braces, "")), HasSubstr("exactly the keys"));
  EXPECT_THAT(safetensors_error(safetensors("{\"__metadata__\":{\"a\":" + deep, "")),
              HasSubstr("not a string"));
  std::string ones = "1";
  for (int i = 0; i < 100; ++i) ones += ",1";
  EXPECT_THAT(safetensors_error(safetensors("{\"t\":{\"shape\":[" + ones, "")),
              HasSubstr("more than 64"));

  Scratch const scratch;
  std::map<std::string, Array> tensors;
  for (int i = 0; i < 40000; ++i)
    tensors.emplace("layer." + std::to_string(i) + ".weight",
                    random_array(ElementType::u8, {2}, 1));
  write_safetensors(scratch.path("many.safetensors"), tensors);
  EXPECT_EQ(Safetensors(scratch.path("many.safetensors")).tensors().size(), tensors.size());
}

TEST(Safetensors, SentencesShowNoControlCharactersAndNoMegabytes) {
  std::string const name = "\\u001b[31m" + std::string(1 << 20, 'x');
  std::string const message = safetensors_error(safetensors("{\"" + name + "\":1}", ""));
  EXPECT_LT(message.size(), 1000u);
  EXPECT_THAT(message, HasSubstr("'\\x1b[31mxxx"));
  Scratch const scratch;
  EXPECT_THAT(message_of<io_error>([&] {
                write_safetensors(scratch.path("a.safetensors"),
                                  {{"\xff", random_array(ElementType::f32, {1}, 1)}});
              }),
              HasSubstr("not UTF-8"));
}

TEST(Safetensors, RefusesToWriteWhatIsNotAnArray) {
  Scratch const scratch;
  EXPECT_THROW(
      write_safetensors(scratch.path("a.safetensors"), {{"t", {ElementType::f32, {3}, {}}}}),
      std::invalid_argument);
  EXPECT_THROW(write_safetensors(scratch.path("a.safetensors"),
                                 {{"__metadata__", random_array(ElementType::f32, {1}, 1)}}),
               std::invalid_argument);
}

TEST(Files, AreDescribedWithoutTheirElements) {
  Scratch const scratch;
  auto const array = random_array(ElementType::s64, {3, 5}, 4);
  for (auto const* name : {"a.npy", "b.safetensors:t"}) {
    write_array(scratch.path(name), array);
    ArrayType const described = describe_array(scratch.path(name));
    EXPECT_EQ(described.type, ElementType::s64);
    EXPECT_EQ(described.shape, array.shape);
  }
  EXPECT_EQ(file_of_array("x/b.safetensors:t"), "x/b.safetensors");
  EXPECT_THAT(message_of<io_error>([] { describe_array("weights.bin"); }),
              HasSubstr("neither a .npy"));
}

TEST(Files, OnlyRegularFilesAreRead) {
  Scratch const scratch;
  ASSERT_EQ(mkfifo(scratch.path("pipe.npy").c_str(), 0600), 0);
  EXPECT_THAT(message_of<io_error>([&] { read_array(scratch.path("pipe.npy")); }),
              HasSubstr("a pipe"));
}

/// Reads the file, whatever it holds: an array, or io_error and nothing else.
void expect_only_io_error(std::string const& path, std::string const& what) {
  try {
    if (path.ends_with(".npy")) {
      describe_npy(path);
      to_doubles(read_npy(path));
      return;
    }
    Safetensors const file(path);
    for (auto const& [name, tensor] : file.tensors()) to_doubles(file.read(name));
  } catch (io_error const&) {
  } catch (std::exception const& error) {
    ADD_FAILURE() << what << ": " << error.what();
  }
}

TEST(Files, ThatAreDamagedAtAnyPlaceGiveAnArrayOrAnIoError) {
  Scratch const scratch;
  write_npy(scratch.path("good.npy"), random_array(ElementType::f32, {2, 3}, 1));
  write_safetensors(scratch.path("good.safetensors"),
                    {{"a", random_array(ElementType::f16, {2, 3}, 1)},
                     {"b", random_array(ElementType::e4m3, {5}, 2)}},
                    {{"format", "pt"}});
  int files = 0;
  for (std::string const name : {"good.npy", "good.safetensors"}) {
    std::string const whole = tegula::testing::contents(scratch.path(name)),
                      bad = "bad" + name.substr(4);
    auto const expect = [&](std::string const& bytes, std::string const& what) {
      expect_only_io_error(scratch.file(bad, bytes), name + ", " + what);
      ++files;
    };
    for (std::size_t at = 0; at < whole.size(); ++at) {
      expect(whole.substr(0, at), "cut at byte " + std::to_string(at));
      for (char const byte : {'\0', '\xff', '\x80', '9', '-', '"', '{', '[', ',', '\\', 'e'}) {
        std::string changed = whole;
        changed[at] = byte;
        expect(changed, "byte " + std::to_string(at) + " changed");
      }
      for (char const byte : {'9', '-', '['}) {
        std::string longer = whole;
        longer.insert(at, 1, byte);
        expect(longer, "a byte more at " + std::to_string(at));
      }
    }
  }
  EXPECT_GT(files, 4000);
}

TEST(Files, AndTypesThatThereAreNotAreRefusedAsDocumented) {
  Scratch const scratch;
  auto const none = static_cast<ElementType>(77);
  Array const array = random_array(ElementType::f32, {1}, 1);
  EXPECT_THROW(size_of(none), std::invalid_argument);
  EXPECT_THROW(to_string(none), std::invalid_argument);
  EXPECT_THROW((Array{ElementType::f32, {-2, -3}, {}}.size()), std::invalid_argument);
  EXPECT_THROW((Array{ElementType::f32, {std::int64_t{1} << 62, 4}, {}}.size()),
               std::invalid_argument);
  EXPECT_THROW(array_of<float>(ElementType::f32, {-2, -3}, std::vector<float>(6)),
               std::invalid_argument);
  for (std::string const name : {"x.npy", "x.safetensors"}) {
    std::string const path = scratch.path(name);
    EXPECT_THROW(write_array(path, {none, {1}, array.data}), std::invalid_argument);
    EXPECT_THROW(write_array(path, {ElementType::f32, {-1}, array.data}), std::invalid_argument);
    EXPECT_THROW(write_array(path, {ElementType::f32, {std::int64_t{1} << 62, 4}, array.data}),
                 std::invalid_argument);
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  for (std::string const name :
       {"", ":", ".npy", ".safetensors", "x.safetensors:", "npy", "x.npy:t"}) {
    EXPECT_THROW(read_array(scratch.path(name)), io_error) << name;
    EXPECT_THROW(describe_array(scratch.path(name)), io_error) << name;
  }
  EXPECT_THROW(read_array(std::string("x.npy\0.npy", 10)), io_error);
  EXPECT_THROW(read_array(std::string(100000, 'x') + ".npy"), io_error);
}

TEST(Files, AreChosenByName) {
  Scratch const scratch;
  auto const array = random_array(ElementType::f16, {4, 6}, 3);
  for (auto const* name : {"a.npy", "b.safetensors", "c.safetensors:layer.0.weight"}) {
    write_array(scratch.path(name), array);
    expect_same(read_array(scratch.path(name)), array);
  }
  EXPECT_EQ(Safetensors(scratch.path("c.safetensors")).tensors().begin()->first, "layer.0.weight");
  EXPECT_THAT(message_of<io_error>([&] { read_array("weights.bin"); }),
              HasSubstr("neither a .npy"));
  EXPECT_THAT(message_of<io_error>([&] { write_array("weights.bin", array); }),
              HasSubstr("neither a .npy"));
  write_safetensors(scratch.path("two.safetensors"), {{"a", array}, {"b", array}});
  EXPECT_THAT(message_of<io_error>([&] { read_array(scratch.path("two.safetensors")); }),
              HasSubstr("say which"));
}

TEST(Array, WidensExactly) {
  auto const doubles = [](ElementType type, std::vector<std::uint16_t> const& bits) {
    return to_doubles(array_of(type, {static_cast<std::int64_t>(bits.size())}, bits));
  };
  EXPECT_EQ(doubles(ElementType::f16, {0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0x8000}),
            (std::vector<double>{1, -2, std::ldexp(1, -24), 65504, INFINITY, -0.0}));
  EXPECT_TRUE(std::isnan(doubles(ElementType::f16, {0x7e00})[0]));
  EXPECT_TRUE(std::signbit(doubles(ElementType::f16, {0x8000})[0]));
  EXPECT_EQ(doubles(ElementType::bf16, {0x3f80, 0x0001, 0xff80}),
            (std::vector<double>{1, std::ldexp(1, -133), -INFINITY}));
  auto const fp8 = [](ElementType type, std::vector<std::uint8_t> const& bits) {
    return to_doubles(array_of(type, {static_cast<std::int64_t>(bits.size())}, bits));
  };
  EXPECT_EQ(fp8(ElementType::e4m3, {0x38, 0x7e, 0x01}),
            (std::vector<double>{1, 448, std::ldexp(1, -9)}));
  EXPECT_TRUE(std::isnan(fp8(ElementType::e4m3, {0xff})[0]));
  EXPECT_EQ(fp8(ElementType::e5m2, {0x3c, 0x7b, 0x7c, 0x01}),
            (std::vector<double>{1, 57344, INFINITY, std::ldexp(1, -16)}));
  EXPECT_EQ(to_floats(array_of<std::int64_t>(ElementType::s64, {2}, {-3, 1 << 20})),
            (std::vector<float>{-3, 1 << 20}));
}

}  // namespace
}  // namespace tegula::io
