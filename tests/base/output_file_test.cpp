#include "graphrun/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "base/file.h"
#include "graphrun/error.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

namespace fs = std::filesystem;

class Output : public testing::Test {
 protected:
  const test::TemporaryFolder own;
  const fs::path& folder = own.path();
  std::string path(const std::string& name) const { return own.file(name); }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) names.insert(entry.path().filename().string());
    return names;
  }
  static void write(const std::string& path, std::string_view bytes) {
    OutputFile file(path);
    file.write(bytes);
    file.commit();
  }
  static mode_t mode(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }
  // Of the Error that it throws; "" when it throws none.
  template <class F>
  static std::string message(ErrorKind kind, F f) {
    try {
      f();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return error.diagnostics()[0].message;
    }
    return "";
  }
};

// A limit on the size of files stands for a full disk.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit small = before_;
    small.rlim_cur = bytes;
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(Output, IsWhatWasWritten) {
  OutputFile file(path("a"));
  file.write("one ");
  file.write("two");
  EXPECT_TRUE(!fs::exists(path("a")));
  file.commit();
  EXPECT_EQ(read_file(path("a")), "one two");
  EXPECT_EQ(files(), std::set<std::string>{"a"});
  write(path("a"), "");
  EXPECT_EQ(read_file(path("a")), "");
}

TEST_F(Output, TheOldFileStaysUntilTheNewOneIsWhole) {
  own.write("a", "old");
  {
    OutputFile file(path("a"));
    file.write("new");
    EXPECT_EQ(read_file(path("a")), "old");
  }
  EXPECT_EQ(read_file(path("a")), "old");
  EXPECT_EQ(files(), std::set<std::string>{"a"});
  write(path("a"), "new");
  EXPECT_EQ(read_file(path("a")), "new");
}

