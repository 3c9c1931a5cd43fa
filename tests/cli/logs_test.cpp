// --log and --tensorboard: equal metrics in each format, complete records, and no effect on the training run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "fixture.h"
#include "support/temporary_folder.h"

namespace graphrun::testing {
namespace {

namespace fs = std::filesystem;

// ---- event files, read by the definition: with a bitwise CRC where the program has a table

std::uint32_t slow_crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82F63B78U : crc >> 1;
  }
  return ~crc;
}
std::uint32_t masked(std::string_view bytes) {
  const std::uint32_t crc = slow_crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}
template <class T>
T number_at(std::string_view bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// The records of a file; one that is cut short ends it.
std::vector<std::string> records(std::string_view bytes) {
  std::vector<std::string> found;
  while (bytes.size() >= 12) {
    const auto length = number_at<std::uint64_t>(bytes);
    EXPECT_EQ(number_at<std::uint32_t>(bytes.substr(8)), masked(bytes.substr(0, 8)));
    if (bytes.size() < 16 + length) break;
    const std::string_view data = bytes.substr(12, length);
    EXPECT_EQ(number_at<std::uint32_t>(bytes.substr(12 + length)), masked(data));
    found.emplace_back(data);
    bytes.remove_prefix(16 + length);
  }
  return found;
}

// The fields of a message, as bytes.
std::multimap<int, std::string> fields(std::string_view message) {
  std::multimap<int, std::string> found;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(0));
      message.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (!message.empty()) {
    const std::uint64_t key = varint();
    std::size_t size = 0;
    switch (key & 7) {
      case 0: {
        const std::uint64_t value = varint();
        found.emplace(static_cast<int>(key >> 3), std::string(reinterpret_cast<const char*>(&value), sizeof value));
        continue;
      }
      case 1:
        size = 8;
        break;
      case 2:
        size = varint();
        break;
      default:
        size = 4;
    }
    found.emplace(static_cast<int>(key >> 3), std::string(message.substr(0, size)));
    message.remove_prefix(size);
  }
  return found;
}

struct Event {
  std::uint64_t step = 0;
  std::map<std::string, float> values;
};
Event event_of(const std::string& record) {
  Event event;
  const auto message = fields(record);
  event.step = number_at<std::uint64_t>(message.find(2)->second);
  if (const auto summary = message.find(5); summary != message.end()) {
    for (const auto& [number, value] : fields(summary->second)) {
      const auto parts = fields(value);
      event.values[parts.find(1)->second] = number_at<float>(parts.find(2)->second);
    }
  }
  return event;
}

class Logs : public Cli {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::vector<fs::path> event_files(const std::string& folder) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_ / folder)) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
  }
  std::string with_validation() const {
    Json model = Json::parse(kLine);
    model["data"]["validation"] = model["data"]["test"];
    model["train"]["evaluate_every"] = 2;
    model["train"]["log_every"] = 1;
    return file("line.json", model.dump());
  }
};

