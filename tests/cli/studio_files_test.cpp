// Files of the studio: tables, models, runs.
#include <fstream>
#include <memory>

#include "cli/studio/views.h"
#include "graphrun/error.h"
#include "graphrun/run_folder.h"
#include "studio_fixture.h"
#include "support/cpu_time.h"

namespace graphrun::testing {
namespace {

TEST_F(StudioRoutes, OpensNoFileBeyondItsFolder) {
  start();
  const test::TemporaryFolder other;
  const std::string secret = other.write("secret.csv", "a,b\n1,2\n3,4\n5,6\n");
  fs::create_symlink(secret, own_.path() / "link.csv");
  const auto model = [](const std::string& csv) {
    return fmt::format(
        R"json({{"format":1,"name":"m","data":{{"train":{{"csv":{},"x":["a"],"y":"b"}}}},)json"
        R"json("inputs":{{"x":["batch",1],"y":["batch",1]}},"graph":[{{"name":"p","op":"dense","inputs":["x"],"units":1}},)json"
        R"json("loss = mean(square(p - y))"],"outputs":{{"p":"y"}},)json"
        R"json("train":{{"minimize":"loss","optimizer":{{"sgd":{{"lr":0.1}}}},"epochs":1}}}})json",
        json_string(csv));
  };
  const std::string up = fs::relative(secret, own_.path()).string();
  for (const std::string& path : {secret, up, std::string("link.csv")}) {
    const auto [status, answer] = post("/api/train", {{"text", model(path)}});
    EXPECT_EQ(status, 422) << path;
    EXPECT_NE(answer.find("studio.outside"), std::string::npos) << answer;
    for (const char* view : {"/api/plan", "/api/values"}) EXPECT_EQ(asked("GET", view).first, 422) << view << path;
    EXPECT_EQ(post("/api/verify", {}).first, 422) << path;
    EXPECT_EQ(post("/api/open", {{"name", path}}).first, 422) << path;
    EXPECT_EQ(post("/api/init", {{"table", path}, {"target", "b"}}).first, 422) << path;
    EXPECT_EQ(asked("GET", "/api/columns?table=" + studio::percent_encoded(path)).first, 422) << path;
    EXPECT_EQ(post("/api/save", {{"name", path + ".json"}, {"text", "{}"}}).first == 200, path == "link.csv") << path;
  }
  EXPECT_EQ(asked("GET", "/api/run-file?run=..&file=model.json").first, 422);
  EXPECT_EQ(asked("GET", "/api/run-file?run=a%20b/..&file=model.json").first, 422);
  EXPECT_EQ(asked("GET", "/api/run-file?run=0001&file=../../xor.json").first, 422);
  own_.write("near.csv", "a,b\n1,2\n3,4\n5,6\n");
  EXPECT_EQ(post("/api/train", {{"text", model("near.csv")}}).first, 200);
  heard(R"("state":"done")");
}

TEST_F(StudioRoutes, TablesThatAreDropped) {
  start();
  EXPECT_EQ(post("/api/data", {{"name", "empty.csv"}, {"text", ""}}).first, 422);
  EXPECT_EQ(post("/api/data", {{"name", "a.png"}, {"text", "x"}}).first, 422);
  EXPECT_NE(post("/api/data", {{"name", "../../t.csv"}, {"text", "a,b\n1,2\n"}}).second.find(R"("name":"t.csv")"),
            std::string::npos);
  EXPECT_TRUE(fs::exists(own_.path() / "t.csv"));
  EXPECT_NE(post("/api/data", {{"name", "t.csv"}, {"text", "a,b\n1,2\n"}}).second.find(R"("name":"t.csv")"),
            std::string::npos);
  EXPECT_NE(post("/api/data", {{"name", "t.csv"}, {"text", "c,d\n1,2\n"}}).second.find(R"("name":"t-2.csv")"),
            std::string::npos);
  const std::string head = fmt::format(
      "Host: {0}\r\nOrigin: http://{0}\r\n{1}Content-Type: application/json\r\nContent-Length: 104857600\r\n", host(),
      cookie());
  EXPECT_TRUE(said("POST /api/data HTTP/1.1\r\n" + head + "\r\n").starts_with("HTTP/1.1 413 "));
  std::string rows = "a,b\n";
  for (int i = 0; i < 40; ++i) rows += fmt::format("{},{}\n", i * 7 % 17, i * 14 % 34 + 1);
  post("/api/data", {{"name", "rows.csv"}, {"text", rows}});
  EXPECT_EQ(post("/api/init", {{"table", "rows.csv"}, {"target", "b"}}).first, 200);
  EXPECT_EQ(post("/api/init", {{"table", "rows.csv"}, {"target", "q"}}).first, 422);
  EXPECT_NE(asked("GET", "/api/columns?table=rows.csv").second.find(R"("columns":["a","b"])"), std::string::npos);
  EXPECT_NE(asked("GET", "/api/model").second.find(R"("tables":["rows.csv","t-2.csv","t.csv"])"), std::string::npos);
  // Column names in the model, for any first line.
  const auto columns = [&](const std::string& name, const std::string& text) {
    const auto [status, answer] = post("/api/data", {{"name", name}, {"text", text}});
    EXPECT_EQ(status, 200) << answer;
    return answer.substr(answer.find("\"columns\":") + 10);
  };
  EXPECT_EQ(columns("bare.CSV", "3,4\n5,7\n8,6\n"), R"(["c0","c1"]})");
  EXPECT_EQ(columns("quoted.csv", "\"size, m2\";\"a \"\"b\"\"\"\n1,5;2\n3,5;4\n"), R"(["size, m2","a \"b\""]})");
  EXPECT_EQ(columns("tabs.tsv", "a b\tc\n1\t2\n3\t4\n"), R"(["a b","c"]})");
  // A name of two columns is an error only where it is used.
  EXPECT_EQ(columns("twice.csv", "a,a,b,y\n1,2,3,4\n3,4,1,6\n9,2,7,1\n"), R"(["a","a","b","y"]})");
  const auto [made, model] = post("/api/init", {{"table", "twice.csv"}, {"target", "y"}});
  EXPECT_EQ(made, 200);
  EXPECT_NE(model.find("'a' is omitted: another column has the same name"), std::string::npos) << model;
  const auto [rejected, why] = post("/api/init", {{"table", "twice.csv"}, {"target", "a"}});
  EXPECT_EQ(rejected, 422);
  EXPECT_NE(why.find("'a' is the name of two columns"), std::string::npos) << why;
  // A body that is not a table leaves no file.
  for (const auto& [name, text] : {std::pair("bytes.csv", std::string("a,b\n1,\0\n", 8)),
                                   {"ragged.csv", "a,b\n1\n2,3\n"},
                                   {"words.csv", "low,red\nhigh,red\nlow,blue\n"}}) {
    const auto [status, answer] = post("/api/data", {{"name", name}, {"text", text}});
    EXPECT_EQ(status, 422) << name << answer;
    EXPECT_FALSE(fs::exists(own_.path() / name)) << name;
  }
}

