// schema_test.cpp: the JSON Schema against the reader, both ways; the committed copies of what is generated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/json.h"
#include "base/json_text.h"
#include "graph/frontend/format/fields.h"
#include "graphrun/error.h"
#include "graphrun/show.h"
#include "support/json_schema.h"
#include "support/rounds.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

namespace fs = std::filesystem;
using json::Kind;

void expect_generated(const fs::path& path, const std::string& text) {
  if (std::getenv("GRAPHRUN_WRITE_GOLDEN")) std::ofstream(path) << text;
  EXPECT_EQ(test::content_of(path), text) << path << " is stale";
}

TEST(Generated, Schema) {
  expect_generated(source_folder() + "/models/graphrun.schema.json", model_schema());
}

TEST(Generated, OpReference) {
  expect_generated(source_folder() + "/docs/reference/ops.md", op_reference());
}

TEST(Generated, KernelReference) {
  expect_generated(source_folder() + "/docs/internals/kernels.md", kernel_reference());
}

// The tables of keys in model-format.md, each the first one under its heading.
TEST(Generated, KeyTables) {
  const std::string path = source_folder() + "/docs/reference/model-format.md";
  std::string page = test::content_of(path);
  const auto replace = [&](const std::string& heading, const Fields& fields) {
    const std::size_t begin = page.find("| key |", page.find("\n" + heading + "\n"));
    const std::size_t end = page.find("|\n\n", begin);
    ASSERT_NE(end, std::string::npos) << heading;
    page.replace(begin, end + 2 - begin, key_table(fields));
  };
  replace("## The file", file_fields());
  replace("## `inputs`", input_fields());
  replace("## `parameters`", parameter_fields());
  replace("## `states`", state_fields());
  replace("## `train`", train_fields());
  replace("## `objectives`", objective_fields());
  replace("## `early_stopping`", early_stopping_fields());
  replace("## `lr_plateau`", lr_plateau_fields());
  replace("## `stop_at`", stop_at_fields());
  replace("## `threshold`", threshold_fields());
  expect_generated(path, page);
}

// One of everything, valid.
const std::string kRich = R"json({
  "$schema": "graphrun.schema.json",
  "format": 1,
  "name": "rich",
  "description": "d",
  "constants": {"gain": 1.5},
  "data": {
    "train": {"csv": "a.csv", "header": true, "rows": 10, "range": [0, 10], "x": ["a", "b"], "y": "c"},
    "validation": {"grid": {"u": [0, 1, 3], "v": [0, 1, 2]}, "x": ["u", "v"], "y": "u"},
    "test": {"random": {"rows": 5, "seed": 1, "columns": {"a": {"normal": [0, 1], "shape": [2]}, "b": {"uniform": [0, 1]}}},
             "x": "a", "y": "b"},
    "transform": {"x": ["standardize"], "y": [{"scale": 0.5}]}
  },
  "inputs": {"x": ["batch", 2], "y": {"dtype": "f32", "shape": ["batch", 1]}},
  "parameters": {
    "W": {"shape": [2, 3], "init": {"uniform": [-1, 1]}, "decay": false},
    "V": {"shape": [2, 3], "init": {"normal": 1e0}},
    "b": {"shape": [3], "init": [0, 1.5, 2], "trainable": true}
  },
  "states": {"m": {"shape": [3]}, "k": {"shape": [], "init": {"constant": 1}}},
  "graph": [
    "h = tanh(x @ W + x @ V + b)",
    {"name": "s", "op": "sum", "inputs": ["h"], "axis": 1, "keepdims": true},
    {"name": "l", "op": "leaky_relu", "inputs": ["h"], "slope": 0.1},
    {"name": "c", "op": "concat", "inputs": ["h", "l"], "axis": 1},
    {"name": "d", "op": "dense", "inputs": ["c"], "units": 4, "activation": "relu", "init": "ones", "bias": false},
    {"name": "y_hat", "op": "dense", "inputs": ["d"], "units": 1, "activation": null, "trainable": true},
    {"name": "y_too", "op": "dense", "inputs": ["d"], "share": "y_hat"},
    "assign(m, 0.9 * m + 0.1 * mean(h, axis=0))",
    "assign(k, k * 0.5, after=true)",
    "spread = mean(square(s))",
    "loss = mse(y_hat, y) + mean(s)"
  ],
  "outputs": {"y_hat": "y"},
  "train": {
    "minimize": "loss",
    "metrics": ["mse", "spread"],
    "optimizer": {"adam": {"lr": {"cosine": {"from": 0.1, "to": 0, "epochs": 10, "warmup": 2}}, "beta1": 0.8}},
    "batch": 5, "last_batch": "drop", "epochs": 3, "shuffle": true, "seed": 1, "clip_norm": 1.5,
    "evaluate_every": 1, "log_every": 1
  }
})json";

// The same with two objectives.
std::string of_objectives() {
  std::string text = kRich;
  const std::size_t begin = text.find("    \"minimize\""), end = text.find("    \"batch\"");
  return text.replace(begin, end - begin, R"json(
    "objectives": {"one": {"minimize": "loss", "parameters": ["W", "d"], "optimizer": {"sgd": {"lr": 0.1}}},
                   "two": {"minimize": "spread", "parameters": ["b"], "optimizer": {"adam": {"lr": 0.1}}}},
    "metrics": ["mse"],
)json");
}

