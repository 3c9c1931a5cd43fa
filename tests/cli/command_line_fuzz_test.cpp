// command_line_fuzz_test.cpp: random command lines in a temporary folder: each ends with a documented exit code, none
// with a signal. The short run is part of the tests; the long one: GRAPHRUN_FUZZ=100000 test_command_line.
// GRAPHRUN_FUZZ_SEED selects other command lines.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command_line/flags.h"
#include "cli/command_line/verbs.h"
#include "support/temporary_folder.h"

int graphrun_main(int argc, char** argv);

namespace graphrun::testing {
namespace {

constexpr const char* kModel = R"json({
  "format": 1, "name": "line",
  "data": {"train": {"inline": {"x": [[0], [1], [2], [3]], "y": [[1], [3], [5], [7]]}},
           "test": {"inline": {"x": [[4], [5]], "y": [[9], [11]]}}},
  "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
  "graph": [{"name": "p", "op": "dense", "inputs": ["x"], "units": 1}, "dead = x * 2", "loss = mean((p - y) ^ 2)"],
  "outputs": {"p": "y"},
  "train": {"minimize": "loss", "metrics": ["rmse"], "optimizer": {"sgd": {"lr": 0.05}}, "epochs": 2}
})json";

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// The line that is running, where the parent can read it when its child has died.
struct Shared {
  char line[4096];
};

class Words {
 public:
  explicit Words(unsigned seed) : random_(seed) {}