// A file that somebody else wrote is not written over unasked.
TEST_F(StudioRoutes, SavesOverNothingThatItDoesNotKnow) {
  start();
  own_.write("other.json", "{}");
  const auto save = [&](const std::string& name, const std::string& text, const std::string& over) {
    const auto [status, answer] = post("/api/save", {{"name", name}, {"text", text}, {"over", over}});
    EXPECT_TRUE(status == 200 || answer.find("studio.exists") != std::string::npos) << answer;
    return status;
  };
  EXPECT_EQ(save("other.json", kXor, "no"), 422);
  EXPECT_EQ(save("xor.json", endless(), "no"), 200);  // its own
  EXPECT_EQ(save("new.json", kXor, "no"), 200);
  EXPECT_EQ(save("new.json", endless(), "no"), 200);
  EXPECT_EQ(save("xor.json", kXor, "no"), 422);  // not the one that is open
  EXPECT_NE(asked("GET", "/api/model").second.find(R"("changed":false)"), std::string::npos);
  own_.write("new.json", "[]");  // meanwhile
  EXPECT_NE(asked("GET", "/api/model").second.find(R"("changed":true)"), std::string::npos);
  EXPECT_EQ(save("new.json", kXor, "no"), 422);
  EXPECT_EQ(save("new.json", kXor, "yes"), 200);
  EXPECT_EQ(save("new.json", endless(), "no"), 200);
  EXPECT_EQ(save("other.json", kXor, "yes"), 200);
}

