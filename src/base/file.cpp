#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/input_limit.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

std::string cause(int error) {
  return std::generic_category().message(error);
}

// Names the neighbour that was probably meant.
std::string missing_file_hint(const std::string& path) {
  const std::filesystem::path wanted(path);
  std::error_code error;
  std::vector<std::string> names;
  const std::filesystem::path folder = wanted.has_parent_path() ? wanted.parent_path() : std::filesystem::path(".");
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  const std::string near = nearest_name(wanted.filename().string(), names);
  return near.empty() ? "" : fmt::format("did you mean '{}'?", (wanted.parent_path() / near).string());
}

[[noreturn]] void cannot_read(const std::string& path, int error) {
  throw Error(ErrorKind::input, "file.read", fmt::format("cannot read '{}': {}", path, cause(error)),
              error == ENOENT ? missing_file_hint(path) : "");
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  // Closing can report that the last bytes were not kept.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ::ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

std::string read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) cannot_read(path, errno);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) cannot_read(path, errno);
  if (S_ISBLK(status.st_mode) || (S_ISCHR(status.st_mode) && ::isatty(file.number()) == 0)) {  // /dev/zero has no end
    throw Error(ErrorKind::input, "file.read", fmt::format("cannot read '{}': it is a device", path));
  }
  const std::uint64_t limit = input_limit();
  const std::string what = fmt::format("'{}'", path);
  std::string bytes;
  // One byte more than the size, so that the end is seen without growing; a pipe has size 0 and grows.
  require_within_input_limit(static_cast<std::uint64_t>(status.st_size), what, limit);
  bytes.resize(static_cast<std::size_t>(status.st_size) + 1);
  std::size_t filled = 0;
  while (true) {
    if (filled == bytes.size()) {
      require_within_input_limit(filled, what, limit);
      // At most one byte more than the limit: then the end has been seen, or it is too much.
      bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(filled * 2 + 4095, limit)) + 1);
    }
    const ::ssize_t count = ::read(file.number(), bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannot_read(path, errno);
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  require_within_input_limit(filled, what, limit);
  bytes.resize(filled);
  return bytes;
}

void write_file(const std::string& path, std::string_view bytes) {
  static std::atomic<unsigned> counter{0};
  const auto fail = [&path](ErrorKind kind, int error) {
    throw Error(kind, "file.write", fmt::format("cannot write '{}': {}", path, cause(error)));
  };
  struct stat old {};
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) fail(ErrorKind::input, EISDIR);
  if (exists && !S_ISREG(old.st_mode)) {  // a pipe or a device: there is nothing to keep and nothing to rename over
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.number() < 0) fail(ErrorKind::input, errno);
    if (!write_all(file.number(), bytes) || !file.close()) fail(ErrorKind::run, errno);
    return;
  }
  // Beside the target, because a rename is atomic only within one file system.
  const std::string temporary = fmt::format("{}.{}-{}.tmp", path, ::getpid(), counter++);
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.number() < 0) fail(ErrorKind::input, errno);
  const bool written = (!exists || ::fchmod(file.number(), old.st_mode & 07777) == 0) &&
                       write_all(file.number(), bytes) && ::fsync(file.number()) == 0 && file.close() &&
                       ::rename(temporary.c_str(), path.c_str()) == 0;
  if (!written) {
    const int error = errno;
    ::unlink(temporary.c_str());
    fail(ErrorKind::run, error);
  }
}

}  // namespace graphrun