  std::vector<std::string> line() {
    std::vector<std::string> words;
    if (chance(9)) words.push_back(chance(9) ? std::string(one_of(verb_names_)) : value("VERB"));
    if (chance(9)) words.push_back(value("MODEL"));
    if (chance(3)) words.push_back(value("FILE"));
    for (std::size_t n = below(5); n > 0; --n) add_flag(words);
    if (!words.empty() && (words[0] == "bench" || words[0] == "time")) words.push_back("--steps=2");  // not two seconds
    if (words.size() > 1 && chance(1)) std::swap(words[below(words.size())], words.front());
    return words;
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  bool chance(std::size_t tenths) { return below(10) < tenths; }
  template <class T>
  const typename T::value_type& one_of(const T& list) {
    return list[below(list.size())];
  }

  void add_flag(std::vector<std::string>& words) {
    const cli::Flag& flag = cli::flags()[below(cli::flags().size())];
    std::string name(chance(8) || flag.letter.empty() ? flag.name : flag.letter);
    if (below(30) == 0) name += "x";
    if (flag.value.empty() && below(20) != 0) return words.push_back(name);
    // Keep durations short.
    const bool counts = flag.value == "N" || flag.value == "X";
    const std::string text = value(counts ? "N" : std::string(flag.value));
    if (chance(5)) return words.push_back(name + "=" + text);
    words.push_back(name);
    if (below(20) != 0) words.push_back(text);
  }

  std::string value(const std::string& kind) {
    static const std::vector<std::string> numbers = {
        "0",  "1",    "2",  "3",  "7",  "1e-3", "0.5", "-1", "", "nan", "inf", "all", "99999999999999999999999",
        "1x", "0x10", " 1", "1 ", "+1", "-0"};
    static const std::vector<std::string> odd = {
        "",     " ",  "\x1b[2J", "a\nb", "\xff\xfe", "%s%n",  "../x",    ".", "/", "-", "--", std::string(3000, 'a'),
        "null", "{}", "[",       "\"",   "=",        "a=b=c", "\xc2\x9b"};
    static const std::vector<std::string> files = {"line.json", "line.json",   "line.json", "rows.csv",     "w.npz",
                                                   "out.csv",   "out.npz",     "folder",    "folder/a.npz", "none",
                                                   "none/a",    "bad.json",    "spam.json", "empty.json",   "/dev/null",
                                                   "/dev/full", "/dev/stdout", "link.json"};
    static const std::vector<std::string> settings = {
        "train.batch=1",
        "train.batch=all",
        "train.seed=-1",
        "train.optimizer={\"adam\": {}}",
        "train.optimizer.sgd.lr=1e38",
        "graph.0.units=0",
        "graph.p.units=3",
        "graph=[]",
        "inputs={}",
        "a.b.c=1",
        ".=1",
        "=",
        "x",
        "train=null",
        "train.batch=1e18",
        "graph.7=1",
        "name=\"\\u001b\"",
        "description=\xff",
        "outputs=[\"p\", \"p\"]",
        "train.clip_norm=nan",
        "data.train.inline.x=[[1e308]]",
        "train.optimizer.sgd.lr={\"cosine\": {\"from\": 1, \"to\": 0, \"epochs\": 2}}"};
    static const std::vector<std::string> names = {"ref",         "cpu",    "cuda", "cuda:1", "auto", "host",    "h200",
                                                   "p",           "x",      "y",    "loss",   "dead", "train/p", "p.W",
                                                   "batch.count", "text",   "json", "plain",  "avx2", "avx512",  "bash",
                                                   "zsh",         "./x.so", "tain", "help",   "adam"};
    if (below(12) == 0) return one_of(odd);
    if (kind == "N") return one_of(numbers);
    if (kind == "PATH=VALUE") return one_of(settings);
    if (kind == "MODEL") return chance(8) ? "line.json" : one_of(files);
    if (kind == "FILE" || kind == "FOLDER") return one_of(files);
    return chance(8) ? one_of(names) : one_of(files);
  }

  std::mt19937 random_;
  std::vector<std::string> verb_names_ = [] {
    std::vector<std::string> names = cli::verb_names();
    std::erase(names, "studio");  // runs until Ctrl-C
    return names;
  }();
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += " '" + word + "'";
  return text;
}

void write_files(const test::TemporaryFolder& folder) {
  folder.write("line.json", kModel);
  folder.write("rows.csv", "x,y\n1,2\n3,4\n");
  folder.write("bad.json", "{\"format\": 1, \"graph\": [\"a = \\u001b[2J\\u0000 b\"]}");
  folder.write("spam.json", R"({"m": 2, "n": 1, "x": [1, 2], "y": [0, 1]})");
  folder.write("empty.json", "");
  folder.write("folder/a.json", "[]");
}

// In the child process: discards output and reads no input.
[[noreturn]] void run_lines(unsigned first, unsigned count,
                            const std::function<std::vector<std::string>(unsigned)>& line,
                            const test::TemporaryFolder& folder, Shared& shared) {
  std::filesystem::current_path(folder.path());
  const int nowhere = open("/dev/null", O_RDWR);
  for (int descriptor = 0; descriptor < 3; ++descriptor) dup2(nowhere, descriptor);
  const std::set<int> documented = {0, 1, 2, 3, 4, 130};
  for (unsigned i = first; i < first + count; ++i) {
    if (i % 20 == 0) write_files(folder);
    std::vector<std::string> words = line(i);
    std::strncpy(shared.line, (std::to_string(i) + ":" + joined(words)).c_str(), sizeof shared.line - 1);
    words.insert(words.begin(), "graphrun");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int code = graphrun_main(static_cast<int>(words.size()), argv.data());
    if (!documented.contains(code)) _exit(99);
  }
  _exit(0);
}

// Runs what `lines(i)` gives for i in [first, first + count), in a child.
void expect_documented(unsigned first, unsigned count, const std::function<std::vector<std::string>(unsigned)>& line) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Shared& shared = *static_cast<Shared*>(memory);
  const test::TemporaryFolder folder;
  write_files(folder);
  std::filesystem::create_symlink("line.json", folder.path() / "link.json");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) run_lines(first, count, line, folder, shared);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status) << " at " << shared.line;
  EXPECT_EQ(status, 0) << "at " << shared.line;
  munmap(memory, sizeof(Shared));
}

TEST(CommandLine, PastFailures) {
  std::ifstream file(GRAPHRUN_PAST_FAILURES);
  std::vector<std::vector<std::string>> lines;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    lines.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  ASSERT_GE(lines.size(), 10u);
  expect_documented(0, static_cast<unsigned>(lines.size()), [&](unsigned i) { return lines[i]; });
}

TEST(CommandLine, RandomLinesEndWithADocumentedExitCode) {
  const auto rounds = static_cast<unsigned>(from_environment("GRAPHRUN_FUZZ", 400));
  const auto seed = static_cast<unsigned>(from_environment("GRAPHRUN_FUZZ_SEED", 0));
  constexpr unsigned kBatch = 200;
  for (unsigned first = seed; first < seed + rounds && !HasFailure(); first += kBatch) {
    expect_documented(first, std::min(kBatch, seed + rounds - first), [](unsigned i) { return Words(i).line(); });
  }
}

}  // namespace
}  // namespace graphrun::testing

// The trainings of a sweep are processes of the program that runs, by this name: here they must not be the tests again.
int main(int argc, char** argv) {
  if (std::strcmp(argv[0], "graphrun") == 0) return graphrun_main(argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
