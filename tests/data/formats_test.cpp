// IDX, NPY, NPZ and CSV: values, and error messages for truncated files and false headers.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "archives.h"
#include "data/csv/csv.h"
#include "data/formats/idx.h"
#include "data/formats/npy.h"
#include "data_fixture.h"

namespace graphrun {
namespace {

using namespace test;

template <class F>
std::string message(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// ---- IDX

TEST_F(DataTest, IdxPlainAndCompressed) {
  inputs = {{"x", Shape{2, 2}, DType::f32, false}, {"y", Shape{}, DType::i32, true}};
  write("x.idx", idx(0x08, {2, 2, 2}, "\x01\x02\x03\x04\xff\x06\x07\x08"));
  write("y.gz", gzip(idx(0x08, {2}, "\x05\x09")));
  const std::string block = R"({"train": {"idx": {"x": "x.idx", "y": "y.gz"}}})";
  EXPECT_EQ(values(read(block), "train", "x"), (Floats{1, 2, 3, 4, 255, 6, 7, 8}));
  EXPECT_EQ(elements<std::int32_t>(read(block), "train", "y"), (std::vector<std::int32_t>{5, 9}));
}

TEST_F(DataTest, IdxTypesAreBigEndian) {
  inputs = {{"x", Shape{}, DType::f32, false}};
  write("i8", idx(0x09, {1}, "\xff"));
  write("i16", idx(0x0B, {1}, "\xff\xfe"));
  write("i32", idx(0x0C, {1}, std::string("\x00\x01\x00\x00", 4)));
  write("f32", idx(0x0D, {1}, std::string("\x3f\x80\x00\x00", 4)));
  write("f64", idx(0x0E, {1}, std::string("\x40\x00\x00\x00\x00\x00\x00\x00", 8)));
  const std::vector<std::pair<std::string, float>> expected = {
      {"i8", -1}, {"i16", -2}, {"i32", 65536}, {"f32", 1}, {"f64", 2}};
  for (const auto& [name, value] : expected)
    EXPECT_EQ(values(read(R"({"train": {"idx": {"x": ")" + name + "\"}}}"), "train", "x"), Floats{value}) << name;
}

TEST_F(DataTest, IdxFilesThatLie) {
  const auto says = [&](const std::string& bytes) {
    write("a", bytes);
    std::string text = message([&] { data::read_idx_file(path("a")); });
    return text.substr(text.find(folder()) == 1 ? folder().size() + 3 : 0);
  };
  EXPECT_EQ(says("\x89PNG"), "': not an IDX file: it does not begin with two zero bytes");
  EXPECT_EQ(says(idx(0x07, {1}, "a")), "': IDX type 0x07 is not known");
  EXPECT_EQ(says(idx(0x08, {}, "a")), "': IDX rank must be from 1 to 8, got 0");
  EXPECT_EQ(says(std::string("\0\0\x08\x02\0\0", 6)), "': the IDX header is cut short");
  EXPECT_EQ(says(idx(0x08, {2, 3}, "abc")), "': the IDX header says (2, 3) and 18 bytes, but the file ends after 15");
  EXPECT_EQ(says(idx(0x08, {2}, "abc")), "': the IDX header says (2) and 10 bytes, but the file has more");
  EXPECT_EQ(says(gzip(idx(0x08, {2}, "abc"))), "': the IDX header says (2) and 10 bytes, but the file has more");
  // A terabyte is announced and must not be allocated.
  EXPECT_EQ(says(gzip(idx(0x08, {1u << 20, 1u << 20}, "abc"))),
            "': the IDX header says (1048576, 1048576) and 1099511627788 bytes, but the file ends after 15");
  EXPECT_EQ(says(idx(0x08, {~0u, ~0u, ~0u}, "")), "': the extents of the IDX header are not credible");
  const std::string whole = gzip(idx(0x08, {1000}, std::string(1000, 'a')));
  EXPECT_EQ(says(whole.substr(0, whole.size() - 12)).substr(0, 36), "': the compressed data end too early");
}

// ---- NPY and NPZ

TEST_F(DataTest, NpyTypes) {
  inputs = {{"x", Shape{2}, DType::f32, false}};
  const std::vector<std::pair<std::string, std::string>> files = {
      {"<f4", raw<float>({1, 2})},         {"<f8", raw<double>({1, 2})},
      {"|u1", raw<std::uint8_t>({1, 2})},  {"|i1", raw<std::int8_t>({1, 2})},
      {"<i2", raw<std::int16_t>({1, 2})},  {"<u2", raw<std::uint16_t>({1, 2})},
      {"<i4", raw<std::int32_t>({1, 2})},  {"<u4", raw<std::uint32_t>({1, 2})},
      {"<i8", raw<std::int64_t>({1, 2})},  {"<u8", raw<std::uint64_t>({1, 2})},
      {">i2", std::string("\0\1\0\2", 4)}, {"<f2", raw<std::uint16_t>({0x3C00, 0x4000})}};
  for (const auto& [type, bytes] : files) {
    write("x.npy", npy(type, "(1, 2)", bytes));
    EXPECT_EQ(values(read(R"({"train": {"npy": {"x": "x.npy"}}})"), "train", "x"), (Floats{1, 2})) << type;
  }
}

TEST_F(DataTest, NpyHalfPrecision) {
  const std::string bytes = raw<std::uint16_t>({0x0001, 0x8400, 0x7BFF, 0x3555, 0xFC00, 0x7E00});
  const data::Array array = data::parse_npy("a.npy", npy("<f2", "(6,)", bytes));
  const auto& got = std::get<Floats>(array.values);
  EXPECT_EQ(Floats(got.begin(), got.begin() + 5),
            (Floats{0x1p-24f, -0x1p-14f, 65504, 0.333251953125f, -std::numeric_limits<float>::infinity()}));
  EXPECT_TRUE(std::isnan(got[5]));
}

TEST_F(DataTest, NpyInFortranOrder) {
  const auto array = [](const std::string& shape, const std::string& order) {
    return data::parse_npy("a.npy",
                           npy("|u1", shape, raw<std::uint8_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), order));
  };
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(std::get<Bytes>(array("(4, 3)", "True").values), (Bytes{1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12}));
  EXPECT_EQ(std::get<Bytes>(array("(2, 3, 2)", "True").values), (Bytes{1, 7, 3, 9, 5, 11, 2, 8, 4, 10, 6, 12}));
  EXPECT_EQ(std::get<Bytes>(array("(12,)", "True").values), std::get<Bytes>(array("(12,)", "False").values));
}

TEST_F(DataTest, GapsOfArrays) {
  inputs = {{"x", Shape{2}, DType::f32, false}, {"y", {}, DType::f32, false}};
  constexpr float kGap = std::numeric_limits<float>::quiet_NaN();
  write("x.npy", npy("<f4", "(4, 2)", raw<float>({1, 10, kGap, 20, 3, kGap, 8, 60})));
  write("y.npy", npy("<f4", "(4,)", raw<float>({1, 2, 3, 4})));
  const auto block = [](const std::string& missing) {
    return R"({"source": {"npy": {"x": "x.npy", "y": "y.npy"}, "missing": )" + missing +
           R"(, "range": [0, 3]}, "transform": {}})";
  };
  EXPECT_EQ(values(read(block("\"mean\"")), "train", "x"), (Floats{1, 10, 2, 20, 3, 15}));
  EXPECT_EQ(values(read(block("{\"x\": 7}")), "train", "x"), (Floats{1, 10, 7, 20, 3, 7}));
  EXPECT_EQ(read(block("\"mean\"")).warnings.front(),
            "column 'x': 2 missing values became the mean of the training rows");
  EXPECT_NE(errors(block("\"error\"")).find("row 1, column 0: nan is not a finite number"), std::string::npos);
  EXPECT_NE(errors(block("{\"z\": 7}")).find("no column 'z'"), std::string::npos);
  const DataSet kept = read(R"({"train": {"npy": {"x": "x.npy", "y": "y.npy"}, "missing": "drop"}})");
  EXPECT_EQ(values(kept, "train", "x"), (Floats{1, 10, 8, 60}));
  EXPECT_EQ(values(kept, "train", "y"), (Floats{1, 4}));
  EXPECT_EQ(kept.warnings.front(), "2 of 4 rows lack a value and are left out");
  for (const std::string& y :
       {npy("<f4", "(3,)", raw<float>({1, 2, 3})), npy("<f4", "(5,)", raw<float>({1, kGap, 3, 4, 5}))}) {
    write("y.npy", y);
    for (const char* missing : {"\"drop\"", R"({"y": "drop"})"}) {
      const std::string text =
          errors(R"({"train": {"npy": {"x": "x.npy", "y": "y.npy"}, "missing": )" + std::string(missing) + "}}");
      EXPECT_NE(text.find("rows"), std::string::npos) << "rows that do not belong together are paired: " << missing;
    }
  }
  write("x.npy", npy("<f4", "(1, 2)", raw<float>({1, kGap})));
  write("y.npy", npy("<f4", "(1,)", raw<float>({1})));
  EXPECT_NE(
      errors(R"({"train": {"npy": {"x": "x.npy", "y": "y.npy"}, "missing": "drop"}})").find("\"drop\" leaves none"),
      std::string::npos);
  EXPECT_NE(errors(R"({"train": {"npy": {"x": "x.npy", "y": "y.npy"}, "missing": "mean"}})")
                .find("column 'x[1]' has no value in the training rows"),
            std::string::npos);
}

TEST_F(DataTest, NpyFilesThatLie) {
  const auto says = [](const std::string& bytes) { return message([&] { data::parse_npy("a.npy", bytes); }); };
  const std::string good = npy("<f4", "(2,)", raw<float>({1, 2}));
  EXPECT_EQ(says(good), "no error");
  EXPECT_EQ(says("hello"), "'a.npy': not an NPY array");
  EXPECT_EQ(says(good.substr(0, 50)), "'a.npy': the NPY header is cut short");
  EXPECT_EQ(says(good.substr(0, good.size() - 1)),
            "'a.npy': the NPY header says (2) of '<f4', but 7 bytes of values follow");
  EXPECT_EQ(says(npy("<f4", "(4611686018427387904, 4)", "")),
            "'a.npy': the NPY header says (4611686018427387904, 4) of '<f4', but 0 bytes of values follow");
  EXPECT_EQ(says(npy("<c8", "(2,)", "abcd")), "'a.npy': dtype '<c8' is not supported");
  EXPECT_EQ(says(npy("|S10", "(2,)", "abcd")), "'a.npy': dtype '|S10' is not supported");
  EXPECT_EQ(says(npy("<f4", "(-1,)", "abcd")), "'a.npy': the shape in the NPY header is damaged");
  EXPECT_EQ(says(npy("<i8", "(1,)", raw<std::int64_t>({(std::int64_t{1} << 60) + 1}))),
            "'a.npy': 1152921504606846977 is too large an integer");
}

TEST_F(DataTest, NpzStoredAndDeflated) {
  inputs = {{"x", Shape{2}, DType::f32, false}};
  for (const int method : {0, 8}) {
    write("a.npz", zip("x.npy", npy("<f4", "(1, 2)", raw<float>({3, 4})), method));
    EXPECT_EQ(values(read(R"({"train": {"npz": "a.npz"}})"), "train", "x"), (Floats{3, 4})) << method;
  }
  write("a.npz", zip("images.npy", npy("<f4", "(1, 2)", raw<float>({3, 4})), 0));
  EXPECT_EQ(values(read(R"({"train": {"npz": "a.npz", "x": "images"}})"), "train", "x"), (Floats{3, 4}));
  EXPECT_EQ(errors(R"({"train": {"npz": "a.npz", "x": "image"}})"),
            "model.json:1:34: /train/x: no column 'image'; the source has images\n"
            "    {\"train\": {\"npz\": \"a.npz\", \"x\": \"image\"}}\n"
            "                                     ^\n"
            "    hint: did you mean 'images'?");
}

TEST_F(DataTest, NpzFilesThatLie) {
  const std::string good = zip("x.npy", npy("<f4", "(1, 2)", raw<float>({3, 4})), 0);
  const auto says = [&](const std::string& bytes) {
    write("a.npz", bytes);
    const std::string text = message([&] { data::Npz(path("a.npz")).read("x"); });
    const std::size_t at = text.find("': ");
    return at == std::string::npos ? text : text.substr(at + 3, text.find('\n') - at - 3);
  };
  EXPECT_EQ(says(good), "no error");
  EXPECT_EQ(says("PK"), "not an NPZ file: the directory of the zip is missing");
  EXPECT_EQ(says(good.substr(0, good.size() - 30)), "not an NPZ file: the directory of the zip is missing");
  EXPECT_EQ(says(good.substr(100)), "the directory of the zip is damaged");
  std::string flipped = good;
  flipped[180] ^= 1;
  EXPECT_EQ(says(flipped), "the checksum does not match: the array is damaged");
  std::string lying = good;
  lying.replace(good.find("PK\x01\x02") + 20, 8, "\xff\xff\xff\x7f\xff\xff\xff\x7f");
  EXPECT_EQ(says(lying), "'x.npy' overlaps the directory of the zip");
  write("b.npz", good);
  EXPECT_EQ(message([&] { data::Npz(path("b.npz")).read("y"); }).substr(folder().size() + 2),
            "b.npz' has no array 'y'");
}

TEST_F(DataTest, RowsWithoutElementsAreNoRows) {
  inputs = {{"x", Shape{2}, DType::f32, false}};
  const auto says = [&](const std::string& bytes, const char* source) {
    write("a", bytes);
    return errors(std::string(R"({"source": {")") + source + R"(": {"x": "a"}}, "split": [0.5, 0.25, 0.25]})");
  };
  EXPECT_NE(says(npy("<f4", "(4611686018427387904, 0)", ""), "npy").find("bytes of values follow"), std::string::npos);
  EXPECT_NE(says(npy("<f4", "(4294967296, 0)", ""), "npy").find("its rows have no elements"), std::string::npos);
  EXPECT_NE(says(npy("<f4", "(0, 4611686018427387904, 4611686018427387904)", ""), "npy").find("bytes of values follow"),
            std::string::npos);
  EXPECT_NE(says(npy("<f4", "(0, 2)", ""), "npy").find("the source has no rows"), std::string::npos);
  EXPECT_NE(says(npy("!f4", "(1, 2)", raw<float>({3, 4})), "npy").find("dtype '!f4' is not supported"),
            std::string::npos);
  EXPECT_NE(says(idx(0x08, {4000000000, 0}, ""), "idx").find("the IDX header declares no values"), std::string::npos);
}

// Any byte of a good file may be wrong: an error or other numbers, but nothing worse. (Sanitizers look on.)
TEST_F(DataTest, DamagedFilesNeverDoHarm) {
  const std::string files[] = {gzip(idx(0x08, {2, 3}, "abcdef")), idx(0x0C, {2}, "abcdefgh"),
                               npy("<f4", "(1, 2)", raw<float>({3, 4})),
                               zip("x.npy", npy("<f4", "(1, 2)", raw<float>({3, 4})), 8)};
  for (const std::string& good : files) {
    int rejected = 0;
    for (std::size_t i = 0; i < good.size(); ++i) {
      for (const int flip : {0x01, 0x80, 0xff}) {
        std::string bad = good;
        bad[i] = static_cast<char>(bad[i] ^ flip);
        write("a", bad);
        try {
          if (good[0] == 'P')
            data::Npz(path("a")).read("x");
          else if (good[0] == '\x93')
            data::parse_npy("a", bad);
          else
            data::read_idx_file(path("a"));
        } catch (const Error&) {
          ++rejected;
        }
      }
    }
    EXPECT_GT(rejected, 0);
  }
}

// ---- CSV

TEST_F(DataTest, CsvListsAndTheColumnsThatAreLeft) {
  write("a.csv",
        "\xEF\xBB\xBF"
        "id,\"a\",\"b, \"\"c\"\"\",price\r\nfirst, 1 ,+2,3\r\n\"se\ncond\",4,\"5\",-6e0\r\n");
  const DataSet set = read(R"({"train": {"csv": "a.csv", "x": ["b, \"c\"", "a"], "y": ["price"]}})");
  EXPECT_EQ(values(set, "train", "x"), (Floats{2, 1, 5, 4}));
  EXPECT_EQ(values(set, "train", "y"), (Floats{3, -6}));
  write("b.csv", "1;2;3\n4;5;6");
  const DataSet left = read(R"({"train": {"csv": "b.csv", "header": false, "delimiter": ";", "y": "1"}})");
  EXPECT_EQ(values(left, "train", "x"), (Floats{1, 3, 4, 6}));
  EXPECT_EQ(values(left, "train", "y"), (Floats{2, 5}));
}