TEST_F(Logs, TheSameInEachFormat) {
  with_validation();
  const Outcome outcome =
      graphrun({model_, "-q", "--assert-no-alloc", "--log", path("a.csv"), "--log=" + path("a.jsonl"), "--tensorboard",
                path("tb"), "--watch=p", "--hash-weights"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> csv = lines(test::content_of(path("a.csv"))),
                                 json = lines(test::content_of(path("a.jsonl")));
  ASSERT_EQ(csv.size(), 21u);
  ASSERT_EQ(json.size(), 20u);
  EXPECT_EQ(csv[0],
            "epoch,step,seconds,steps_per_second,loss,validation_loss,validation_rmse,lr,p:min,p:max,p:mean,p:std,"
            "p:zeros,p:nonfinite,weights_hash");
  const std::vector<fs::path> files = event_files("tb");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_TRUE(has(files[0].filename().string(), "tfevents"));
  const std::vector<std::string> events = records(test::content_of(files[0]));
  ASSERT_EQ(events.size(), 22u);
  EXPECT_EQ(fields(events[0]).find(3)->second, "brain.Event:2");
  EXPECT_EQ(fields(fields(events[1]).find(7)->second).count(1), 1u);  // SessionLog.START
  std::set<std::string> hashes;
  for (std::size_t i = 0; i < 20; ++i) {
    const Json row = Json::parse(json[i]);
    const Event event = event_of(events[i + 2]);
    EXPECT_EQ(row["step"], i + 1);
    EXPECT_EQ(event.step, i + 1);
    EXPECT_EQ(row.contains("validation_loss"), i % 2 == 1);
    EXPECT_EQ(event.values.count("rmse/validation"), i % 2);
    EXPECT_EQ(event.values.at("loss/train"), row["loss"].get<float>());
    EXPECT_NEAR(event.values.at("p/max"), row["p:max"].get<float>(), 1e-4);  // six digits
    const std::string loss = row["loss"].dump();
    EXPECT_TRUE(has(csv[i + 1], loss)) << loss << " is not in " << csv[i + 1];
    hashes.insert(row["weights_hash"].get<std::string>());
  }
  EXPECT_EQ(hashes.size(), 20u);
  EXPECT_TRUE(has(graphrun({model_, "-q", "--json"}).out, Json::parse(json[19])["weights_hash"].get<std::string>()));
}

// A second run in the folder hides what the first had from its own first step on; the first file stays as it is.
TEST_F(Logs, RunsInOneFolderOfTensorBoard) {
  for (int run = 0; run < 2; ++run) ASSERT_EQ(graphrun({model_, "-q", "--tensorboard", path("tb/deep")}).code, 0);
  EXPECT_EQ(event_files("tb/deep").size(), 2u);
}

TEST_F(Logs, NotANumber) {
  Json model = Json::parse(kLine);
  model["train"]["optimizer"]["sgd"]["lr"] = 1e20;
  file("line.json", model.dump());
  ASSERT_EQ(graphrun({model_, "-q", "--log", path("a.jsonl"), "--log", path("a.csv")}).code, 1);
  for (const std::string& line : lines(test::content_of(path("a.jsonl")))) EXPECT_TRUE(Json::accept(line)) << line;
}

TEST_F(Logs, FilesThatCannotBe) {
  expect_rejected(graphrun({model_, "--log", path("a.csv"), "--log", path("a.csv")}), {"are the same file"});
  expect_rejected(graphrun({model_, "--tensorboard", model_}), {"--tensorboard: cannot make the folder"});
  expect_rejected(graphrun({model_, "--tensorboard", "/proc/nothing/here"}), {"cannot make the folder"});
  expect_rejected(graphrun({path("none.json"), "--tensorboard", path("tb")}), {"none.json"});
  EXPECT_FALSE(fs::exists(path("tb")));  // the run did not start
  // A full disk costs the log, and nothing else.
  fs::create_symlink("/dev/full", path("full.jsonl"));
  const Outcome full = graphrun({model_, "-q", "--json", "--log", path("full.jsonl"), "--log", path("a.jsonl")});
  EXPECT_EQ(full.code, 1) << full.err;
  EXPECT_TRUE(has(full.err, "full.jsonl")) << full.err;
  EXPECT_EQ(lines(test::content_of(path("a.jsonl"))).size(), 20u);
  EXPECT_TRUE(has(full.out, "weights_hash")) << full.out;
  expect_rejected(graphrun({model_, "--watch", "q"}), {"no training step computes a 'q'"});
  ASSERT_EQ(graphrun({model_, "-q", "--watch=p", "--watch=p", "--log", path("twice.csv")}).code, 0);
  const std::string header = lines(test::content_of(path("twice.csv"))).front();
  EXPECT_EQ(header.find("p:min"), header.rfind("p:min")) << "watched once: " << header;
}

// Killed at any moment, each file can be read up to where it is.
TEST_F(Logs, OfARunThatIsKilled) {
  with_validation();
  const std::string killed = "timeout -s KILL 0.3 " GRAPHRUN_CLI " " + model_ + " -q --epochs=1000000000 --log " +
                             path("a.csv") + " --log " + path("a.jsonl") + " --tensorboard " + path("tb");
  const Outcome outcome = run({"/bin/sh", "-c", killed});
  EXPECT_NE(outcome.code, 0);
  const std::string json = test::content_of(path("a.jsonl"));
  ASSERT_FALSE(json.empty());
  EXPECT_EQ(json.back(), '\n');
  std::uint64_t step = 0;
  for (const std::string& line : lines(json)) EXPECT_EQ(Json::parse(line)["step"], ++step);
  const std::vector<std::string> events = records(test::content_of(event_files("tb").front()));
  ASSERT_GT(events.size(), 2u);
  for (std::size_t i = 2; i < events.size(); ++i) EXPECT_EQ(event_of(events[i]).step, i - 1);
}

}  // namespace
}  // namespace graphrun::testing
