// Compiled kernels on disk, and what the compiler tells of them. Needs no device.
#include "executors/cuda/kernel_cache.h"

#include <gtest/gtest.h>
#include <nvrtc.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "executors/cuda/compiled_code.h"
#include "executors/cuda/nvrtc.h"
#include "graphrun/error.h"
#include "support/temporary_folder.h"
#include "support/variable.h"

namespace graphrun::cuda {
namespace {

using test::TemporaryFolder;
using test::Variable;
namespace fs = std::filesystem;

constexpr const char* kSource = R"(
#include "kernels/scalar_ops.h"
extern "C" __global__ void first(float* x) { x[0] = graphrun::scalar::Tanh::apply(x[1], 0.0f, 0.0f); }
extern "C" __global__ void second(float* x) { x[0] = x[1]; }
)";

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void overwrite(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;  // its owner and rights stay
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(folder)) files.push_back(file.path());
  return files;
}

TEST(CompiledCode, ReportsWhatAKernelTakes) {
  const std::vector<KernelResources> kernels = read_log(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'calls' for 'sm_90a'\n"
      "ptxas info    : Function properties for calls\n"
      "ptxas         .     160 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 0 barriers, 176 bytes cumulative stack size\n"
      "ptxas info    : Function properties for _Z1gPfi\n"
      "ptxas         .     16 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info    : Compiling entry function 'plain' for 'sm_90a'\n"
      "ptxas info    : Function properties for plain\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers, used 0 barriers");
  const std::vector<KernelResources> expected = {{"calls", 40, 176, 20}, {"plain", 8, 0, 0}};
  EXPECT_EQ(kernels, expected);
  EXPECT_TRUE(read_log("").empty());
  EXPECT_TRUE(read_log("0 bytes spill stores\n").empty());
}

// NVRTC looks for the library of its built-in functions when it compiles. In a process of its own, which finds an empty
// file there.
TEST(CompiledCode, SaysThatNvrtcLacksItsOtherHalf) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  int major = 0, minor = 0;
  ASSERT_EQ(nvrtcVersion(&major, &minor), NVRTC_SUCCESS);
  const TemporaryFolder folder;
  const std::string name = "libnvrtc-builtins.so." + std::to_string(major) + "." + std::to_string(minor);
  folder.write(name, "");
  const Variable path("LD_LIBRARY_PATH", folder.path().string());
  const auto compile = [&folder] {
    fs::remove_all(folder.path());  // the new process has made another one
    try {
      obtain_code({kSource}, architecture_of(9, 0), KernelCache(""));
    } catch (const Error& error) {
      std::fprintf(stderr, "%s: %s\n", error.diagnostics()[0].code.c_str(), error.what());
      std::exit(3);
    }
    std::exit(0);
  };
  EXPECT_EXIT(compile(), ::testing::ExitedWithCode(3), "cuda.library: .*its other half: .*libnvrtc-builtins");
}

TEST(CompiledCode, TheCompilerTellsOfSpills) {
  constexpr const char* kSpills = R"(
extern "C" __global__ void none(float* x) { x[0] = x[1]; }
extern "C" __global__ void __launch_bounds__(1024, 2) many(float* x) {
  float v[64];
  for (int i = 0; i < 64; ++i) v[i] = x[i * 64 + threadIdx.x];
  __syncthreads();
  for (int k = 0; k < 64; ++k)
    for (int i = 0; i < 64; ++i) v[i] = v[i] * v[(i + k) % 64] + x[i];
  for (int i = 0; i < 64; ++i) x[i * 64 + threadIdx.x] = v[i];
})";
  for (const char* architecture : {"sm_80", "sm_90a", "sm_100a"}) {
    const std::vector<KernelResources> kernels = obtain_code({kSpills}, architecture, KernelCache("")).code.kernels();
    ASSERT_EQ(kernels.size(), 2u) << architecture;
    const auto many = std::ranges::find(kernels, "many", &KernelResources::name);
    ASSERT_NE(many, kernels.end());
    EXPECT_EQ(many->registers, 32u) << architecture;  // all that 2,048 threads may have
    EXPECT_GT(many->spill_bytes, 0u) << architecture;
    EXPECT_GE(many->stack, 100u) << architecture;
    const auto none = std::ranges::find(kernels, "none", &KernelResources::name);
    ASSERT_NE(none, kernels.end());
    EXPECT_GT(none->registers, 0u) << architecture;
    EXPECT_EQ(none->spill_bytes, 0u) << architecture;
  }
}

TEST(CompiledCode, BytesAreReadBackAndNothingElseIs) {
  const CompiledCode code{{'a', '\0', 'b'}, "a log\n"};
  const std::string bytes = to_bytes(code);
  const std::optional<CompiledCode> read = from_bytes(bytes);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->image, code.image);
  EXPECT_EQ(read->log, code.log);
  for (std::size_t length = 0; length + 3 <= bytes.size(); ++length)
    EXPECT_FALSE(from_bytes(bytes.substr(0, length)).has_value());
  EXPECT_FALSE(from_bytes(std::string(64, '\xff')).has_value());
}