TEST_F(DataTest, CsvMissingValues) {
  write("a.csv", "name,a,b,y\nu,1,NA,3\n,4,5,6\nv,?,2,9\nw,7,5,\n\n");
  const auto block = [](const char* policy) {
    return std::string(R"({"train": {"csv": "a.csv", "x": ["a", "b"], "y": ["y"], "missing": ")") + policy + "\"}}";
  };
  const DataSet mean = read(block("mean"));
  EXPECT_EQ(values(mean, "train", "x"), (Floats{1, 4, 4, 5, 4, 2, 7, 5}));
  EXPECT_EQ(values(mean, "train", "y"), (Floats{3, 6, 9, 6}));
  EXPECT_EQ(mean.warnings,
            (std::vector<std::string>{"column 'a': 1 missing value became the mean of the training rows, 4",
                                      "column 'b': 1 missing value became the mean of the training rows, 4",
                                      "column 'y': 1 missing value became the mean of the training rows, 6"}));
  // A column that nobody uses loses no row.
  const DataSet drop = read(block("drop"));
  EXPECT_EQ(values(drop, "train", "x"), (Floats{4, 5}));
  EXPECT_EQ(values(drop, "train", "y"), (Floats{6}));
  EXPECT_EQ(drop.warnings, (std::vector<std::string>{"3 of 4 rows lack a value and are left out"}));
  EXPECT_NE(errors(block("error")).find("DIR/a.csv:4:3: row 2, column 'a': the value is missing"), std::string::npos);
  EXPECT_NE(errors(block("means")).find("did you mean 'mean'?"), std::string::npos);
  write("a.csv", "a,b,y\n1,,3\n4,,6\n");
  EXPECT_NE(errors(block("mean")).find("column 'b' has no value in the training rows"), std::string::npos);
  EXPECT_NE(errors(block("drop")).find("/train/csv: every row lacks a value"), std::string::npos);
  EXPECT_EQ(values(read(R"({"train": {"csv": "a.csv", "x": ["a", "a"], "y": "y", "missing": "drop"}})"), "train", "y"),
            (Floats{3, 6}));
}