TEST_F(Output, AFailedWriteLeavesTheOldFile) {
  own.write("a", "old");
  std::string failed;
  {
    const SmallDisk small(4096);
    OutputFile file(path("a"));
    file.write("begin\n");
    failed = message(ErrorKind::run, [&] { file.write(std::string(100'000, 'x')); });
    // What failed once is not whole later on.
    EXPECT_EQ(message(ErrorKind::run, [&] { file.write("end\n"); }), failed);
    EXPECT_EQ(message(ErrorKind::run, [&] { file.commit(); }), failed);
  }
  EXPECT_EQ(failed, "cannot write '" + path("a") + "': File too large");
  EXPECT_EQ(read_file(path("a")), "old");
  EXPECT_EQ(files(), std::set<std::string>{"a"});
}

TEST_F(Output, AGrowingFileHasWholeWritesOnly) {
  const SmallDisk small(4096);
  OutputFile file(path("log"));
  file.write("head\n");
  EXPECT_EQ(file.publish(), path("log"));
  EXPECT_EQ(read_file(path("log")), "head\n");
  file.write("one\n");
  EXPECT_EQ(read_file(path("log")), "head\none\n");
  EXPECT_NE(message(ErrorKind::run, [&] { file.write(std::string(100'000, 'x')); }), "");
  EXPECT_EQ(read_file(path("log")), "head\none\n");
}

TEST_F(Output, AGrowingFileIsSeenBesideAnOldOne) {
  own.write("log", "old");
  OutputFile file(path("log"));
  file.write("new\n");
  const std::string shown = file.publish();
  EXPECT_NE(shown, path("log"));
  file.write("more\n");
  EXPECT_EQ(read_file(path("log")), "old");
  EXPECT_EQ(read_file(shown), "new\nmore\n");
  file.commit();
  EXPECT_EQ(read_file(path("log")), "new\nmore\n");
  EXPECT_EQ(files(), std::set<std::string>{"log"});
}

TEST_F(Output, KeepsTheModeOfTheOldFile) {
  write(path("a"), "x");
  EXPECT_NE(mode(path("a")) & 0400u, 0u);
  ::chmod(path("a").c_str(), 0640);
  write(path("a"), "y");
  EXPECT_EQ(mode(path("a")), 0640u);
}

TEST_F(Output, LinksAreFollowed) {
  own.write("real/a", "old");
  fs::create_symlink("real/a", path("link"));
  fs::create_symlink(path("link"), path("link2"));
  write(path("link2"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")) && fs::is_symlink(path("link2")));
  EXPECT_EQ(read_file(path("real/a")), "new");

  fs::create_symlink("real/b", path("dangling"));
  write(path("dangling"), "made");
  EXPECT_TRUE(fs::is_symlink(path("dangling")));
  EXPECT_EQ(read_file(path("real/b")), "made");

  fs::create_symlink("loop", path("loop"));
  EXPECT_NE(message(ErrorKind::input, [&] { write(path("loop"), "x"); }), "");
  EXPECT_EQ(files(), (std::set<std::string>{"real", "a", "b", "link", "link2", "dangling", "loop"}));
}

TEST_F(Output, WhatIsNoRegularFileIsWrittenDirectly) {
  write("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));

  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  std::string got;
  OutputFile file(path("fifo"));  // does not wait for the reader
  std::thread reader([&] { got = read_file(path("fifo")); });
  file.write("through ");
  file.write("a pipe");
  file.commit();
  reader.join();
  EXPECT_EQ(got, "through a pipe");
  EXPECT_TRUE(fs::is_fifo(path("fifo")));
  EXPECT_EQ(message(ErrorKind::run, [] { write("/dev/full", "x"); }),
            "cannot write '/dev/full': No space left on device");
}

// /dev/stdout is such a name.
TEST_F(Output, AWriteThatWaitsIsNotEndedByASignal) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
  const std::string block(4096, 'x');
  while (::write(ends[1], block.data(), block.size()) > 0) {
  }
  const auto before = std::signal(SIGUSR1, [](int) {});
  bool written = false;
  std::thread writer([&] { written = write_all(ends[1], "the end"); });
  for (int i = 0; i < 20; ++i) {
    ::pthread_kill(writer.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::string got(block.size(), ' ');
  while (::read(ends[0], got.data(), got.size()) > 0) {
  }
  writer.join();
  std::signal(SIGUSR1, before);
  ::close(ends[0]), ::close(ends[1]);
  EXPECT_TRUE(written);
}

TEST_F(Output, ADescriptorKeepsItsPosition) {
  const int out = ::open(path("out").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(out, 0);
  ASSERT_EQ(::write(out, "results ", 8), 8);
  const std::string name = "/dev/fd/" + std::to_string(out);
  fs::create_symlink(name, path("link"));
  write(name, "losses ");
  write(path("link"), "more ");
  ASSERT_EQ(::write(out, "end", 3), 3);
  ::close(out);
  EXPECT_EQ(read_file(path("out")), "results losses more end");
}

TEST_F(Output, WhatCannotBeWrittenIsRejectedAtOnce) {
  const auto rejected = [&](const std::string& name) {
    return message(ErrorKind::input, [&] { const OutputFile file(name); });
  };
  EXPECT_EQ(rejected(folder.string()), "cannot write '" + folder.string() + "': it is a folder");
  EXPECT_EQ(rejected(path("new/")), "cannot write '" + path("new/") + "': it is a folder");
  EXPECT_EQ(rejected(path("no/such")), "cannot write '" + path("no/such") + "': No such file or directory");
  own.write("file", "");
  EXPECT_EQ(rejected(path("file/x")), "cannot write '" + path("file/x") + "': Not a directory");
  EXPECT_NE(rejected(path(std::string(300, 'x'))), "");
  EXPECT_EQ(files(), std::set<std::string>{"file"});
  const std::string longest(255, 'x');
  write(path(longest), "x");
  EXPECT_EQ(read_file(path(longest)), "x");
}

TEST_F(Output, SameFilesAreKnownByWhateverName) {
  own.write("a", "");
  fs::create_symlink("a", path("link"));
  fs::create_hard_link(path("a"), path("hard"));
  const OutputFile a(path("a")), link(path("link")), hard(path("hard"));
  const OutputFile fresh(path("new")), again(path("./new")), other(path("other"));
  const OutputFile null("/dev/null"), null2("/dev/null");
  EXPECT_TRUE(a.is(link) && a.is(hard) && a.is(path("link")) && link.is(path("hard")) && fresh.is(again));
  EXPECT_FALSE(a.is(fresh) || fresh.is(other) || a.is(path("none")) || fresh.is(path("a")));
  EXPECT_FALSE(null.is(null2) || null.is("/dev/null"));
}

// Many at once, each under a name of its own; the last one stays, whole.
TEST_F(Output, WritersSideBySideDoNotMix) {
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) write(path("a"), std::string(50'000, static_cast<char>('a' + i)));
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string bytes = read_file(path("a"));
  EXPECT_EQ(bytes, std::string(50'000, bytes.at(0)));
  EXPECT_EQ(files(), std::set<std::string>{"a"});
}

TEST_F(Output, NamesAreNewEachTime) {
  std::set<std::string> names;
  for (int i = 0; i < 1000; ++i) names.insert(random_digits());
  EXPECT_EQ(names.size(), 1000u);
  EXPECT_EQ(names.begin()->size(), 16u);
}

}  // namespace
}  // namespace graphrun
