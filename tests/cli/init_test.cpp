// `graphrun init`: output, output path, and rejected tables.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "fixture.h"

namespace graphrun::testing {
namespace {

class Init : public Cli {
 protected:
  Init() {
    std::string rows = "age,kind,price\n";
    for (int i = 0; i < 40; ++i)
      rows += std::to_string(i * 7 % 50) + (i % 3 == 0 ? ",new," : ",old,") + std::to_string(100 + i * 3 % 40) + "\n";
    table_ = file("houses.csv", rows);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string table_;
};

TEST_F(Init, WritesAModelThatTrains) {
  const Outcome made = graphrun({"init", table_, "--label", "price", "-o", path("houses.json")});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.out, "");
  EXPECT_NE(made.err.find("wrote"), std::string::npos);
  const Outcome trained = graphrun({path("houses.json"), "--json", "--quiet", "--epochs=2"});
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(Json::parse(trained.out)["test"].contains("rmse"));
}

// In the model of another folder the table has the path from there.
TEST_F(Init, ThePathIsRelativeToTheModel) {
  std::filesystem::create_directory(folder_ / "models");
  ASSERT_EQ(graphrun({"init", table_, "--label=price", "--output=" + path("models/m.json")}).code, 0);
  EXPECT_EQ(graphrun({path("models/m.json"), "--quiet", "--epochs=1"}).code, 0);
}

TEST_F(Init, WithoutAFileTheModelGoesToStdout) {
  const Outcome made = graphrun({"init", table_, "--label=price"});
  EXPECT_EQ(made.code, 0);
  EXPECT_EQ(Json::parse(made.out)["format"], 1);
}

TEST_F(Init, ATableWithoutAHeader) {
  std::string rows;
  for (int i = 0; i < 40; ++i) rows += std::string(i % 3 == 0 ? "new," : "old,") + std::to_string(i * 7 % 50) + ",no\n";
  const std::string cars = file("cars.data", rows);
  const Outcome rejected = graphrun({"init", cars, "--label=c1"});
  EXPECT_EQ(rejected.code, 2);
  EXPECT_NE(rejected.err.find("--no-header"), std::string::npos) << rejected.err;
  const Outcome made = graphrun({"init", cars, "--label=c1", "--no-header", "-o", path("cars.json")});
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string weights = path("cars.npz");
  ASSERT_EQ(graphrun({path("cars.json"), "--quiet", "--epochs=1", "--save-weights", weights}).code, 0);
  const Outcome predicted =
      graphrun({"predict", path("cars.json"), file("new.data", "old\nnew\n"), "--weights", weights});
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_EQ(std::count(predicted.out.begin(), predicted.out.end(), '\n'), 3);
}

TEST_F(Init, ATableOfDatesCanBeSplitByTime) {
  std::string rows = "day,price\n";
  for (int i = 0; i < 40; ++i)
    rows += "2024-0" + std::to_string(1 + i * 7 % 9) + "-01," + std::to_string(i * i % 37) + "\n";
  const Outcome made = graphrun({"init", file("days.csv", rows), "--label=price", "-o", path("days.json")});
  EXPECT_NE(made.err.find("\"split_by\": \"day\" next to \"split\""), std::string::npos) << made.err;
  const Outcome trained = graphrun(
      {path("days.json"), "--quiet", "--epochs=1", "--set", "data.split_by=day", "--report", path("page.html")});
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.out.find("\nfrom               2024-01-01    2024-07-01    2024-08-01\n"), std::string::npos)
      << trained.out;
  std::ifstream stream(path("page.html"));
  const std::string page(std::istreambuf_iterator<char>(stream), {});
  EXPECT_NE(page.find("2024-08-01"), std::string::npos);
}

TEST_F(Init, NothingIsOverwritten) {
  const std::string before = file("m.json", "mine");
  const Outcome rejected = graphrun({"init", table_, "--label=price", "-o", before});
  EXPECT_EQ(rejected.code, 2);
  EXPECT_NE(rejected.err.find("already exists"), std::string::npos);
  std::ifstream stream(before);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), "mine");
}

TEST_F(Init, AFileThatIsNoTable) {
  for (const auto& [name, text, says] : {std::tuple{"a.json", "[{\"a\": 1}]", "\"source\": {\"records\": ...}"},
                                         {"a.jsonl", "{\"a\": 1}\n", "a.jsonl' is JSON"},
                                         {"b.json", R"({"m": 1, "n": 1, "x": [1], "y": [1]})", "{\"json\": ...}"},
                                         {"a.xlsx", "PK\x03\x04", "save it as CSV"}}) {
    const Outcome rejected = graphrun({"init", file(name, text), "--label=a"});
    EXPECT_EQ(rejected.code, 2);
    EXPECT_NE(rejected.err.find("init reads a table of text (CSV)"), std::string::npos) << rejected.err;
    EXPECT_NE(rejected.err.find(says), std::string::npos) << rejected.err;
  }
}

TEST_F(Init, ErrorsOfTheCommandLine) {
  const std::pair<std::vector<std::string>, const char*> errors[] = {
      {{"init"}, "init needs a data file"},
      {{"init", table_}, "--label=COLUMN"},
      {{"init", table_, "--label=prize"}, "did you mean 'price'?"},
      {{"init", table_ + "x", "--label=price"}, "no such file"},
      {{"init", table_, "more", "--label=price"}, "does not take 'more'"},
      {{"init", folder_.string(), "--label=price"}, "is a folder, not a table"},
      {{"init", table_, "--label=price", "-o", path("none/m.json")}, "none"}};
  for (const auto& [words, says] : errors) {
    const Outcome rejected = graphrun(words);
    EXPECT_EQ(rejected.code, 2) << rejected.err;
    EXPECT_NE(rejected.err.find(says), std::string::npos) << rejected.err;
  }
}

}  // namespace
}  // namespace graphrun::testing