TEST_F(DataTest, CsvSpacesAroundQuotes) {
  write("a.csv", "\"a\", \"b, c\" ,\t\"y\"\n1, \"2\" , \"3\"\n4 ,  \"5\",\"6\"  \n");
  const DataSet set = read(R"({"train": {"csv": "a.csv", "x": ["a", "b, c"], "y": "y"}})");
  EXPECT_EQ(values(set, "train", "x"), (Floats{1, 2, 4, 5}));
  EXPECT_EQ(values(set, "train", "y"), (Floats{3, 6}));
  write("a.csv", "a\t \"b\"\ty\n\t2\t3\n");  // a tab as delimiter is not trimmed
  EXPECT_EQ(errors(R"({"train": {"csv": "a.csv", "delimiter": "\t", "x": ["a", "b"], "y": "y"}})").substr(0, 54),
            "DIR/a.csv:2:1: row 0, column 'a': the value is missing");
  write("a.csv", "a,b,y\n1, \"2\" 3,4\n");
  EXPECT_EQ(errors(R"({"train": {"csv": "a.csv", "y": "y"}})"),
            "DIR/a.csv:2:8: expected the end of the field after the closing quote");
}

// Two columns of one name are an error where the name is used.
TEST_F(DataTest, CsvNamesThatAreRepeated) {
  write("a.csv", "id,a,note,b,note,y,,\n1,1,x,4,u,7,k,1\n2,2,x,5,v,8,k,2\n");
  const char* unused = R"({"train": {"csv": "a.csv", "x": ["a", "b"], "y": "y"}})";
  EXPECT_EQ(values(read(unused), "train", "x"), (Floats{1, 4, 2, 5}));
  for (const char* block : {R"({"train": {"csv": "a.csv", "x": ["a", "note"], "y": "y"}})",
                            R"({"train": {"csv": "a.csv", "x": ["a", "b"], "y": "note"}})",
                            R"({"train": {"csv": "a.csv", "x": ["a", "b + note"], "y": "y"}})",
                            R"js({"train": {"csv": "a.csv", "x": ["a", "days(note)"], "y": "y"}})js",
                            R"({"source": {"csv": "a.csv", "x": ["a", "b"], "y": "y"}, "split": [0.5, 0, 0.5],
                                "stratify": "note"})",
                            R"({"train": {"csv": "a.csv", "y": "y"}})"})
    EXPECT_NE(errors(block).find("a.csv:1:13: there are two columns 'note'"), std::string::npos)
        << block << errors(block);
  const std::string nameless = errors(R"({"train": {"csv": "a.csv", "x": ["a", ""], "y": "y"}})");
  EXPECT_NE(nameless.find("1:21: there are two columns without a name"), std::string::npos) << nameless;
}

