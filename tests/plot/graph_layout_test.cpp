// Layouts of graphs: of any graph no boxes overlap, lines go down and through no box, and the places are always the
// same.
#include "plot/graph_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "graphrun/error.h"
#include "plot/graph_figure.h"
#include "plot/render.h"
#include "support/cpu_time.h"
#include "support/graph_places.h"

namespace graphrun::plot {
namespace {

struct SomeGraph {
  std::vector<BoxSize> boxes;
  std::vector<GraphEdge> edges;
};

SomeGraph random_graph(unsigned seed) {
  std::mt19937 draw(seed);
  SomeGraph graph;
  const std::size_t count = draw() % 40;
  for (std::size_t i = 0; i < count; ++i) {
    graph.boxes.push_back({20.0 + static_cast<double>(draw() % 200), 20.0 + static_cast<double>(draw() % 60)});
    for (std::size_t k = draw() % 4; i > 0 && k > 0; --k) graph.edges.push_back({draw() % i, i});
  }
  return graph;
}

TEST(GraphLayouts, OfRandomGraphs) {
  std::size_t lines = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const SomeGraph graph = random_graph(seed);
    const GraphLayout layout = lay_out(graph.boxes, graph.edges);
    ASSERT_EQ(test::misplaced(graph.boxes, graph.edges, layout), "") << "seed " << seed;
    const GraphLayout again = lay_out(graph.boxes, graph.edges);
    for (std::size_t i = 0; i < layout.corners.size(); ++i) {
      EXPECT_EQ(layout.corners[i].x, again.corners[i].x);
      EXPECT_EQ(layout.corners[i].y, again.corners[i].y);
    }
    lines += layout.lines.size();
  }
  EXPECT_GT(lines, 1000u);
}

// A chain is one straight line, whatever the widths; two inputs of one box stand beside each other above its middle.
TEST(GraphLayouts, OfAChain) {
  const GraphLayout layout = lay_out({{100, 30}, {40, 30}, {70, 50}, {100, 30}}, {{0, 1}, {1, 2}, {2, 3}});
  for (const auto& line : layout.lines)
    for (const Point& point : line) EXPECT_DOUBLE_EQ(point.x, 50);
  const GraphLayout two = lay_out({{60, 30}, {60, 30}, {60, 30}}, {{0, 2}, {1, 2}});
  EXPECT_EQ(two.corners[0].y, two.corners[1].y);
  EXPECT_NEAR((two.corners[0].x + two.corners[1].x) / 2, two.corners[2].x, 0.1);
}

// What nothing leads to stands next to what reads it, not at the top.
TEST(GraphLayouts, SourcesAreNearTheirReaders) {
  const GraphLayout layout = lay_out({{50, 20}, {50, 20}, {50, 20}, {50, 20}}, {{1, 2}, {0, 3}, {2, 3}});
  EXPECT_EQ(layout.corners[0].y, layout.corners[2].y);
  EXPECT_LT(layout.corners[1].y, layout.corners[0].y);
}

// Three pairs, declared such that each line would cross the others.
TEST(GraphLayouts, UncrossWhatCanBe) {
  const GraphLayout layout = lay_out(std::vector<BoxSize>(6, {50, 20}), {{0, 5}, {1, 4}, {2, 3}});
  for (const auto& line : layout.lines) EXPECT_NEAR(line.front().x, line.back().x, 0.1);
}

TEST(GraphLayouts, AreRejected) {
  EXPECT_THROW(lay_out({{1, 1}, {1, 1}}, {{1, 0}}), std::logic_error);
  EXPECT_THROW(lay_out({{1, 1}}, {{0, 1}}), std::logic_error);
  EXPECT_EQ(lay_out({}, {}).corners.size(), 0u);
  // Of 300 boxes in a chain each leads to the last: 45,000 rows are passed.
  SomeGraph woven;
  for (std::size_t i = 0; i < 300; ++i) {
    woven.boxes.push_back({50, 20});
    if (i > 0) woven.edges.push_back({i - 1, i});
    if (i < 299) woven.edges.push_back({i, 299});
  }
  try {
    lay_out(woven.boxes, woven.edges);
    FAIL() << "a graph of too many places was laid out";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("too large for a drawing"), std::string::npos) << error.what();
  }
}

// As large as a picture may be: a long chain with links over ten rows.
TEST(GraphLayouts, TakeTimeInProportion) {
  const auto seconds = [](std::size_t boxes) {
    SomeGraph graph;
    for (std::size_t i = 0; i < boxes; ++i) {
      graph.boxes.push_back({120, 40});
      for (const std::size_t back : {std::size_t{1}, std::size_t{2}, std::size_t{10}})
        if (i >= back) graph.edges.push_back({i - back, i});
    }
    const test::CpuTime time;
    const GraphLayout layout = lay_out(graph.boxes, graph.edges);
    const double taken = time.seconds();
    EXPECT_EQ(test::misplaced(graph.boxes, graph.edges, layout), "");
    return taken;
  };
  test::expect_linear(seconds, std::size_t{250});
}

TEST(GraphFigures, SayWhatTheyAreGiven) {
  GraphFigure figure;
  figure.title = "<net>";
  figure.subtitles = {"12 parameters"};
  figure.kinds = {{"input", 0}, {"value", 6}, {"unused", 1}};
  figure.boxes = {{"x", "(batch, 2)", "", {}, 0}, {"h", "(batch, 4)", "tanh(x @ W + b)", {"W (2, 4)  b (4)"}, 1}};
  figure.edges = {{0, 1}};
  const std::string svg = as_svg(draw(figure));
  for (const char* part : {"&lt;net&gt;</text>", ">x</text>", ">tanh(x @ W + b)</text>", ">W (2, 4)  b (4)</text>",
                           ">value</text>", "prefers-color-scheme:dark"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  EXPECT_EQ(svg.find("unused"), std::string::npos);
  EXPECT_EQ(test::malformed(svg), "");
  EXPECT_EQ(svg, as_svg(draw(figure)));
  EXPECT_EQ(as_png(draw(figure)).substr(1, 3), "PNG");
}

TEST(GraphFigures, LongTextsStayInTheirBox) {
  GraphFigure figure;
  figure.kinds = {{"value", 6}};
  figure.boxes = {{std::string(200, 'n'), std::string(200, 't'), std::string(3000, 'f'), {std::string(400, 'p')}, 0}};
  for (std::string& text : figure.boxes[0].notes) text += "\x01<";
  figure.boxes.push_back(figure.boxes[0]);
  figure.boxes[1].formula.clear();
  for (int i = 0; i < 300; ++i) figure.boxes[1].formula += "word ";
  const Drawing drawing = draw(figure);
  EXPECT_LT(drawing.width, 1200);
  for (const Label& label : drawing.labels) {
    const double width = width_of(label.text, label.size);
    EXPECT_GE(label.at.x - (label.anchor == Anchor::end ? width : 0), 0);
    EXPECT_LE(label.at.x + (label.anchor == Anchor::end ? 0 : width), drawing.width) << label.text;
  }
  EXPECT_EQ(test::malformed(as_svg(drawing)), "");
}

}  // namespace
}  // namespace graphrun::plot
