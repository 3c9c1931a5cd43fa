// reference_test.cpp: model-format.md and data.md against the schema and the registries.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/json.h"
#include "base/json_text.h"
#include "data/sources/sources.h"
#include "data/transforms/transforms.h"
#include "graphrun/error.h"
#include "graphrun/show.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

std::string page(const std::string& name) {
  std::ifstream file(source_folder() + "/docs/reference/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string section(const std::string& text, const std::string& heading) {
  const std::size_t begin = text.find("\n" + heading + "\n");
  if (begin == std::string::npos) throw std::logic_error("no heading " + heading);
  return text.substr(begin, text.find("\n## ", begin + 4) - begin);
}

// "| `key` | default | …": key and default of each row.
std::map<std::string, std::string> rows(const std::string& text) {
  std::map<std::string, std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end_of_key = line.find("` | "), end = line.find(" |", end_of_key + 4);
    if (!line.starts_with("| `") || end_of_key == std::string::npos || end == std::string::npos) continue;
    found[line.substr(3, end_of_key - 3)] = line.substr(end_of_key + 4, end - end_of_key - 4);
  }
  return found;
}

const json::Value& at(const json::Value& value, std::initializer_list<const char*> path) {
  const json::Value* v = &value;
  for (const char* key : path) v = &v->find(key)->value;
  return *v;
}

// A model that says no more than it must, with the defaults it gets.
json::Value defaults() {
  const std::string text = R"json({
    "format": 1, "data": {"train": {"inline": {"x": [1], "y": [2]}}}, "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
    "parameters": {"w": {"shape": [1, 1], "init": "zeros"}}, "graph": ["p = x @ w", "loss = mse(p, y)"],
    "outputs": {"p": "y"}, "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 1}}}})json";
  return json::parse("canonical", canonical_model(test::write_model(text))).root;
}

void expect_documented(const std::string& heading, const json::Value& schema, const json::Value& canonical) {
  const std::map<std::string, std::string> documented = rows(section(page("model-format.md"), heading));
  std::set<std::string> required;
  if (const json::Member* list = schema.find("required")) {
    for (const json::Value& key : list->value.items) required.insert(key.string);
  }
  std::set<std::string> keys, wanted;
  for (const auto& [key, text] : documented) keys.insert(key);
  for (const json::Member& member : at(schema, {"properties"}).members) {
    const std::string& key = member.key;
    wanted.insert(key);
    if (!documented.contains(key)) continue;
    const std::string& said = documented.at(key);
    EXPECT_EQ(said == "required", required.contains(key)) << heading << " " << key;
    const json::Member* value = canonical.find(key);
    const bool has_default = value && !said.starts_with("required") && heading != "## The file";
    if (!has_default) continue;
    std::string text = json::text(value->value);
    text.pop_back();
    EXPECT_EQ(said, "`" + text + "`") << heading << " " << key;
  }
  EXPECT_EQ(keys, wanted) << heading;
}

TEST(Reference, EveryKeyWithItsDefault) {
  const json::Value schema = json::parse("schema", model_schema()).root;
  const json::Value canonical = defaults();
  expect_documented("## The file", schema, canonical);
  const json::Value& input = at(schema, {"properties", "inputs", "additionalProperties", "anyOf"}).items.at(1);
  expect_documented("## `inputs`", input, at(canonical, {"inputs", "x"}));
  expect_documented("## `parameters`", at(schema, {"properties", "parameters", "additionalProperties"}),
                    at(canonical, {"parameters", "w"}));
  const json::Value none = json::make_object();
  expect_documented("## `states`", at(schema, {"properties", "states", "additionalProperties"}), none);
  expect_documented("## `objectives`",
                    at(schema, {"properties", "train", "properties", "objectives", "additionalProperties"}), none);
  expect_documented("## `train`", at(schema, {"properties", "train"}), at(canonical, {"train"}));
}

TEST(Reference, EveryPieceOfData) {
  const std::string text = page("data.md");
  const auto expect_named = [&](std::string_view name) {
    const bool found = text.find("`" + std::string(name) + "`") != std::string::npos ||
                       text.find("`\"" + std::string(name) + "\"") != std::string::npos ||
                       text.find("{\"" + std::string(name) + "\"") != std::string::npos;
    EXPECT_TRUE(found) << name;
  };
  for (const data::SourceFormat& format : data::source_formats()) {
    expect_named(format.name);
    for (const data::Doc& option : format.options) expect_named(option.name);
  }
  for (const data::Doc& option : data::common_options()) expect_named(option.name);
  for (const data::TransformDoc& transform : data::transform_docs()) expect_named(transform.name);
  for (const data::Doc& distribution : data::distribution_docs()) expect_named(distribution.name);
}

// A page that shows a model shows one that works.
TEST(Reference, ExamplesAreAccepted) {
  const std::string text = page("model-format.md");
  const std::size_t begin = text.find("```json\n") + 8;
  const std::string example = text.substr(begin, text.find("```", begin) - begin);
  try {
    EXPECT_EQ(check_model(test::write_model(example)).name, "mnist_mlp");
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

}  // namespace
}  // namespace graphrun
