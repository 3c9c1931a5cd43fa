// The suite iterates over the registries, so it registers its tests at startup instead of by macros.
// graphrun-conformance --executor=./x.so is this program as installed; it tests only that executor.
#include <cstdio>
#include <string_view>

#include "conformance/suite.h"
#include "conformance/table.h"
#include "graphrun/error.h"

namespace {

constexpr const char* kUsage =
    "graphrun-conformance --executor=NAME: tests an executor, by name or as a plug-in (./x.so, ./x.so:ARGUMENT).\n"
    "  Values   each op that it supports, on samples, against the reference: values, rows past the batch, NaN, bytes\n"
    "           beside the result, a second run\n"
    "  Aliases  ops that may work in place or are views\n"
    "  Runs     whole models: verify (steps alone, phases at once, run(n) beside n steps, predictions of full and "
    "partial\n"
    "           batches), two loads at once, rows written, polled values\n"
    "What it declines is listed at the end. Exit code 0: nothing failed. --gtest_filter='Values.*/matmul/*' picks "
    "tests.\n"
    "Without --executor: the executors of the library, and the suite itself.\n\n";

// Parses the arguments; returns 0, or an exit code after reporting an error.
int read_words(int argc, char** argv) {
  constexpr std::string_view kFlag = "--executor=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with(kFlag)) {
      std::fprintf(stderr, "graphrun-conformance: unknown argument '%s'\n%s", argv[i], kUsage);
      return 2;
    }
    try {
      graphrun::test::test_only(graphrun::find_executor(word.substr(kFlag.size())));
    } catch (const graphrun::Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return error.kind() == graphrun::ErrorKind::device ? 4 : 2;
    }
    if (GTEST_FLAG_GET(filter) == "*") GTEST_FLAG_SET(filter, "Values.*:Aliases.*:Runs.*");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--help") std::fputs(kUsage, stdout);
  }
  ::testing::InitGoogleTest(&argc, argv);
  if (const int wrong = read_words(argc, argv)) return wrong;
  graphrun::test::register_values();
  graphrun::test::register_aliases();
  graphrun::test::register_gradients();
  graphrun::test::register_runs();
  const int result = RUN_ALL_TESTS();
  std::fputs(graphrun::test::table_text().c_str(), stdout);
  return result;
}
