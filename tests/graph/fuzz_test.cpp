// fuzz_test.cpp: mutated model files and expressions through the API in one process: a model or an Error, nothing else.
// The short run is part of the tests; the long one: GRAPHRUN_FUZZ=100000 test_graph --gtest_filter='Fuzz*'.
// tests/fuzz has an entry for libFuzzer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "bad_cases.h"
#include "graphrun/error.h"
#include "graphrun/show.h"
#include "support/rounds.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_of(const std::vector<std::string>& folders) {
  std::vector<fs::path> paths;
  for (const std::string& folder : folders) {
    for (const fs::directory_entry& entry : fs::directory_iterator(source_folder() + folder)) {
      const std::string name = entry.path().filename().string();
      if (entry.path().extension() == ".json" && !name.ends_with(".schema.json")) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const fs::path& path : paths) texts.push_back(test::content_of(path));
  return texts;
}

// Pieces that make something of what bytes alone would not.
const std::vector<std::string> kPieces = {"\"x\"",
                                          "\"y\"",
                                          "null",
                                          "true",
                                          "-1",
                                          "0",
                                          "1",
                                          "1e308",
                                          "1e-320",
                                          "9223372036854775807",
                                          "1099511627776",
                                          "[]",
                                          "{}",
                                          "[[",
                                          "]]",
                                          "{",
                                          "}",
                                          ",",
                                          ":",
                                          "\"",
                                          "\\u0041",
                                          "\\ud83d\\ude00",
                                          "\"batch\"",
                                          "\"dense\"",
                                          "\"op\"",
                                          "\"name\"",
                                          "\"init\"",
                                          "\"normal\"",
                                          "(",
                                          ")",
                                          "^",
                                          "**",
                                          " @ ",
                                          "-",
                                          "not ",
                                          " and ",
                                          "==",
                                          "<",
                                          "pi",
                                          "sum(",
                                          "mean(",
                                          "reshape(x, shape=[-1, 1])",
                                          "slice(x, axis=1, start=0, stop=1)",
                                          "softmax(",
                                          "argmax(",
                                          ", axis=1",
                                          ", axis=[0, 1]",
                                          ", keepdims=true",
                                          "transpose(",
                                          "concat(",
                                          "x",
                                          "W",
                                          "h",
                                          "loss",
                                          "1/3",
                                          "e",
                                          "\xC3\xBC",
                                          "\n",
                                          "\"graph\"",
                                          "\"train\"",
                                          "\"inputs\"",
                                          "dropout(x, rate=0.5)",
                                          "random_normal(x)",
                                          "split(x, parts=2, index=0)"};

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

  std::string mutated(std::string text, const std::vector<std::string>& corpus) {
    const std::size_t times = 1 + below(3) * below(2);
    for (std::size_t i = 0; i < times; ++i) once(text, corpus);
    return text;
  }

 private:
  // Where tokens begin, more likely than anywhere.
  std::size_t place(const std::string& text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t token = text.find_first_of("\"[{:,(+*@ ", at);
    return below(2) == 0 || token == std::string::npos ? at : token;
  }

  void once(std::string& text, const std::vector<std::string>& corpus) {
    const std::size_t at = place(text);
    const std::size_t length = below(3) == 0 ? below(40) : 1 + below(3);
    switch (below(10)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(std::min(at, text.size()), length));
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 3:
        text.replace(at, std::min(length, text.size() - at), kPieces[below(kPieces.size())]);
        break;
      case 4: {
        const std::string& other = corpus[below(corpus.size())];
        text.insert(at, other.substr(below(other.size() + 1), below(80)));
        break;
      }
      case 5:
        text.resize(below(8) == 0 ? at : text.size());
        break;
      case 6:
        if (at < text.size() && text[at] >= '0' && text[at] <= '9') text[at] = static_cast<char>('0' + below(10));
        text.insert(at, kPieces[below(kPieces.size())]);
        break;
      case 7:
      case 8:
        swap_token(text, corpus);
        break;
      default:
        text.insert(at, kPieces[below(kPieces.size())]);
    }
  }

  // A number by another number, or a quoted text by another: what comes is often a model.
  void swap_token(std::string& text, const std::vector<std::string>& corpus) {
    const bool number = below(2) == 0;
    const auto token = [&](const std::string& from) -> std::pair<std::size_t, std::size_t> {
      const std::size_t begin =
          number ? from.find_first_of("0123456789", below(from.size() + 1)) : from.find('"', below(from.size() + 1));
      if (begin == std::string::npos) return {from.size(), from.size()};
      const std::size_t end = number ? from.find_first_not_of("0123456789.e", begin) : from.find('"', begin + 1);
      return {begin, end == std::string::npos ? from.size() : end + (number ? 0 : 1)};
    };
    const std::string& other = corpus[below(corpus.size())];
    const auto [begin, end] = token(text);
    const auto [from, to] = token(other);
    text.replace(begin, end - begin, other.substr(from, to - from));
  }

  std::mt19937 random_;
};

