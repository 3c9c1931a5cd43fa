// Outlines: a graph as its author thinks of it, with what each value is computed from.
#include <gtest/gtest.h>

#include "graphrun/model.h"
#include "graphrun/show.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

// What reads what, by names.
std::string outline_text(const GraphOutline& outline) {
  constexpr const char* kRoles[] = {"input", "target", "parameter", "value", "output", "metric", "loss"};
  std::string text;
  for (const OutlineValue& value : outline.values) {
    text += std::string(kRoles[static_cast<std::size_t>(value.role)]) + " " + value.name;
    if (!value.formula.empty()) text += " = " + value.formula;
    for (const auto& parameter : value.parameters) text += " +" + parameter.first;
    for (const std::size_t from : value.from) text += " <" + outline.values[from].name;
    text += "\n";
  }
  return text;
}

constexpr const char* kTied = R"json({
  "format": 1, "name": "tied", "data": {"train": {"inline": {"x": [[1, 2, 3]], "y": [[1, 2, 3]]}}},
  "inputs": {"x": ["batch", 3], "y": ["batch", 3]},
  "parameters": {"W": {"shape": [3, 3], "init": {"normal": 0.1}}, "unused": {"shape": [2], "init": "zeros"}},
  "graph": ["two = 2", "a = tanh(x @ W)", "b = tanh(a @ W) * two", {"name": "p", "op": "dense", "inputs": ["b"], "units": 3},
            "same = p", "gap = mean(abs(p - y))", "loss = mean(square(p - y))"],
  "outputs": {"p": "y"},
  "train": {"minimize": "loss", "metrics": ["gap"], "optimizer": {"sgd": {"lr": 0.1}}, "batch": 1}
})json";

TEST(Outlines, SayWhatTheFileSays) {
  LoadOptions load;
  load.data = DataUse::none;
  EXPECT_EQ(outline_text(graph_outline(load_model(test::write_model(kTied), load))),
            "input x\ntarget y\nparameter W\nparameter unused\n"
            "value a = tanh(x @ W) <x <W\n"
            "value b = tanh(a @ W) * two <W <a\n"
            "output p = dense(b, units=3) +p.W +p.b <b\n"
            "metric gap = mean(abs(p - y)) <y <p\n"
            "loss loss = mean(square(p - y)) <y <p\n");
}

// Of a graph that was built there are no formulas to say.
TEST(Outlines, OfABuiltModel) {
  GraphBuilder graph(4);
  graph.input("x", {kBatch, 2});
  graph.input("y", {kBatch, 1});
  const Value p = graph.dense("p", graph.find("x"), 1, "tanh");
  Model model(std::move(graph));
  model.outputs = {{p, "p", "y"}};
  model.train.minimize = model.graph.expression("mean(square(p - y))");
  const std::string text = outline_text(graph_outline(model));
  EXPECT_NE(text.find("output p = matmul, add, tanh +p.W +p.b <x\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" <y <p\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace graphrun
