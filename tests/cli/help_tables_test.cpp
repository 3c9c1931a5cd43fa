// help_tables_test.cpp: the help and the man page contain every row of the tables of flags, variables and exit codes.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "cli/command_line/help.h"
#include "cli/command_line/man.h"

namespace graphrun::testing {
namespace {

// The line of a flag in a help text, without its indentation; empty if the flag is not listed.
std::string_view line_of(std::string_view help, const cli::Flag& flag) {
  const std::string start = "\n  " + cli::flag_name(flag);
  for (std::size_t at = help.find(start); at != std::string_view::npos; at = help.find(start, at + 1)) {
    const std::string_view line = help.substr(at + 3, help.find('\n', at + 1) - at - 3);
    if (line[start.size() - 3] == ' ') return line;
  }
  return {};
}

// The help of some commands shortens the groups Model and Execution: train and a topic list all of them.
TEST(HelpTables, EachCommandListsItsFlags) {
  const std::string others =
      cli::help_text(*cli::find_verb("train")) + cli::topic_text("execution") + cli::topic_text("logs");
  for (const cli::Verb& verb : cli::verbs()) {
    const std::string own = cli::help_text(verb);
    for (const cli::Flag& flag : cli::flags()) {
      SCOPED_TRACE(fmt::format("{} {}", verb.name, flag.name));
      const std::string_view line = line_of(own, flag);
      const bool is_shortened = flag.group == "Model" || flag.group == "Execution" || flag.group == "Logs";
      if (!cli::belongs(flag, verb.name)) {
        EXPECT_EQ(line, "");
      } else if (!line.empty()) {
        EXPECT_TRUE(line.ends_with(" " + cli::help_of(flag, verb.name))) << line;
      } else {
        EXPECT_TRUE((is_shortened && !line_of(others, flag).empty()) || flag.name == "--verbose");
      }
    }
  }
}

TEST(HelpTables, EveryFlagHasATextAndACommandThatExists) {
  for (const cli::Flag& flag : cli::flags()) {
    SCOPED_TRACE(flag.name);
    EXPECT_FALSE(flag.help.empty());
    EXPECT_TRUE(std::ranges::any_of(cli::verbs(), [&](const cli::Verb& v) { return cli::belongs(flag, v.name); }));
    EXPECT_EQ(std::ranges::count(cli::flags(), flag.name, &cli::Flag::name), 1);
  }
}

std::string in_roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '-' ? "\\-" : std::string(1, c);
  return escaped;
}

TEST(HelpTables, TheManPageListsFlagsVariablesAndExitCodes) {
  const std::string manual = cli::manual(), topics = cli::topic_text("environment");
  for (const cli::Flag& flag : cli::flags()) {
    EXPECT_NE(manual.find("\\fB" + in_roff(cli::flag_name(flag)) + "\\fR"), std::string::npos) << flag.name;
    if (flag.variable.empty()) continue;
    EXPECT_NE(manual.find(flag.variable), std::string::npos) << flag.name;
    EXPECT_NE(topics.find(flag.variable), std::string::npos) << flag.name;
  }
  for (const cli::ExitCode code :
       {cli::kDone, cli::kRunFailed, cli::kBadInput, cli::kCheckFailed, cli::kNoDevice, cli::kInterrupted}) {
    EXPECT_TRUE(std::ranges::any_of(cli::exit_codes(), [&](const cli::HelpRow& row) {
      return row.name == std::to_string(static_cast<int>(code));
    })) << code;
  }
}

}  // namespace
}  // namespace graphrun::testing
