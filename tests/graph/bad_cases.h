// bad_cases.h: the invalid model files of bad/, each with its expected errors in bad/NAME.txt. A file is either
// NAME.json, or base.json with the patch at the top of NAME.txt: each block of '-' lines, found once, becomes the '+'
// lines after it.
#pragma once

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun::test {

struct BadCase {
  std::string name, text, patch, expected;

  std::filesystem::path golden() const { return source_folder() + "/tests/graph/bad/" + name + ".txt"; }
};

// Replaces one block of lines, which must occur once.
inline void replace_block(std::string& text, const std::string& name, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (from.empty() || at == std::string::npos || text.find(from, at + 1) != std::string::npos)
    throw std::logic_error(name + ".txt: base.json does not contain exactly once\n" + from);
  text.replace(at, from.size(), to);
}

inline BadCase bad_case(const std::filesystem::path& golden) {
  BadCase bad;
  bad.name = golden.stem().string();
  bad.text = content_of(std::filesystem::path(golden).replace_extension(".json"));
  const bool patched = bad.text.empty();
  if (patched) bad.text = content_of(golden.parent_path() / "base.json");
  std::istringstream lines(content_of(golden));
  std::string from, to;
  for (std::string line; std::getline(lines, line);) {
    const char kind = line.empty() ? ' ' : line[0];
    if (kind == '-' ? !to.empty() : kind != '+' && !from.empty())
      replace_block(bad.text, bad.name, std::exchange(from, ""), std::exchange(to, ""));
    if (kind == '-') from += line.substr(1) + "\n";
    if (kind == '+') to += line.substr(1) + "\n";
    (kind == '-' || kind == '+' ? bad.patch : bad.expected) += line + "\n";
  }
  if (!from.empty()) replace_block(bad.text, bad.name, from, to);
  return bad;
}

inline std::vector<BadCase> bad_cases() {
  std::vector<BadCase> cases;
  for (const auto& file : std::filesystem::directory_iterator(source_folder() + "/tests/graph/bad")) {
    if (file.path().extension() == ".txt") cases.push_back(bad_case(file.path()));
  }
  std::ranges::sort(cases, {}, &BadCase::name);
  return cases;
}

inline void PrintTo(const BadCase& bad, std::ostream* out) {
  *out << bad.name;
}

}  // namespace graphrun::test