TEST(KernelCache, TheSecondTimeTheCodeIsThere) {
  const TemporaryFolder folder;
  for (const char* architecture : {"sm_80", "sm_90a", "sm_100a"}) {
    const ObtainedCode first = obtain_code({kSource}, architecture, KernelCache(folder.file("a/b")));
    EXPECT_TRUE(first.compiled);
    ASSERT_FALSE(first.code.image.empty());
    EXPECT_EQ(first.code.kernels().size(), 2u);
    const ObtainedCode second = obtain_code({kSource}, architecture, KernelCache(folder.file("a/b")));
    EXPECT_FALSE(second.compiled);
    EXPECT_EQ(second.code.image, first.code.image);
    EXPECT_EQ(second.code.log, first.code.log);
  }
  EXPECT_EQ(files_in(folder.path() / "a/b").size(), 3u);
  EXPECT_EQ(fs::status(folder.path() / "a/b").permissions(), fs::perms::owner_all);
  EXPECT_TRUE(obtain_code({std::string(kSource) + "\n"}, "sm_90a", KernelCache(folder.file("a/b"))).compiled);
}

// Each byte of what is not the code changed, and some of the code's; cut; empty; another's.
TEST(KernelCache, ADamagedEntryIsNoneAndIsReplaced) {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path());
  const std::string key = "a key of some length", value = "a value that is longer than its key";
  cache.store(key, value);
  ASSERT_EQ(files_in(folder.path()).size(), 1u);
  const fs::path file = files_in(folder.path())[0];
  const std::string good = content(file);
  ASSERT_EQ(cache.find(key), value);

  std::vector<std::string> damaged;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int bit : {0, 7}) {
      damaged.push_back(good);
      damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ (1 << bit));
    }
    damaged.push_back(good.substr(0, at));
  }
  damaged.push_back(good + "x");
  damaged.emplace_back(good.size(), '\0');
  std::string version = good;
  version.replace(version.find(" 2\n"), 3, " 1\n");
  damaged.push_back(version);
  for (const std::string& entry : damaged) {
    overwrite(file, entry);
    EXPECT_EQ(cache.find(key), std::nullopt);
    cache.store(key, value);
    EXPECT_EQ(content(file), good);
  }

  // Of another key that has the same name.
  const std::string other = "some other key it is";
  ASSERT_EQ(other.size(), key.size());
  cache.store(other, value);
  for (const fs::path& path : files_in(folder.path()))
    if (path != file) fs::copy_file(path, file, fs::copy_options::overwrite_existing);
  EXPECT_EQ(cache.find(other), value);
  EXPECT_EQ(cache.find(key), std::nullopt);
}

TEST(KernelCache, DamagedCodeIsCompiledAgain) {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path());
  const CompiledCode right = obtain_code({kSource}, "sm_90a", KernelCache("")).code;
  EXPECT_EQ(obtain_code({kSource}, "sm_90a", cache).code.image, right.image);
  const fs::path file = files_in(folder.path())[0];
  const std::string good = content(file);
  for (const std::size_t at : {std::size_t{0}, std::size_t{20}, std::size_t{30}, std::size_t{40}, good.size() / 2,
                               good.size() - right.image.size() - 5, good.size() - 1}) {
    std::string entry = good;
    entry[at] = static_cast<char>(entry[at] + 1);
    overwrite(file, entry);
    const ObtainedCode obtained = obtain_code({kSource}, "sm_90a", cache);
    EXPECT_TRUE(obtained.compiled) << at;
    EXPECT_EQ(obtained.code.image, right.image) << at;
    EXPECT_EQ(obtained.code.kernels(), right.kernels()) << at;
    EXPECT_FALSE(obtain_code({kSource}, "sm_90a", cache).compiled) << at;
  }
  overwrite(file, "");
  EXPECT_TRUE(obtain_code({kSource}, "sm_90a", cache).compiled);
}

// Writers of the same keys: who reads sees all that one of them wrote, never half of it and never nothing.
TEST(KernelCache, ThreadsAndProcessesShareAFolder) {
  const TemporaryFolder folder;
  const auto value_of = [](int writer) {
    return std::string(static_cast<std::size_t>(20000 + 10000 * writer), static_cast<char>('a' + writer));
  };
  const auto wrong = [&](int writer) {
    const KernelCache cache(folder.path());
    int count = 0;
    for (int round = 0; round < 1000; ++round) {
      const std::string key = std::to_string(round % 3);
      cache.store(key, value_of(writer));
      const auto found = cache.find(key);
      if (!found || found->empty() || *found != value_of((*found)[0] - 'a')) ++count;
    }
    return count;
  };
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(wrong(0) == 0 ? 0 : 1);
  int in_threads[2] = {};
  {
    std::jthread first([&] { in_threads[0] = wrong(1); }), second([&] { in_threads[1] = wrong(2); });
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(in_threads[0], 0);
  EXPECT_EQ(in_threads[1], 0);
  EXPECT_EQ(files_in(folder.path()).size(), 3u);
}

TEST(KernelCache, AFolderThatCannotBeUsedIsNoError) {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "no folder");
  for (const std::string& path : {file, file + "/below", std::string("/proc/none"), std::string("/dev/full")}) {
    const KernelCache cache(path);
    cache.store("key", "value");
    EXPECT_EQ(cache.find("key"), std::nullopt) << path;
    EXPECT_TRUE(obtain_code({kSource}, "sm_90a", cache).compiled) << path;
  }
  // Of entries that are no files.
  const KernelCache cache(folder.file("odd"));
  cache.store("key", "value");
  const fs::path entry = files_in(folder.path() / "odd")[0];
  fs::remove(entry);
  ASSERT_EQ(mkfifo(entry.c_str(), 0600), 0);
  EXPECT_EQ(cache.find("key"), std::nullopt);
  fs::remove(entry);
  fs::create_directory(entry);
  cache.store("key", "value");
  EXPECT_EQ(cache.find("key"), std::nullopt);
  EXPECT_EQ(files_in(folder.path() / "odd").size(), 1u);  // what could not be renamed is gone
}