// Words that mark missing values are names in the header.
TEST_F(DataTest, CsvNamesThatMarkMissingValues) {
  write("a.csv", "NA,NaN,null\n1,2,3\n");
  EXPECT_EQ(values(read(R"({"train": {"csv": "a.csv", "y": "null"}})"), "train", "x"), (Floats{1, 2}));
}

TEST_F(DataTest, CsvLinesThatEndWithDelimiters) {
  const char* block = R"({"train": {"csv": "a.csv", "y": "y"}})";
  for (const char* text : {"a,b,y\n1,2,3,\n4,5,6,\n", "a,b,y,\n1,2,3,\n4,5,6,\n", "a,b,y,,\n1,2,3,,\n4,5,6, ,\n",
                           "a,b,y,\n1,2,3\n4,5,6\n", "a,b,y,\n1,2,3,,\n4,5,6,,\n"}) {
    write("a.csv", text);
    const DataSet set = read(block);
    EXPECT_EQ(values(set, "train", "x"), (Floats{1, 2, 4, 5})) << text;
    EXPECT_EQ(values(set, "train", "y"), (Floats{3, 6})) << text;
  }
  for (const auto& [text, says] :
       {std::pair{"a,b,y\n1,2,3,\n4,5,6\n", "3:1: expected 3 fields, then empty ones as in the first row, got 3"},
        {"a,b,y\n1,2,3\n4,5,6,\n", "3:1: expected 3 fields as in the first line, got 4"},
        {"a,b,y\n1,2,3,\n4,5,6,7\n", "3:1: expected 3 fields, then empty ones as in the first row, got 4"},
        {"a,b,y\n1,2,3,9\n4,5,6,7\n", "2:1: expected 3 fields as in the first line, got 4"}}) {
    write("a.csv", text);
    EXPECT_NE(errors(block).find(says), std::string::npos) << errors(block);
  }
}

