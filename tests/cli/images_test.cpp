// The commands of docs/guide/images.md for a folder of PNG files, on images that the test writes.
#include <gtest/gtest.h>

#include "data/archives.h"
#include "fixture.h"
#include "support/source_folder.h"

namespace graphrun::testing {
namespace {

// 8 x 8 pixels in color: dark or light, with one pixel that differs.
std::string square(int i, bool is_dark) {
  std::string samples(192, is_dark ? '\x20' : '\x70');
  samples[static_cast<std::size_t>(i)] = '\x40';
  return test::png(8, 8, 8, 2, test::png_rows(8, samples, 3, false));
}

TEST_F(Cli, CommandsOfTheGuideForFoldersOfImages) {
  for (int i = 0; i < 40; ++i)
    file("photos/" + std::string(i % 2 == 0 ? "dark/" : "light/") + std::to_string(i) + ".png", square(i, i % 2 == 0));
  file("new/a.png", square(50, true));
  file("new/b.png", square(60, false));
  const Outcome probe = graphrun({"init", (folder_ / "photos").string()});
  if (has(probe.err, "libpng")) {
    EXPECT_EQ(probe.code, 2) << probe.err;
    GTEST_SKIP() << probe.err;
  }
  EXPECT_EQ(probe.code, 0) << probe.err;
  const std::string page = test::content_of(source_folder() + "/docs/guide/images.md");
  const std::size_t section = page.find("\n## Folders of PNG files\n"), begin = page.find("```shell\n", section) + 9;
  ASSERT_NE(section, std::string::npos);
  const std::string commands = page.substr(begin, page.find("```", begin) - begin);
  const std::string prepare = "cd " + folder_.string() + "; graphrun() { " GRAPHRUN_CLI " \"$@\"; }\n";
  const Outcome all = run({"/bin/bash", "-euc", prepare + commands});
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_TRUE(has(all.out, "file,y,logits")) << all.out;
  EXPECT_TRUE(has(all.out, "\na.png,dark,")) << all.out;
  EXPECT_TRUE(has(all.out, "\nb.png,light,")) << all.out;
  EXPECT_GT(std::filesystem::file_size(folder_ / "misclassified.png"), 100u);

  file("photos/light/41.png", square(41, false).substr(0, 60));
  expect_rejected(graphrun({(folder_ / "photos.json").string()}), {"photos/light/41.png': the PNG file is damaged"});
}

}  // namespace
}  // namespace graphrun::testing