TEST(KernelCache, CodeOfOthersIsNotTaken) {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path());
  cache.store("key", "value");
  const fs::path file = files_in(folder.path())[0];
  for (const fs::perms anyone : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write | anyone);
    EXPECT_EQ(cache.find("key"), std::nullopt);
    cache.store("key", "value");
    EXPECT_EQ(cache.find("key"), "value");
  }
  const bool given_away = chown(file.c_str(), geteuid() + 1, gid_t(-1)) == 0;  // only root may
  EXPECT_EQ(cache.find("key").has_value(), !given_away);
}

TEST(KernelCache, TheLeastRecentlyUsedGo) {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path());
  const auto now = fs::file_time_type::clock::now();
  const auto made = [&](const std::string& key, const std::string& value, int hours_ago) {
    const auto before = files_in(folder.path());
    cache.store(key, value);
    for (const fs::path& file : files_in(folder.path()))
      if (std::find(before.begin(), before.end(), file) == before.end())
        fs::last_write_time(file, now - std::chrono::hours(hours_ago));
  };
  for (int i = 0; i < static_cast<int>(KernelCache::kEntries); ++i) made(std::to_string(i), "v", 1000 - i);
  EXPECT_EQ(cache.find("0"), "v");  // used: no longer the oldest
  overwrite(folder.file("unfinished.old"), "");
  fs::last_write_time(folder.file("unfinished.old"), now - std::chrono::hours(2));
  overwrite(folder.file("unfinished.new"), "");
  overwrite(folder.file("of the user"), "");
  fs::last_write_time(folder.file("of the user"), now - std::chrono::hours(5000));
  cache.store("one more", "v");
  EXPECT_EQ(cache.find("one more"), "v");
  EXPECT_EQ(cache.find("0"), "v");
  EXPECT_EQ(cache.find("1"), std::nullopt);
  EXPECT_EQ(cache.find("2"), "v");
  EXPECT_FALSE(fs::exists(folder.file("unfinished.old")));
  EXPECT_TRUE(fs::exists(folder.file("unfinished.new")));
  EXPECT_TRUE(fs::exists(folder.file("of the user")));

  const std::string large(KernelCache::kBytes * 2 / 5, 'x');  // two of them fit
  for (const char* key : {"large 1", "large 2", "large 3"}) cache.store(key, large);
  std::uintmax_t bytes = 0;
  for (const fs::path& file : files_in(folder.path())) bytes += fs::file_size(file);
  EXPECT_LE(bytes, KernelCache::kBytes);
  EXPECT_EQ(cache.find("large 3"), large);
  cache.store("too large", std::string(KernelCache::kBytes, 'x'));
  EXPECT_EQ(cache.find("too large"), std::nullopt);
  EXPECT_EQ(cache.find("large 3"), large);
}

TEST(KernelCache, TheEnvironmentNamesTheFolder) {
  const TemporaryFolder folder;
  const auto lands_in = [&](const std::string& where) {
    KernelCache::of_environment().store("key", "value");
    const bool there = fs::exists(folder.path() / where) && !files_in(folder.path() / where).empty();
    for (const fs::path& path : files_in(folder.path())) fs::remove_all(path);
    return there;
  };
  const Variable home("HOME", folder.file("home")), caches("XDG_CACHE_HOME", folder.file("xdg"));
  {
    const Variable own("GRAPHRUN_KERNEL_CACHE", folder.file("own"));
    EXPECT_TRUE(lands_in("own"));
  }
  {
    const Variable own("GRAPHRUN_KERNEL_CACHE", "off");
    EXPECT_FALSE(lands_in("xdg/graphrun/kernels"));
    KernelCache::of_environment().store("key", "value");
    EXPECT_TRUE(files_in(folder.path()).empty());
  }
  const Variable own("GRAPHRUN_KERNEL_CACHE", "");
  EXPECT_TRUE(lands_in("xdg/graphrun/kernels"));
  const Variable relative("XDG_CACHE_HOME", "xdg");  // which counts for nothing
  EXPECT_TRUE(lands_in("home/.cache/graphrun/kernels"));
}

}  // namespace
}  // namespace graphrun::cuda