// A folder that cannot be written: it trains, and says that the run is not kept.
TEST_F(StudioRoutes, TrainsWhereNothingCanBeKept) {
  start();
  own_.write("runs", "no folder");
  post("/api/train", {{"text", kXor}});
  const std::string text = heard(R"("state":"done")");
  EXPECT_NE(text.find("this run is not saved"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("command":"graphrun train )"), std::string::npos) << "the file has the same text";
}

// A folder that becomes read-only, as on a full disk: training continues, and its weights can be exported.
TEST_F(StudioRoutes, TrainsToItsEndWhenNothingCanBeKeptAnyMore) {
  start();
  std::string text = kXor;
  ASSERT_EQ(post("/api/train", {{"text", text.replace(text.find("500"), 3, "400000")}}).first, 200);
  post("/api/control", {{"action", "pause"}});
  heard(R"("state":"paused")");
  fs::remove_all(own_.path() / "runs" / "0001");
  ASSERT_EQ(asked("POST", "/api/number", R"({"name":"lr","value":0.3})").first, 200);
  const auto [status, weights] = asked("GET", "/api/weights");
  EXPECT_EQ(status, 200);
  EXPECT_TRUE(weights.starts_with("PK")) << weights.substr(0, 100);
  post("/api/control", {{"action", "resume"}});
  const std::string end = heard(R"("state":"done")");
  EXPECT_NE(end.find("this run is not saved"), std::string::npos) << end;
  EXPECT_EQ(word_after(end, R"("command":")"), "") << "no command repeats it";
  EXPECT_EQ(word_after(end, R"("weights_hash":")").size(), 16u) << end;
  EXPECT_EQ(asked("GET", "/api/weights").first, 200);
}

TEST_F(StudioRoutes, ABrokenRunHidesNoOther) {
  start();
  for (int i = 0; i < 2; ++i) {
    post("/api/train", {{"text", kXor}});
    heard(fmt::format(R"("number":{},"run")", i + 1));
    heard(R"("state":"done")");
  }
  const fs::path result = own_.path() / "runs" / "0001" / "result.json";
  ASSERT_TRUE(fs::exists(result));
  std::ofstream(result) << "{\"model\":";
  const std::string list = asked("GET", "/api/runs").second;
  EXPECT_NE(list.find(R"({"run":"0001","state":"unreadable","error":")"), std::string::npos) << list;
  EXPECT_NE(list.find(R"({"run":"0002","state":"done")"), std::string::npos) << list;
  EXPECT_EQ(list.find("settings."), std::string::npos) << "which are the same in all that can be read: " << list;
}

TEST_F(StudioRoutes, AThousandRunsAreReadOnce) {
  start();
  const int count = test::kSanitized ? 200 : 1000;
  const std::string last = fmt::format("{:016x}", count);
  for (int i = 1; i <= count; ++i) {
    const fs::path folder = own_.path() / "runs" / fmt::format("{:04}", i);
    fs::create_directories(folder);
    std::ofstream(folder / "run.json")
        << R"({"command":["graphrun"],"folder":"/","model_file":"xor.json","version":"","executor":"cpu"})";
    std::ofstream(folder / "model.json") << kXor;
    std::ofstream(folder / "result.json") << fmt::format(
        R"({{"model":"xor","train":{{"loss":{}}},"validation":null,"test":null,"interrupted":false,"weights_hash":"{:016x}"}})",
        1.0 / i, i);
  }
  // CPU time of an answer, of the page's side too.
  const auto seconds = [&](std::string& answer) {
    const test::CpuTime time;
    answer = asked("GET", "/api/runs").second;
    return time.seconds();
  };
  std::string answer;
  studio_->views = std::make_unique<cli::StudioViews>();
  double reading = seconds(answer);
  EXPECT_NE(answer.find(last), std::string::npos) << "the latest comes first";
  while (answer.find(R"("unread":0,)") == std::string::npos) reading += seconds(answer);  // it comes in pieces
  EXPECT_NE(answer.find(R"("run":"0001")"), std::string::npos);
  double again = reading;
  for (int i = 0; i < 10; ++i) again = std::min(again, seconds(answer));
  EXPECT_NE(answer.find(last), std::string::npos);
  EXPECT_LT(again, reading / 2) << "what has not changed is read once";
  // Detects changes: another result, a deleted run, a new run.
  const fs::path runs = own_.path() / "runs";
  std::ofstream(runs / "0007" / "result.json")
      << R"({"model":"xor","train":{"loss":0.125},"interrupted":true,"weights_hash":"feedfacefeedface"})";
  fs::remove_all(runs / fmt::format("{:04}", count));
  fs::copy(runs / "0001", runs / "9999");
  do answer = asked("GET", "/api/runs").second;
  while (answer.find(R"("unread":0,)") == std::string::npos);
  EXPECT_NE(answer.find("feedfacefeedface"), std::string::npos);
  EXPECT_EQ(answer.find(last), std::string::npos);
  EXPECT_NE(answer.find(R"("run":"9999")"), std::string::npos);
}

TEST(StoredChanges, AreReadOrRefused) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(read_changes(folder.path().string()).empty());
  folder.write("changes.json",
               R"([{"step":3,"number":"lr","from":0.1,"to":0.05},{"step":3,"number":"l2","from":1,"to":0}])");
  const std::vector<HyperparameterChange> changes = read_changes(folder.path().string());
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(to_string(changes[0]), "lr 0.1 -> 0.05 after step 3");
  for (const char* bad : {"{}", "[1]", "[", R"([{"step":-1,"number":"lr","from":1,"to":1}])",
                          R"([{"step":1e300,"number":"lr","from":1,"to":1}])", R"([{"step":1,"number":"lr","from":1}])",
                          R"([{"step":1,"number":"lr","from":1,"to":"x"}])",
                          R"([{"step":2,"number":"lr","from":1,"to":1},{"step":1,"number":"lr","from":1,"to":1}])"}) {
    folder.write("changes.json", bad);
    EXPECT_THROW(read_changes(folder.path().string()), Error) << bad;
  }
}

}  // namespace
}  // namespace graphrun::testing
