// Initialisers as a model file writes them: what is written is read back, and every layer's defaults can be written.
#include <gtest/gtest.h>

#include "base/json_text.h"
#include "graph/frontend/format/json_values.h"
#include "graph/frontend/library/layers.h"

namespace graphrun {
namespace {

Init read_back(const Init& init) {
  const json::Document document = json::parse("init.json", json::line(json_of(init)));
  json::Reader reader(document);
  const std::optional<Init> read = read_init(reader, reader.root(), {});
  reader.throw_if_failed();
  return read.value();
}

void expect_read_back(const Init& init) {
  const Init again = read_back(init);
  EXPECT_EQ(again.kind, init.kind);
  EXPECT_EQ(again.a, init.a);
  EXPECT_EQ(again.b, init.b);
}

TEST(InitValues, AreReadBack) {
  for (const Init& init : {Init::zeros(), Init::constant(1), Init::constant(-0.25), Init::normal(0.02), Init::normal(0),
                           Init::uniform(-0.5, 2), Init::glorot_uniform()})
    expect_read_back(init);
}

TEST(InitValues, AreWordsWhereThereAreWords) {
  EXPECT_EQ(json::line(json_of(Init::zeros())), "\"zeros\"");
  EXPECT_EQ(json::line(json_of(Init::constant(1))), "\"ones\"");
  EXPECT_EQ(json::line(json_of(Init::glorot_uniform())), "\"glorot_uniform\"");
}

// `show` and the reference write what a model file leaves out.
TEST(InitValues, EveryLayersDefaultsCanBeWritten) {
  for (const Layer& layer : layers()) {
    for (const LayerInit& init : layer.inits) {
      SCOPED_TRACE(std::string(layer.name) + "." + std::string(init.name));
      expect_read_back(init.fallback);
    }
  }
}

}  // namespace
}  // namespace graphrun