TEST_F(DataTest, CsvExcelSaysTheDelimiter) {
  const char* block = R"({"train": {"csv": "a.csv", "y": "y"}})";
  for (const char* text : {"sep=;\r\na;b;y\r\n1;2;3\r\n", "sep=\t\na\tb\ty\n1\t2\t3\n",
                           "\xEF\xBB\xBFSEP=|\ra|b|y\r1|2|3\r", "sep=,\na,b,y\n1,2,3\n"}) {
    write("a.csv", text);
    EXPECT_EQ(values(read(block), "train", "x"), (Floats{1, 2})) << text;
  }
  write("a.csv", "sep=;\na;b;y\n1;2;x\n");
  EXPECT_NE(errors(block).find("a.csv:3:5: row 0, column 'y': expected a number"), std::string::npos);
}

// Sizes: the time is measured elsewhere; here that what many rows give is right.
TEST_F(DataTest, CsvOfManyRows) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 20000; ++i) text += std::to_string(i) + ", -0." + std::to_string(i % 10) + "e1,+7\n";
  write("a.csv", text);
  const DataSet set = read(R"({"train": {"csv": "a.csv", "y": "y"}})");
  const Floats x = values(set, "train", "x");
  ASSERT_EQ(x.size(), 40000u);
  for (std::size_t i = 0; i < 20000; ++i) {
    ASSERT_EQ(x[2 * i], static_cast<float>(i));
    ASSERT_EQ(x[2 * i + 1], -static_cast<float>(i % 10));
  }
}

