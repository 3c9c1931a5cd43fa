// A CSV file that comes through a pipe in pieces of any size has the records that it has as a whole.
#include "data/csv/row_stream.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>

#include "data/csv/csv.h"
#include "graphrun/error.h"
#include "support/temporary_folder.h"

namespace graphrun::data {
namespace {

using Table = std::vector<std::vector<std::string>>;

void add_rows(const Csv& csv, Table& table) {
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    std::vector<std::string>& cells = table.emplace_back();
    for (std::size_t column = 0; column < csv.names().size(); ++column) cells.emplace_back(csv.text(row, column));
  }
}

// Fields with quotes, delimiters, line ends of each kind and comment signs where they do not count; comments that hold
// all of them.
std::string random_text(std::mt19937& dice) {
  const auto below = [&](unsigned n) { return dice() % n; };
  const char* ends[] = {"\n", "\r\n", "\r"};
  const std::string end = ends[below(3)];
  const char* cells[] = {"1",        "ab",  "\"a,b\"", "\"a\"\"b\"", "\"two\nlines\"", "\"cr\r\nlf\"",
                         "5\" pipe", "x#y", "\"\"",    "7\"\"",      " \"a,b\" "};
  std::string text = below(3) == 0 ? "#a,\"comment" + end : "";
  if (text.empty() && below(3) == 0) text = "sep=," + end;
  text += "n,m" + end;
  for (unsigned row = 0; row < 1 + below(12); ++row) {
    if (below(6) == 0) text += "#,\"odd quote" + end;
    if (below(8) == 0) text += end;
    text += std::string(cells[below(11)]) + "," + cells[below(11)] + end;
  }
  if (below(2) == 0) text.resize(text.size() - end.size());
  return text;
}

TEST(RowStream, PiecesHaveTheRecordsOfTheWhole) {
  const test::TemporaryFolder folder;
  const std::string fifo = (folder.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  Dialect dialect;
  dialect.comment = "#";
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 dice(seed);
    const std::string text = random_text(dice);
    SCOPED_TRACE(text);
    Table whole, pieces;
    add_rows(Csv("a.csv", text, dialect), whole);
    std::thread writer([&, size = 1 + dice() % 9] {
      std::ofstream to(fifo);
      for (std::size_t at = 0; at < text.size(); at += size) to << text.substr(at, size) << std::flush;
    });
    RowStream stream(fifo);
    stream.cut_as_csv(',', true, "#");
    std::size_t rows = 0;
    for (Chunk chunk = stream.next(0); !chunk.bytes.empty(); chunk = stream.next(rows)) {
      EXPECT_EQ(chunk.rows_before, pieces.size());
      const Csv csv("piece", chunk.bytes, dialect);
      rows = csv.rows();
      add_rows(csv, pieces);
    }
    writer.join();
    ASSERT_EQ(pieces, whole);
  }
}

TEST(RowStream, ADeviceIsRejected) {
  EXPECT_THROW(RowStream("/dev/zero"), Error);
  EXPECT_THROW(RowStream("/none/such"), Error);
}

}  // namespace
}  // namespace graphrun::data
