#include "cli/studio/printed_command.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/command_line/stored_arguments.h"

namespace graphrun::cli {
namespace {

std::string quoted_word(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=/.,:@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string made = "'";
  for (const char c : word) made += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return made + "'";
}

}  // namespace

std::string command_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + quoted_word(word);
  return line;
}

// Includes the flags that determine how the training runs.
std::string training_command(const Arguments& arguments, const std::string& run) {
  namespace fs = std::filesystem;
  const std::string parent = fs::path(arguments.model).parent_path().string();
  std::vector<std::string> words = {"graphrun", "train",
                                    run.empty() ? arguments.model : (fs::path(run) / "model.json").string()};
  if (!run.empty()) {
    // The environment's data folder is not needed: it still applies, after the model's folder.
    words.insert(words.end(), {"--data-dir", is_given(arguments.load.data_dir) ? arguments.load.data_dir
                                             : parent.empty()                  ? "."
                                                                               : parent});
  }
  if (arguments.session.executor != "cpu") words.insert(words.end(), {"--executor", arguments.session.executor});
  if (arguments.session.threads > 0)
    words.insert(words.end(), {"--threads", fmt::format("{}", arguments.session.threads)});
  return command_line(words);
}

}  // namespace graphrun::cli