TEST_F(DataTest, CsvErrorsHaveLineAndColumn) {
  const auto says = [&](const std::string& text) {
    write("a.csv", text);
    return errors(R"({"train": {"csv": "a.csv", "y": ["y"]}})");
  };
  const std::string words = "\n    hint: words become numbers by \"transform\": {\"y\": [\"one_hot\"]}";
  EXPECT_EQ(says("a,b,y\n1,2,3\n4,,6\n"),
            "DIR/a.csv:3:3: row 1, column 'b': the value is missing\n"
            "    hint: \"missing\": {\"b\": \"mean\"} or \"drop\" next to the file name handles it");
  EXPECT_EQ(says("a,b,y\r\n1,2,3\r\n\r\n\r\n4,5,x\r\n"),
            "DIR/a.csv:5:5: row 1, column 'y': expected a number, got 'x'" + words);
  EXPECT_EQ(says("a,b,y\r1,2,3\r4,5,x\r"), "DIR/a.csv:3:5: row 1, column 'y': expected a number, got 'x'" + words);
  EXPECT_EQ(says("\"a\",b,y\n\"1\",2,3\n4,\" 5\n\",\"a \"\"b\"\"\n\"\n"),
            "DIR/a.csv:3:3: row 1, column 'b': expected a number, got '5\n    '\n"
            "    hint: words become numbers by \"transform\": {\"b\": [\"one_hot\"]}\n"
            "DIR/a.csv:4:3: row 1, column 'y': expected a number, got 'a \"b\"\n    '" +
                words);
  EXPECT_EQ(says("a,b,y\n1,2,inf\n"), "DIR/a.csv:2:5: row 0, column 'y': 'inf' is not a finite number");
  EXPECT_EQ(says("a,b,y\n1,2,3\n4,5,six\n"), "DIR/a.csv:3:5: row 1, column 'y': expected a number, got 'six'" + words);
  EXPECT_EQ(says("a,b,y\n1,2,1e999\n"), "DIR/a.csv:2:5: row 0, column 'y': '1e999' is out of range");
  EXPECT_EQ(says("a,b,y\n1,2\n"), "DIR/a.csv:2:1: expected 3 fields as in the first line, got 2");
  EXPECT_EQ(says("a,b,y\n1,2,\"3\n"), "DIR/a.csv:2:5: the quote is never closed");
  EXPECT_EQ(says("a,b,y\n1,2,\"3\"4\n"), "DIR/a.csv:2:8: expected the end of the field after the closing quote");
  EXPECT_EQ(says("a,a,y\n1,2,3\n"),
            "DIR/a.csv:1:3: there are two columns 'a'\n    hint: each used column needs a unique name; if "
            "the first line is a row, put a line of names above it");
  EXPECT_EQ(says("a,b,y\n").substr(0, 60), "model.json:1:19: /train/csv: 'DIR/a.csv': the file has no ro");
  write("a.csv", "a,b,y\n1,2,3\n");
  write("a.csv", std::string("a,b,y\n1,2,3\0\n", 13));
  EXPECT_NE(errors(R"({"train": {"csv": "a.csv"}})").find("'DIR/a.csv' is not a text file: byte 11 is 0"),
            std::string::npos);
  write("a.csv", "a,b,y\n1,2,3\n");
  EXPECT_NE(errors(R"({"train": {"csv": "a.csv"}})").find("only one input can take the columns that are left"),
            std::string::npos);
  EXPECT_NE(errors(R"({"train": {"csv": "a.csv", "y": ["z"]}})").find("no column 'z'; the source has a, b, y"),
            std::string::npos);
  EXPECT_NE(errors(R"({"train": {"csv": "a.csv", "y": ["y"], "delimiter": ",,"}})").find("must be one character"),
            std::string::npos);
}