std::vector<Diagnostic> reader_says(const json::Value& document, bool with_files = true) {
  static const test::TemporaryFolder folder;
  std::string csv = "a,b,c\n";
  for (int row = 0; row < 10; ++row) csv += std::to_string(row) + "," + std::to_string(row % 3) + ",1\n";
  folder.write("a.csv", csv);
  const std::string path = folder.write("model.json", json::text(document));
  try {
    if (with_files) load_model(path);
    check_model(path);
  } catch (const Error& error) {
    return error.diagnostics();
  }
  return {};
}

std::string all(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics) text += d.code + " " + to_string(d) + "\n";
  return text;
}

const json::Value& schema() {
  static const json::Value root = json::parse("schema", model_schema()).root;
  return root;
}

json::Value parsed(const std::string& text) {
  return json::parse("model", text).root;
}

std::vector<json::Value> good_documents() {
  std::vector<json::Value> documents = {parsed(kRich), parsed(of_objectives())};
  for (const fs::directory_entry& entry : fs::directory_iterator(source_folder() + "/models")) {
    const std::string file = entry.path().filename().string();
    if (entry.path().extension() != ".json" || file.ends_with(".schema.json")) continue;
    documents.push_back(parsed(test::content_of(entry.path())));
    documents.push_back(parsed(canonical_model(entry.path().string())));
  }
  return documents;
}

TEST(Schema, EveryAcceptedModelValidates) {
  for (const json::Value& document : good_documents()) {
    EXPECT_EQ(test::violation(schema(), document), "") << json::text(document);
    EXPECT_TRUE(reader_says(document, false).empty()) << all(reader_says(document, false));
  }
}

// Whether a mistake is one that a schema can name: it needs no knowledge of names, shapes and other values.
bool expressible(const Diagnostic& d) {
  static const std::set<std::string> kCodes = {"model.unknown_key", "model.missing_key", "model.type",
                                               "model.range",       "attribute.missing", "attribute.value",
                                               "json.type",         "model.format",      "model.dtype",
                                               "model.optimizer",   "model.schedule",    "model.value"};
  if (!kCodes.contains(d.code)) return false;
  if (d.pointer.starts_with("/data")) return false;  // what beside a source is an input's name only the file knows
  const bool in_text = d.pointer.starts_with("/graph/") && d.source_line.find("= ") != std::string::npos &&
                       std::count(d.pointer.begin(), d.pointer.end(), '/') == 2 && d.code == "attribute.value";
  return !in_text;
}

// Every third document, under a sanitizer every tenth; at night all.
struct Tally {
  const int every = test::all_cases() ? 1 : test::is_too_slow() ? 10 : 3;
  int documents = 0, both = 0, reader_only = 0, neither = 0;
};

void compare(const json::Value& document, const std::string& what, Tally& tally) {
  if (tally.documents++ % tally.every != 0) return;
  const std::string wrong = test::violation(schema(), document);
  const std::vector<Diagnostic> found = reader_says(document);
  EXPECT_FALSE(!wrong.empty() && found.empty()) << what << ": the schema alone rejects it: " << wrong;
  const bool says = std::any_of(found.begin(), found.end(), expressible);
  EXPECT_FALSE(says && wrong.empty()) << what << ": the reader alone rejects it: " << all(found);
  (wrong.empty() ? found.empty() ? tally.neither : tally.reader_only : tally.both)++;
}

// Applies each mutation to each value below, one at a time.
void mutate(json::Value& root, json::Value& value, const std::string& at, Tally& tally) {
  static const char* const kOthers[] = {"null", "true", "-3", "2.5", "\"zzz\"", "[]", "[\"zzz\"]", "{\"zzz\": 1}"};
  if (&value != &root) {
    const json::Value kept = value;
    for (const char* other : kOthers) {
      value = parsed(other);
      compare(root, at + " := " + other, tally);
    }
    value = kept;
  }
  for (std::size_t i = 0; i < value.members.size(); ++i) {
    mutate(root, value.members[i].value, at + "/" + value.members[i].key, tally);
    const json::Member kept = value.members[i];
    value.members.erase(value.members.begin() + static_cast<std::ptrdiff_t>(i));
    compare(root, at + " without " + kept.key, tally);
    value.members.insert(value.members.begin() + static_cast<std::ptrdiff_t>(i), kept);
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    mutate(root, value.items[i], at + "/" + std::to_string(i), tally);
  }
  if (value.kind == Kind::object) {
    for (const char* more : {"1", "\"zzz\""}) {
      json::add(value, "zzz_unknown", parsed(more));
      compare(root, at + " with an unknown key " + more, tally);
      value.members.pop_back();
    }
  }
}

TEST(Schema, AgreesWithTheReaderOnMutations) {
  Tally tally;
  json::Value rich = parsed(kRich);
  ASSERT_TRUE(reader_says(rich).empty()) << all(reader_says(rich));
  mutate(rich, rich, "", tally);
  json::Value several = parsed(of_objectives());
  ASSERT_TRUE(reader_says(several).empty()) << all(reader_says(several));
  json::Value& train = several.members[static_cast<std::size_t>(several.find("train") - several.members.data())].value;
  mutate(several, train, "/train", tally);
  EXPECT_GT(tally.both, 500 / tally.every);
  EXPECT_GT(tally.neither, 50 / tally.every);
}

TEST(Schema, KnowsEveryOp) {
  for (const char* op : {"tanh", "matmul", "softmax_cross_entropy", "dense", "dropout"}) {
    EXPECT_NE(model_schema().find("{\"const\": \"" + std::string(op) + "\"}"), std::string::npos) << op;
  }
}

}  // namespace
}  // namespace graphrun