void expect_a_good_error(const Error& error, const std::string& text) {
  ASSERT_FALSE(error.diagnostics().empty()) << text;
  for (const Diagnostic& d : error.diagnostics()) {
    ASSERT_FALSE(d.code.empty()) << text;
    ASSERT_FALSE(d.message.empty()) << text;
  }
}

TEST(Fuzz, ModelFiles) {
  const std::vector<std::string> models = files_of({"/models"});
  std::vector<std::string> corpus = files_of({"/models", "/tests/graph/failures"});
  for (test::BadCase& bad : test::bad_cases()) corpus.push_back(std::move(bad.text));
  const test::TemporaryFolder folder;
  const int n = test::rounds(1000);
  int good = 0;
  for (int i = 0; i < n; ++i) {
    Mutator mutator(static_cast<unsigned>(i));
    const std::string text = mutator.mutated(
        (i % 4 == 0 ? corpus : models)[mutator.below(i % 4 == 0 ? corpus.size() : models.size())], corpus);
    const std::string path = folder.write("model.json", text);
    try {
      const std::string canonical = canonical_model(path);
      ++good;
      show_model(path, {}, {.gradients = true, .dot = true});
      folder.write("model.json", canonical);
      ASSERT_EQ(canonical_model(path), canonical) << text;
    } catch (const Error& error) {
      ASSERT_NO_FATAL_FAILURE(expect_a_good_error(error, text));
    } catch (const std::exception& error) {
      FAIL() << error.what() << "\nround " << i << "\n" << text;
    }
  }
  EXPECT_GT(good, n / 50);
  EXPECT_LT(good, n * 9 / 10);
}

TEST(Fuzz, PastFailures) {
  const test::TemporaryFolder folder;
  const std::vector<std::string> failures = files_of({"/tests/graph/failures"});
  ASSERT_GE(failures.size(), 10u);
  for (const std::string& text : failures) {
    const std::string path = folder.write("model.json", text);
    for (const auto& read :
         {+[](const std::string& p) { check_model(p); }, +[](const std::string& p) { canonical_model(p); },
          +[](const std::string& p) { show_model(p, {}, {.gradients = true, .dot = true}); }}) {
      try {
        read(path);
      } catch (const Error& error) {
        ASSERT_NO_FATAL_FAILURE(expect_a_good_error(error, text));
      } catch (const std::exception& error) {
        FAIL() << error.what() << "\n" << text;
      }
    }
  }
}

TEST(Fuzz, Expressions) {
  const std::vector<std::string> corpus = {"tanh(x @ W + b)",
                                           "mean(square(x - y))",
                                           "-x^2 + gain * 3 ** -1",
                                           "where(x > 0 and not y < 1, x, 0.5)",
                                           "sum(x, axis=[0, 1], keepdims=true)",
                                           "softmax_cross_entropy(x @ W, c)",
                                           "reshape(x, shape=[-1, 2, 3])",
                                           "concat(x, y, axis=1)",
                                           "transpose(W)",
                                           "x * [1, 2, 3, 4, 5, 6]",
                                           "variance(x, axis=0)",
                                           "clip(x, low=-1, high=1)",
                                           "one_hot(c, classes=3)",
                                           "cast(x > 0, dtype=f32)",
                                           "slice(x, axis=1, start=0, stop=3)"};
  const int n = test::rounds(5000, 20000);
  int good = 0;
  for (int i = 0; i < n; ++i) {
    Mutator mutator(static_cast<unsigned>(i) + 1000000u);
    const std::string text = mutator.mutated(corpus[mutator.below(corpus.size())], corpus);
    GraphBuilder builder(16);
    builder.input("x", {kBatch, 6});
    builder.input("y", {kBatch, 6});
    builder.input("c", {kBatch}, DType::i32);
    builder.parameter("W", {6, 3});
    builder.parameter("b", {3});
    try {
      builder.expression(text);
      ++good;
    } catch (const Error& error) {
      ASSERT_NO_FATAL_FAILURE(expect_a_good_error(error, text));
    } catch (const std::exception& error) {
      FAIL() << error.what() << "\nround " << i << "\n" << text;
    }
  }
  EXPECT_GT(good, n / 50);
}

}  // namespace
}  // namespace graphrun
