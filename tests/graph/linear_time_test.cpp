// linear_time_test.cpp: a model file of four times the size takes about four times as long, whether it is right or
// every line of it is wrong. CPU time is compared; what grows with the square would take sixteen times.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/format/overrides.h"
#include "graph/frontend/step/class_numbers.h"
#include "graphrun/error.h"
#include "graphrun/model.h"
#include "graphrun/session.h"
#include "graphrun/show.h"
#include "support/cpu_time.h"
#include "support/rounds.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

// item(0), item(1), …, with commas.
std::string list(int n, const std::function<std::string(std::string)>& item) {
  std::string text;
  for (int i = 0; i < n; ++i) text += (i == 0 ? "" : ", ") + item(std::to_string(i));
  return text;
}

struct Parts {
  std::string rows = R"("x": [[0], [1], [2]], "y": [[1], [3], [5]])";
  std::string train = {}, inputs = {}, parameters = {}, graph = {}, sections = {};  // what is added
  std::string outputs = R"({"p": "y"})";
  std::string source = {};  // in place of the rows
  std::string minimize = "loss";
};

std::string model(const Parts& parts) {
  const std::string source = parts.source.empty() ? R"("inline": {)" + parts.rows + "}" : parts.source;
  return R"({"format": 1, "data": {"train": {)" + source + R"(}}, "inputs": {"x": ["batch", 1], "y": ["batch", 1])" +
         parts.inputs + R"(}, "parameters": {"W": {"shape": [1, 1], "init": "ones"})" + parts.parameters +
         R"j(}, "graph": ["p = x @ W", "loss = mean(square(p - y))")j" + parts.graph + R"(], "outputs": )" +
         parts.outputs + R"(, "train": {"minimize": ")" + parts.minimize + R"(", "optimizer": {"sgd": {"lr": 0.1}})" +
         parts.train + "}" + parts.sections + "}";
}

struct Family {
  const char* name;
  int n;  // the smaller size
  std::function<std::string(int)> text;
};

std::string graph_of(int n, const std::function<std::string(std::string)>& entry) {
  return model({.graph = ", " + list(n, entry)});
}