// ---- pipes

// Two splits name one file, which is a pipe: it gives its bytes once.
TEST_F(DataTest, SplitsMayShareAPipe) {
  inputs = {{"x", Shape{}, DType::f32, false}};
  const std::string array = npy("<f4", "(3,)", raw({1.0f, 2.0f, 3.0f}));
  const std::vector<std::array<std::string, 3>> formats = {
      {"csv", R"("DIR/pipe")", "x\n1\n2\n3\n"},
      {"json", R"("DIR/pipe")", R"({"m": 3, "n": 1, "x": [1, 2, 3], "y": [0, 0, 0]})"},
      {"idx", R"({"x": "DIR/pipe"})", idx(0x08, {3}, "\x01\x02\x03")},
      {"npy", R"({"x": "DIR/pipe"})", array},
      {"npz", R"("DIR/pipe")", zip("x.npy", array, 8)}};
  for (const std::array<std::string, 3>& format : formats) {
    const std::string& name = format[0];
    SCOPED_TRACE(name);
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    std::thread writer([&] {
      std::ofstream(path("pipe"), std::ios::binary) << format[2];
      std::ofstream nothing_more(path("pipe"));  // when it is opened again
    });
    std::string from = format[1];
    from.replace(from.find("DIR"), 3, folder());
    const auto split = [&](const char* range) { return "{\"" + name + "\": " + from + ", \"range\": " + range + "}"; };
    try {
      const DataSet set = read("{\"train\": " + split("[0, 2]") + ", \"test\": " + split("[2, 3]") + "}");
      EXPECT_EQ(values(set, "train", "x"), (Floats{1, 2}));
      EXPECT_EQ(values(set, "test", "x"), (Floats{3}));
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    const int end = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);  // lets the writer go
    writer.join();
    ::close(end);
    ::unlink(path("pipe").c_str());
  }
}

}  // namespace
}  // namespace graphrun
