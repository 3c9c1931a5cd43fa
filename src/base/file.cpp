#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/descriptor.h"
#include "base/input_limit.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

[[noreturn]] void cannot_read(const std::string& path, int error) {
  const std::string near = error == ENOENT ? nearest_file(path) : "";
  throw Error(
      ErrorKind::input, "file.read", fmt::format("cannot read '{}': {}", path, std::generic_category().message(error)),
      near.empty() ? ""
                   : fmt::format("did you mean '{}'?", std::filesystem::path(path).replace_filename(near).string()));
}

}  // namespace

std::string nearest_file(const std::string& path, std::string_view extension) {
  const std::filesystem::path wanted(path);
  const std::filesystem::path folder = wanted.has_parent_path() ? wanted.parent_path() : std::filesystem::path(".");
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end && names.size() < 2000;
       it.increment(error))
    if (extension.empty() || it->path().extension() == extension) names.push_back(it->path().filename().string());
  return nearest_name(wanted.filename().string(), names);
}

// Devices such as /dev/zero never end.
void reject_device(int descriptor, const std::string& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) cannot_read(path, errno);
  if (S_ISBLK(status.st_mode) || (S_ISCHR(status.st_mode) && ::isatty(descriptor) == 0))
    throw Error(ErrorKind::input, "file.read", fmt::format("cannot read '{}': it is a device", path));
}

std::string random_digits() {
  static std::atomic<std::uint64_t> counter{0};
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, GRND_NONBLOCK) != static_cast<::ssize_t>(sizeof bits)) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    bits = static_cast<std::uint64_t>(now) * 0x9e3779b97f4a7c15u;
  }
  return fmt::format("{:016x}", bits + counter.fetch_add(1));
}

std::string read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) cannot_read(path, errno);
  reject_device(file.number(), path);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) cannot_read(path, errno);
  InputLimit limit;
  const std::string what = fmt::format("'{}'", path);
  std::string bytes;
  // Reserve one extra byte to detect the end without growing; a pipe has size 0 and grows.
  limit.require(static_cast<std::uint64_t>(status.st_size), what);
  bytes.resize(static_cast<std::size_t>(status.st_size) + 1);
  std::size_t filled = 0;
  while (true) {
    if (filled == bytes.size()) {
      limit.require(filled, what);
      // Read at most one byte beyond the limit: enough to detect the end or an oversized input.
      bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(filled * 2 + 4095, limit.bytes())) + 1);
    }
    const ::ssize_t count = ::read(file.number(), bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannot_read(path, errno);
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  limit.require(filled, what);
  bytes.resize(filled);
  return bytes;
}

}  // namespace graphrun