const std::vector<Family>& families() {
  using S = std::string;
  static const std::vector<Family> table = {
      {"unknown names", 4000, [](int n) { return graph_of(n, [](S i) { return "\"v" + i + " = w" + i + " + x\""; }); }},
      {"unknown functions", 4000, [](int n) { return graph_of(n, [](S i) { return "\"v" + i + " = tahn(x)\""; }); }},
      {"unknown names of one sum", 10000,
       [](int n) {
         S sum;
         for (int i = 0; i < n; ++i) sum += " + w" + std::to_string(i);
         return model({.graph = ", " + list(n, [](S i) { return "\"v" + i + " = x\""; }) + ", \"s = x" + sum + "\""});
       }},
      {"entries that are numbers", 20000, [](int n) { return graph_of(n, [](S i) { return i; }); }},
      {"unknown ops", 4000,
       [](int n) {
         return graph_of(n, [](S i) { return R"({"name": "v)" + i + R"(", "op": "tahn", "inputs": ["x"]})"; });
       }},
      {"unknown sections", 10000,
       [](int n) { return model({.sections = ", " + list(n, [](S i) { return "\"section" + i + "\": 1"; })}); }},
      {"unknown keys of parameters", 4000,
       [](int n) {
         return model(
             {.parameters = ", " + list(n, [](S i) { return "\"P" + i + R"(": {"shape": [1], "inti": 0})"; })});
       }},
      {"unknown outputs", 10000,
       [](int n) { return model({.outputs = "[" + list(n, [](S i) { return "\"o" + i + "\""; }) + "]"}); }},
      {"unknown metrics", 10000,
       [](int n) {
         return model({.train = R"(, "metrics": [)" + list(n, [](S i) { return "\"m" + i + "\""; }) + "]"});
       }},
      {"unknown attributes", 10000,
       [](int n) { return model({.graph = ", \"s = sum(x, " + list(n, [](S i) { return "a" + i + "=1"; }) + ")\""}); }},
      {"ragged rows", 20000,
       [](int n) {
         return model({.rows = R"("x": [[0, 1], )" + list(n, [](S i) { return "[" + i + "]"; }) + R"(], "y": [[1]])"});
       }},
      {"words for numbers", 20000,
       [](int n) { return model({.rows = R"("x": [)" + list(n, [](S) { return "[\"a\"]"; }) + R"(], "y": [[1]])"}); }},
      {"a wrong transform", 10000,
       [](int n) {
         return model({.source = R"("inline": {"x": [[0]], "y": [[1]]}}, "transform": {"x": [)" +
                                 list(n, [](S) { return R"({"scael": 2})"; }) + "]"});
       }},
      {"two long names", 20000,
       [](int n) {
         const S name(static_cast<std::size_t>(n), 'a');
         return model({.graph = ", \"" + name + "b = x\", \"q = " + name + "c\""});
       }},
      {"a long key above many values", 20000,
       [](int n) {
         return model({.rows = "\"" + S(static_cast<std::size_t>(n), 'x') + "\": [" +
                               list(n, [](S i) { return "[" + i + "]"; }) + "]"});
       }},
      {"many parameters", 4000,
       [](int n) {
         return model(
             {.parameters = ", " + list(n, [](S i) { return "\"P" + i + R"(": {"shape": [1], "init": "ones"})"; }),
              .graph = ", \"s = concat(" + list(3, [](S i) { return "P" + i; }) + ", axis=0)\""});
       }},
      {"many inputs", 2000,
       [](int n) {
         return model({.rows = R"("x": [[0]], "y": [[1]], )" + list(n, [](S i) { return "\"i" + i + "\": [[1]]"; }),
                       .inputs = ", " + list(n, [](S i) { return "\"i" + i + R"(": ["batch", 1])"; }),
                       .outputs = R"(["p"])"});
       }},
      {"many outputs", 4000,
       [](int n) {
         return model({.graph = ", " + list(n, [](S i) { return "\"v" + i + " = x\""; }),
                       .outputs = "[" + list(n, [](S i) { return "\"v" + i + "\""; }) + "]"});
       }},
      {"many metrics", 8000,
       [](int n) {
         return model({.train = R"(, "metrics": [)" + list(n, [](S i) { return "\"v" + i + "\""; }) + "]",
                       .graph = ", " + list(n, [](S i) { return "\"v" + i + " = mean(x)\""; })});
       }},
      {"many metrics that are no means", 2000,
       [](int n) {
         return model({.train = R"(, "metrics": [)" + list(n, [](S i) { return "\"v" + i + "\""; }) + "]",
                       .graph = ", " + list(n, [](S i) { return "\"v" + i + " = mean(x)^2 + " + i + "\""; })});
       }},
      {"many targets", 2000,
       [](int n) {
         return model({.rows = R"("x": [[0], [1]], "y": [[1], [2]], )" +
                               list(n, [](S i) { return "\"t" + i + "\": [[1], [2]]"; }),
                       .train = R"(, "metrics": ["rmse"])",
                       .inputs = ", " + list(n, [](S i) { return "\"t" + i + R"(": ["batch", 1])"; }),
                       .graph = ", " + list(n, [](S i) { return "\"o" + i + " = x * " + i + "\""; }),
                       .outputs = "{" + list(n, [](S i) { return "\"o" + i + "\": \"t" + i + "\""; }) + "}"});
       }},
      {"a sum of many terms", 10000,
       [](int n) {
         S sum;
         for (int i = 0; i < n; ++i) sum += " + x";
         return model({.graph = ", \"s = x" + sum + "\""});
       }},
      {"a long chain", 4000,
       [](int n) {
         return graph_of(n, [](S i) {
           const int number = std::stoi(i);
           return "\"v" + i + " = " + (number == 0 ? "x" : "tanh(v" + std::to_string(number - 1) + ")") + "\"";
         });
       }},
      {"a long chain of views", 4000,
       [](int n) {
         return graph_of(n, [n](S i) {
           const int number = std::stoi(i);
           const S shape = number % 2 == 0 ? "[-1, 1, 1]" : "[-1, 1]";
           const S entry = "v" + i + " = reshape(" + (number == 0 ? "tanh(x)" : "v" + std::to_string(number - 1)) +
                           ", shape=" + shape + ")";
           const bool is_last = number == n - 1;
           return "\"" + entry + "\"" + (is_last ? ", \"seen = mean(v" + i + ")\"" : "");
         });
       }},
      {"many columns", 4000,
       [](int n) {
         return model({.source = R"("random": {"rows": 3, "columns": {)" +
                                 list(n, [](S i) { return "\"c" + i + R"(": {"normal": 1})"; }) +
                                 R"(}}, "x": "c0", "y": [)" + list(n, [](S i) { return "\"c" + i + "\""; }) + "]"});
       }},
      {"unknown columns of a formula", 10000,
       [](int n) {
         S sum;
         for (int i = 0; i < n; ++i) sum += " + w" + std::to_string(i);
         return model({.source = R"("grid": {"u": [0, 1, 3]}, "y": "u", "x": "u)" + sum + "\""});
       }},
  };
  return table;
}

double seconds_of(const std::string& path) {
  return test::cpu_seconds([&] {
    try {
      check_model(path);
    } catch (const Error& error) {
      EXPECT_LE(error.diagnostics().size(), kMaxDiagnostics);
      EXPECT_LT(std::string_view(error.what()).size(), 400000u);
    }
  });
}

TEST(LinearTime, InTheSizeOfTheModel) {
  if (!test::kTimesHold) GTEST_SKIP() << "times are not compared under a sanitizer";
  const test::TemporaryFolder folder;
  for (const Family& family : families()) {
    SCOPED_TRACE(family.name);
    test::expect_linear([&](int n) { return seconds_of(folder.write("model.json", family.text(n))); },
                        family.n / (test::all_cases() ? 4 : 8));
  }
}

// Plans for a host and for a GPU: regions, views, memory.
TEST(LinearTime, OfPlansInTheDepthOfTheModel) {
  if (!test::kTimesHold) GTEST_SKIP() << "times are not compared under a sanitizer";
  const test::TemporaryFolder folder;
  const auto layers = [](int n) {
    std::string parameters, graph, below = "x", sum;
    for (int i = 0; i < n; ++i) {
      const std::string layer = "d" + std::to_string(i), shown = "s" + std::to_string(i);
      parameters += R"(, "w)" + shown + R"(": {"shape": [8], "init": "ones"})";
      graph += R"(, {"name": ")" + layer + R"(", "op": "dense", "inputs": [")" + below +
               R"("], "units": 2, "activation": "tanh"}, ")" + shown + " = slice(w" + shown +
               R"(, axis=0, start=2, stop=4) * 2")";
      below = layer;
      sum += " + sum(" + shown + ")";
    }
    graph += ", \"q = mean(square(" + below + " - y))" + sum + "\"";
    return model({.parameters = parameters, .graph = graph, .minimize = "q"});
  };
  for (const char* executor : {"cpu", "cuda"}) {
    SCOPED_TRACE(executor);
    const auto seconds = [&](int n) {
      SessionOptions options;
      options.executor = executor;
      options.target = options.executor == "cuda" ? "h200" : "";
      const Model loaded = load_model(folder.write("deep.json", layers(n)));
      return test::cpu_seconds([&] { plan_program(loaded, options); });
    };
    test::expect_linear(seconds, 100);
  }
}

// Class numbers that are moved about on their way: no way is followed twice, and none on the stack.
TEST(LinearTime, ClassNumbersThroughLongAndManyWays) {
  const auto seconds = [](int chain, int doublings) {
    GraphBuilder graph(2);
    Value k = graph.input("k", {kBatch, 2}, DType::i32);
    for (int i = 0; i < chain; ++i) k = graph.op("transpose", {k}, {{"axes", std::vector<std::int64_t>{0, 1}}});
    for (int i = 0; i < doublings; ++i) {
      const Value two[] = {k, k};
      k = graph.op("concat", two, {{"axis", std::int64_t{1}}});
    }
    const Value table = graph.parameter("T", {5, 1});
    std::vector<Value> rows;
    for (int i = 0; i < 100; ++i) rows.push_back(graph.op("gather", {table, k}));
    Model model(std::move(graph));
    for (const Value row : rows) model.outputs.push_back({row, "o", ""});
    const test::CpuTime time;
    const std::vector<ClassRange> ranges = class_numbers(model);
    EXPECT_EQ(ranges.size(), 1u);
    return time.seconds();
  };
  test::expect_linear([&](int chain) { return seconds(chain, 2); }, 25000);
  test::expect_linear([&](int doublings) { return seconds(1000, doublings); }, 5);
}

TEST(LinearTime, ManyErrorsAreCounted) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("m.json", families()[3].text(1000));  // numbers for entries
  try {
    check_model(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().size(), kMaxDiagnostics);
    EXPECT_EQ(error.more(), 1000 - kMaxDiagnostics);
    EXPECT_TRUE(std::string_view(error.what()).ends_with("\nand 950 more"));
    EXPECT_EQ(error.diagnostics()[49].pointer, "/graph/51");
  }
}

TEST(LinearTime, OfTheCanonicalTextInTheNumberOfCalls) {
  if (!test::kTimesHold) GTEST_SKIP() << "times are not compared under a sanitizer";
  const auto seconds = [](int n) {
    GraphBuilder graph(2);
    graph.input("x", {kBatch, 2});
    std::string sum = "x";
    for (int i = 0; i < n; ++i) sum += " + sum(x, axis=1, keepdims=true)";
    const expression::Expression parsed = expression::parse(sum);
    return test::cpu_seconds([&] { EXPECT_EQ(expression::text(graph.impl(), parsed), sum); });
  };
  test::expect_linear(seconds, 1500);
}

// Sixteen times as many: a setting costs some time of its own, beside which a square shows late.
TEST(LinearTime, InTheNumberOfSettings) {
  if (!test::kTimesHold) GTEST_SKIP() << "times are not compared under a sanitizer";
  const auto seconds = [](int n, const std::string& before, const std::string& after) {
    std::vector<std::pair<std::string, std::string>> settings;
    for (int i = 0; i < n; ++i) settings.emplace_back(before + std::to_string(i) + after, "1");
    const std::string entries =
        ", " + list(n, [](const std::string& i) { return R"({"name": "v)" + i + R"(", "inputs": [0]})"; });
    json::Document document = json::parse("m.json", model({.graph = entries}));
    const test::CpuTime time;
    apply_overrides(document, settings);
    return time.seconds();
  };
  // New keys of an object, and objects of a list by name.
  const std::pair<std::string, std::string> paths[] = {{"constants.c", ""}, {"graph.v", ".inputs.0"}};
  for (const auto& [before, after] : paths) {
    SCOPED_TRACE(before);
    test::expect_linear([&, &before = before, &after = after](int n) { return seconds(n, before, after); }, 1500, 16);
  }
}

TEST(LinearTime, APathOfASettingEndsAtTheDepthOfJson) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("m.json", model({}));
  const auto set = [&](int depth) {
    std::string key = "train";
    for (int i = 1; i < depth; ++i) key += ".a";
    std::string text;
    try {
      check_model(path, {.data_dir = {}, .overrides = {{key, "1"}}});
    } catch (const Error& error) {
      text = error.what();
    }
    return text;
  };
  EXPECT_NE(set(64).find("unknown key 'a'"), std::string::npos) << set(64);
  EXPECT_NE(set(65).find("deeper than 64 levels"), std::string::npos) << set(65);
  EXPECT_NE(set(1000).find("deeper than 64 levels"), std::string::npos);
  EXPECT_NE(set(60000).find("deeper than 64 levels"), std::string::npos);
  test::expect_linear([&](int depth) { return test::cpu_seconds([&] { set(depth); }); }, 15000);
}

}  // namespace
}  // namespace graphrun
