// Folders of PNG files: pixels, classes, errors by file, predictions, and the model that init writes.
#include "data/formats/images.h"

#include <fmt/format.h>

#include "archives.h"
#include "graphrun/model_template.h"
#include "prediction_fixture.h"

namespace graphrun {
namespace {

using test::png;
using test::png_chunk;
using test::png_rows;

class Images : public PredictionTest {
 protected:
  Images() { inputs = {{"image", Shape{2, 3, 1}, DType::f32, false}, {"label", Shape{2}, DType::f32, true}}; }
  void SetUp() override {
    if (!reads_png()) GTEST_SKIP() << "libpng16.so.16 does not load, or png.h was not found";
  }
  static std::string grey(const std::string& samples, std::size_t width = 3) {
    return png(width, samples.size() / width, 8, 0, png_rows(width, samples, 1, false));
  }
  void write_two() const {
    write("photos/dog/1.png", grey("abcdef"));
    write("photos/cat/2.PNG", grey("ghijkl"));
    write("photos/cat/10.png", grey("mnopqr"));
    write("photos/.hidden", "");
    write("photos/notes.txt", "");
  }
  static std::string block(const std::string& more = "") {
    return R"({"train": {"images": "photos", "label": "class")" + more + R"(}, "transform": {"label": ["one_hot"]}})";
  }
  // Pixels of one file, as text.
  std::string pixels(const std::string& bytes, std::int64_t channels) {
    inputs = {{"image", Shape{2, 3, channels}, DType::f32, false}};
    write("one/a/1.png", bytes);
    std::string text;
    for (const float value : values(read(R"({"train": {"images": "one"}})"), "train", "image"))
      text += static_cast<char>(static_cast<unsigned char>(value));
    return text;
  }
};

TEST_F(Images, ClassesAndFilesAreInOrderOfTheirNames) {
  write_two();
  const DataSet set = read(block());
  const std::string order = "mnopqrghijklabcdef";  // cat/10.png, cat/2.PNG, dog/1.png
  EXPECT_EQ(values(set, "train", "image"), Floats(order.begin(), order.end()));
  EXPECT_EQ(values(set, "train", "label"), (Floats{1, 0, 1, 0, 0, 1}));
  EXPECT_EQ(set.labels.front().second, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(values(read(block(R"(, "range": [1, 3])")), "train", "label"), (Floats{1, 0, 0, 1}));
}

TEST_F(Images, PlanReadsNoPixels) {
  write("photos/a/1.png", grey("abcdef"));
  write("photos/b/2.png", "not opened");
  DataOptions options;
  options.use = DataUse::sizes;
  EXPECT_EQ(read(block(), options).splits.front().samples(), 2);
  options.use = DataUse::none;
  std::filesystem::remove_all(path("photos"));
  EXPECT_NO_THROW(read(block(), options));
}

// A column with a transform of its own yields other numbers than bytes, also where only sizes are read.
TEST_F(Images, OnlyUnchangedColumnsHaveBytes) {
  inputs = {{"x", Shape{8, 8, 1}, DType::f32, false}, {"label", Shape{2}, DType::f32, true}};
  for (const char* name : {"photos/a/1.png", "photos/a/2.png", "photos/b/1.png", "photos/b/2.png"})
    write(name, grey(std::string(64, 'p'), 8));
  for (const DataUse use : {DataUse::values, DataUse::sizes}) {
    DataOptions options;
    options.use = use;
    const auto codes = [&](const std::string& transform) {
      const std::string source = R"({"train": {"images": "photos", "x": "image", "label": "class"}, "transform": {)" +
                                 transform + R"("label": ["one_hot"]}})";
      return read(source, options).splits.front().codes.size();
    };
    EXPECT_EQ(codes(""), 1u);
    EXPECT_EQ(codes(R"("image": ["minmax"], )"), 0u);
  }
}

TEST_F(Images, ColorTypesAndBitDepths) {
  const std::string six = "abcdef", rgb = "aAxbBxcCxdDxeExfFx";
  for (const bool interlaced : {false, true}) {
    EXPECT_EQ(pixels(png(3, 2, 8, 0, png_rows(3, six, 1, interlaced), "", interlaced), 1), six);
    EXPECT_EQ(pixels(png(3, 2, 8, 2, png_rows(3, rgb, 3, interlaced), "", interlaced), 3), rgb);
    const std::string indexes = png_rows(3, std::string("\0\1\2\3\4\5", 6), 1, interlaced);
    EXPECT_EQ(pixels(png(3, 2, 8, 3, indexes, png_chunk("PLTE", rgb), interlaced), 3), rgb);
  }
  EXPECT_EQ(pixels(png(3, 2, 4, 3, std::string("\0\x01\x20\0\x34\x50", 6), png_chunk("PLTE", rgb)), 3), rgb);
  EXPECT_EQ(pixels(png(3, 2, 1, 0, std::string("\0\xa0\0\x40", 4)), 1), std::string("\xff\0\xff\0\xff\0", 6));
  EXPECT_EQ(pixels(png(3, 2, 4, 0, std::string("\0\x0f\x10\0\x23\x40", 6)), 1),
            std::string("\0\xff\x11\x22\x33\x44", 6));
  // All filters: values are differences from the left, from above, from the mean and from Paeth's prediction.
  EXPECT_EQ(pixels(png(3, 2, 8, 0, "\1a\1\1\2\3\3\3"), 1), "abcdef");
  EXPECT_EQ(pixels(png(3, 2, 8, 0, "\1a\1\1\4\3\1\1"), 1), "abcdef");
}

TEST_F(Images, ErrorsNameTheFile) {
  const std::string good = grey("abcdef");
  const auto says = [&](const std::string& file, const std::string& bytes) {
    std::filesystem::remove_all(path("photos"));
    write("photos/a/1.png", good);
    write("photos/b/1.png", good);
    write("photos/" + file, bytes);
    return errors(block());
  };
  const auto damaged = [&](const std::string& bytes) {
    const std::string text = says("b/2.png", bytes), start = "/train/images: 'DIR/photos/b/2.png': ";
    const std::size_t at = text.find(start);
    return at == std::string::npos ? text : text.substr(at + start.size(), text.find('\n') - at - start.size());
  };
  EXPECT_EQ(damaged("a text file"), "not a PNG file");
  EXPECT_EQ(damaged(""), "not a PNG file");
  EXPECT_EQ(damaged(good.substr(0, 20)), "the PNG file is damaged: the file is cut short");
  EXPECT_EQ(damaged(good.substr(0, good.size() - 12)), "the PNG file is damaged: the file is cut short");
  std::string flipped = good;
  flipped[good.find("IDAT") + 8] ^= 1;
  EXPECT_NE(damaged(flipped).find("the PNG file is damaged: IDAT: "), std::string::npos) << damaged(flipped);
  EXPECT_EQ(damaged(png(3, 2, 8, 0, png_rows(3, "abc", 1, false))), "the PNG file is damaged: Not enough image data");
  EXPECT_EQ(damaged(png(3, 2, 16, 0, std::string(14, '\0'))), "PNG files with 16 bits per channel are not supported");
  EXPECT_EQ(damaged(png(3, 2, 8, 6, std::string(26, '\0'))), "PNG files with transparent pixels are not supported");
  EXPECT_EQ(damaged(png(3, 2, 8, 0, std::string(8, '\0'), png_chunk("tRNS", std::string(2, '\0')))),
            "PNG files with transparent pixels are not supported");
  EXPECT_EQ(damaged(png(900000, 900000, 8, 0, "a")),
            fmt::format("the PNG header says 900000 x 900000 pixels, but the file has {} bytes",
                        png(900000, 900000, 8, 0, "a").size()));

  const auto expect = [&](const std::string& file, const std::string& bytes, const std::string& part) {
    const std::string text = says(file, bytes);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect("b/2.png", grey("abcdef", 2),
         "'DIR/photos/b/2.png' has 2 x 3 pixels in grey, and 'DIR/photos/a/1.png' has 3 x 2 pixels in grey");
  expect("b/2.png", png(3, 2, 8, 2, std::string(20, '\0')), "b/2.png' has 3 x 2 pixels in color, and");
  expect("b/2.jpg", "", "'DIR/photos/b/2.jpg' is not a .png file");
  expect("b/c/2.png", good, "'DIR/photos/b/c' is a folder inside the folder of a class");
  expect("2.png", good, "'DIR/photos/2.png' is not in the folder of a class");
  std::filesystem::remove_all(path("photos"));
  std::filesystem::create_directories(path("photos"));
  EXPECT_NE(errors(block()).find("'DIR/photos' has no PNG files"), std::string::npos) << errors(block());
  std::filesystem::create_directories(path("photos/a"));
  EXPECT_NE(errors(block()).find("'DIR/photos/a' is the folder of a class, and has no PNG files"), std::string::npos);
  std::filesystem::remove_all(path("photos"));
  EXPECT_NE(errors(block()).find("data file 'photos' not found"), std::string::npos) << errors(block());
  write("photos", "a,b");
  EXPECT_NE(errors(block()).find("'DIR/photos' is not a folder"), std::string::npos) << errors(block());
}

TEST_F(Images, NamesAreNotNumbers) {
  write_two();
  inputs[1].sample = Shape{1};
  const std::string text = errors(R"({"train": {"images": "photos", "label": "class"}})");
  EXPECT_NE(text.find("'DIR/photos/cat/10.png': 'cat' is not a number"), std::string::npos) << text;
  std::filesystem::rename(path("photos/cat"), path("photos/3"));
  std::filesystem::rename(path("photos/dog"), path("photos/7"));
  EXPECT_EQ(values(read(R"({"train": {"images": "photos", "label": "class"}})"), "train", "label"), (Floats{3, 3, 7}));
}

TEST_F(Images, GreyImagesOfAnArrayMayLackTheirChannel) {
  write("x", test::idx(0x08, {1, 2, 3}, "abcdef"));
  inputs.pop_back();
  EXPECT_EQ(values(read(R"({"train": {"idx": {"image": "x"}}})"), "train", "image"),
            (Floats{'a', 'b', 'c', 'd', 'e', 'f'}));
  inputs[0].sample = Shape{2, 3};
  write("photos/a/1.png", grey("abcdef"));
  EXPECT_EQ(values(read(R"({"train": {"images": "photos"}})"), "train", "image").size(), 6u);
  inputs[0].sample = Shape{6};
  EXPECT_NE(errors(R"({"train": {"images": "photos"}})").find("the data are (batch, 2, 3, 1)"), std::string::npos);
}

// The model of init trains, and evaluates and predicts further images.
TEST_F(Images, TrainEvaluateAndPredict) {
  const auto image = [](int i, bool is_dark) {
    std::string samples(64, is_dark ? '\x20' : '\x70');
    samples[static_cast<std::size_t>(i)] ^= 0x11;
    return grey(samples, 8);
  };
  for (int i = 0; i < 20; ++i) {
    write(fmt::format("photos/dark/{}.png", i), image(i, true));
    write(fmt::format("photos/light/{}.png", i), image(i, false));
  }
  const ModelTemplate made = model_template(path("photos"), "", "photos");
  EXPECT_TRUE(made.notes.empty());
  write("model.json", made.text);
  train({{"train.epochs", "20"}});

  LoadOptions options;
  options.weights = path("w.npz");
  options.evaluates = path("photos");
  Session all(load_model(path("model.json"), options));
  EXPECT_EQ(all.scores("data").front().classes->accuracy, 1);
  EXPECT_EQ(all.scores("data").front().rows, 40u);

  write("new/b.png", image(40, false));
  write("new/a.png", image(50, true));
  InputOptions keep;
  keep.keep = {"file"};
  options.evaluates.clear();
  InputReader reader(path("model.json"), path("new"), options, keep);
  EXPECT_EQ(reader.next()->kept.front(), (std::vector<std::string>{"a.png", "b.png"}));
  const std::vector<float> logits = predict("new");
  ASSERT_EQ(logits.size(), 4u);
  EXPECT_GT(logits[0], logits[1]);
  EXPECT_LT(logits[2], logits[3]);
  EXPECT_EQ(predict("new/a.png"), std::vector<float>(logits.begin(), logits.begin() + 2));
  write("new/a.png", "a text file");
  const std::string renamed = message([&] { predict("new/a.png"); });
  EXPECT_TRUE(has(renamed, "a.png: not a PNG file")) << renamed;
  const auto refused = [&](const std::string& target) {
    return message([&] { model_template(path("photos"), target, "photos"); });
  };
  EXPECT_TRUE(has(refused("y"), "is a folder, not a table")) << refused("y");
  std::filesystem::remove_all(path("photos/light"));
  EXPECT_TRUE(has(refused(""), "has one class, 'dark'")) << refused("");
}

}  // namespace
}  // namespace graphrun
