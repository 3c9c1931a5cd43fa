// output_file.cpp: resolves the output path, writes a new file in the same folder, and replaces the old one.
// Names are resolved relative to the opened folder: it may be moved, and the process may change its directory.
#include "graphrun/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <utility>

#include "base/descriptor.h"
#include "base/file.h"
#include "base/not_moved.h"
#include "graphrun/error.h"

namespace graphrun {

struct FileIdentity {
  ::dev_t device = 0;
  ::ino_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

namespace {

constexpr int kMaxLinks = 40;          // same as the kernel
constexpr int kTries = 100;            // attempts with random names; a collision is very unlikely
constexpr std::size_t kLongest = 200;  // bytes of the old name in the new one; file names have at most 255

FileIdentity identity_of(const struct stat& status) {
  return {status.st_dev, status.st_ino};
}

// Target of a path. Follows links, also to files that do not exist yet, but stops at a link to a process's descriptor
// (such as /dev/stdout, through /proc).
struct LinkTarget {
  std::string path;
  int descriptor = -1;         // in this process
  bool is_descriptor = false;  // in any process
};

// Paths are plain text here: libstdc++ 12 frees an invalid pointer if allocating the parts of an fs::path fails.
std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash + 1);
}

std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

std::optional<std::string> link_of(const std::string& path) {
  std::array<char, PATH_MAX> target;
  const ::ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  if (length < 0) return std::nullopt;
  return std::string(target.data(), static_cast<std::size_t>(length));
}

bool same_folder(const std::string& a, const char* b) {
  struct stat of_a {
  }, of_b{};
  return ::stat(a.c_str(), &of_a) == 0 && ::stat(b, &of_b) == 0 && identity_of(of_a) == identity_of(of_b);
}

// Whether a folder contains a process's descriptors under any name: /dev/fd is a link to it.
bool has_descriptors(const std::string& folder) {
  std::array<char, PATH_MAX> real;
  if (::realpath(folder.c_str(), real.data()) == nullptr) return false;
  const std::string_view path = real.data();
  return path.starts_with("/proc/") && path.ends_with("/fd");
}

LinkTarget follow(const std::string& path) {
  LinkTarget place{path, -1, false};
  for (int links = 0; links < kMaxLinks; ++links) {
    const std::optional<std::string> target = link_of(place.path);
    if (!target) return place;
    const std::string folder = folder_of(place.path);
    if (has_descriptors(folder)) {
      place.is_descriptor = true;
      if (same_folder(folder, "/proc/self/fd")) place.descriptor = std::atoi(name_of(place.path).c_str());
      return place;
    }
    place.path = target->starts_with('/') ? *target : folder + (folder == "." ? "/" : "") + *target;
  }
  return place;
}

// A file that is a mount point cannot be replaced, only overwritten.
bool is_mount_point(int folder, const char* name) {
#ifdef STATX_ATTR_MOUNT_ROOT
  struct statx status {};
  if (::statx(folder, name, AT_SYMLINK_NOFOLLOW, STATX_INO, &status) != 0) return false;
  return (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
#else
  static_cast<void>(folder), static_cast<void>(name);
  return false;
#endif
}

}  // namespace

bool write_all(int descriptor, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ::ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {  // another process may have set the shared pipe to non-blocking
      pollfd wanted{descriptor, POLLOUT, 0};
      if (::poll(&wanted, 1, -1) > 0 || errno == EINTR) continue;
    }
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

struct OutputState {
  std::string path;   // as given by the caller
  std::string place;  // resolved path
  std::string name;   // file name in its folder
  const char* code = "";
  Descriptor folder, file;
  FileIdentity folder_identity, old;  // old: the existing file, or the one written directly
  ::mode_t mode = 0666;
  ::uid_t owner = 0;
  ::gid_t group = 0;
  bool exists = false;
  bool direct = false;
  bool nobody = false;  // character device
  bool later = false;   // defer opening a pipe without a reader until the first write
  bool published = false;
  bool synced = true;      // commit() syncs file and folder
  std::string temporary;   // name in the folder; empty: the file has no name
  std::uint64_t size = 0;  // bytes written
  int failed = 0;          // errno of a failed write

  [[noreturn]] void fail(ErrorKind kind, int error) const {
    throw Error(kind, code,
                fmt::format("cannot write '{}': {}", path,
                            error == EISDIR ? "it is a folder" : std::generic_category().message(error)));
  }
  void find();
  void find_directly(const LinkTarget& end, const struct stat& status);
  void reject_irreplaceable() const;
  void create();
  std::string named(const char* from);
  void take_over_mode() const;
  void take_place();
  std::string own_path() const { return fmt::format("/proc/self/fd/{}", file.number()); }
  void unlink_temporary() noexcept {
    if (!temporary.empty()) ::unlinkat(folder.number(), temporary.c_str(), 0);
    temporary.clear();
  }
};

void OutputState::find() {
  struct stat status {};
  exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail(ErrorKind::input, errno);
  const LinkTarget end = follow(path);
  place = end.path;
  name = name_of(place);
  if (name.empty() || (exists && S_ISDIR(status.st_mode))) fail(ErrorKind::input, EISDIR);
  if (exists) {
    old = identity_of(status);
    mode = status.st_mode & 0777;
    owner = status.st_uid;
    group = status.st_gid;
    if (end.is_descriptor || !S_ISREG(status.st_mode)) return find_directly(end, status);
  }
  const std::string parent = folder_of(place);
  folder = Descriptor(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.number() < 0) folder = Descriptor(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.number() < 0 || ::fstat(folder.number(), &status) != 0) fail(ErrorKind::input, errno);
  if (status.st_nlink == 0) fail(ErrorKind::input, ENOENT);  // the folder was removed while in use
  folder_identity = identity_of(status);
  if (exists) reject_irreplaceable();
  create();
}

void OutputState::find_directly(const LinkTarget& end, const struct stat& status) {
  direct = true;
  nobody = S_ISCHR(status.st_mode);
  if (end.descriptor >= 0) {  // keeps the file position, which is lost on opening by name
    file = Descriptor(::fcntl(end.descriptor, F_DUPFD_CLOEXEC, 3));
  } else if (S_ISFIFO(status.st_mode)) {
    later = true;
    if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) fail(ErrorKind::input, errno);
    return;
  } else {
    file = Descriptor(::open(path.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC));
  }
  if (file.number() < 0) fail(ErrorKind::input, errno);
}

// Detects early the errors that would otherwise occur only on replacement, after all the work.
void OutputState::reject_irreplaceable() const {
  if (::faccessat(folder.number(), name.c_str(), W_OK, AT_EACCESS) != 0) fail(ErrorKind::input, errno);
  if (is_mount_point(folder.number(), name.c_str())) fail(ErrorKind::input, EBUSY);
  struct stat status {};
  const ::uid_t user = ::geteuid();
  const bool sticky = ::fstat(folder.number(), &status) == 0 && (status.st_mode & S_ISVTX) != 0;
  if (sticky && user != 0 && user != owner && user != status.st_uid) fail(ErrorKind::input, EPERM);
}

void OutputState::create() {
#ifdef O_TMPFILE
  file = Descriptor(::openat(folder.number(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode & 0666));
  // The file is named through /proc later.
  if (file.number() >= 0 && ::access(own_path().c_str(), F_OK) == 0) return;
#endif
  temporary = named(nullptr);
}

// Gives `from`, or a new file, a new name in the folder.
std::string OutputState::named(const char* from) {
  int error = EEXIST;
  for (int tries = 0; tries < kTries && error == EEXIST; ++tries) {
    std::string candidate = fmt::format("{}.{}.tmp", name.substr(0, kLongest), random_digits());
    if (from != nullptr) {
      if (::linkat(AT_FDCWD, from, folder.number(), candidate.c_str(), AT_SYMLINK_FOLLOW) == 0) return candidate;
    } else {
      file =
          Descriptor(::openat(folder.number(), candidate.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0666));
      if (file.number() >= 0) return candidate;
    }
    error = errno;
  }
  fail(from != nullptr ? ErrorKind::run : ErrorKind::input, error);
}

void OutputState::take_over_mode() const {
  // Keep owner and group if this user may set them.
  const bool given =
      ::fchown(file.number(), owner, group) == 0 || ::fchown(file.number(), static_cast<::uid_t>(-1), group) == 0;
  static_cast<void>(given);
  if (::fchmod(file.number(), mode) != 0) fail(ErrorKind::run, errno);
}

void OutputState::take_place() {
  if (temporary.empty()) temporary = named(own_path().c_str());
  if (::renameat(folder.number(), temporary.c_str(), folder.number(), name.c_str()) != 0) fail(ErrorKind::run, errno);
  temporary.clear();
}

OutputFile::OutputFile(const std::string& path, const char* code) : state_(std::make_unique<OutputState>()) {
  state_->path = path;
  state_->code = code;
  state_->find();
}

OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

OutputFile::~OutputFile() {
  if (state_) state_->unlink_temporary();
}

const std::string& OutputFile::path() const {
  return not_moved(state_, "output file").path;
}

bool OutputFile::is_direct() const {
  return not_moved(state_, "output file").direct;
}

void OutputFile::connect() {
  OutputState& s = not_moved(state_, "output file");
  if (!std::exchange(s.later, false)) return;
  s.file = Descriptor(::open(s.path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  if (s.file.number() < 0) s.failed = errno;
}

void OutputFile::write(std::string_view bytes) {
  OutputState& s = not_moved(state_, "output file");
  connect();
  if (s.failed != 0) s.fail(ErrorKind::run, s.failed);
  if (s.file.number() >= 0 && write_all(s.file.number(), bytes)) {
    s.size += bytes.size();
    return;
  }
  s.failed = errno;
  if (!s.direct && ::ftruncate(s.file.number(), static_cast<::off_t>(s.size)) == 0)
    ::lseek(s.file.number(), static_cast<::off_t>(s.size), SEEK_SET);
  s.fail(ErrorKind::run, s.failed);
}

std::string OutputFile::publish(bool replaces) {
  OutputState& s = not_moved(state_, "output file");
  if (s.direct || s.published) return s.path;
  if (s.exists && replaces) {
    s.take_over_mode();
    s.take_place();
    s.published = true;
    return s.path;
  }
  const std::string own = s.own_path();
  if (!s.exists) {
    s.published = s.temporary.empty()
                      ? ::linkat(AT_FDCWD, own.c_str(), s.folder.number(), s.name.c_str(), AT_SYMLINK_FOLLOW) == 0
                      : ::linkat(s.folder.number(), s.temporary.c_str(), s.folder.number(), s.name.c_str(), 0) == 0;
    if (s.published) {
      s.unlink_temporary();
      return s.path;
    }
  }
  if (s.temporary.empty()) s.temporary = s.named(own.c_str());  // the name was taken, or links are not supported
  return s.place.substr(0, s.place.rfind('/') + 1) + s.temporary;
}

void OutputFile::defer_sync() {
  not_moved(state_, "output file").synced = false;
}

void OutputFile::commit() {
  OutputState& s = not_moved(state_, "output file");
  write({});  // reports an earlier write error again; opens a deferred pipe
  if (s.direct) {
    if (!s.file.close()) s.fail(ErrorKind::run, errno);
    return;
  }
  if (s.exists) s.take_over_mode();
  if (s.synced && ::fsync(s.file.number()) != 0) s.fail(ErrorKind::run, errno);
  if (!s.published) s.take_place();
  if (!s.file.close()) s.fail(ErrorKind::run, errno);
  // Syncing the folder makes the name durable. Some file systems do not support it and return these errors.
  if (s.synced && ::fsync(s.folder.number()) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EBADF)
    s.fail(ErrorKind::run, errno);
}

bool OutputFile::is(const std::string& other) const {
  struct stat status {};
  const OutputState& s = not_moved(state_, "output file");
  if (s.nobody || ::stat(other.c_str(), &status) != 0) return false;
  return s.exists && identity_of(status) == s.old;
}

bool OutputFile::is(const OutputFile& other) const {
  const OutputState &a = not_moved(state_, "output file"), &b = not_moved(other.state_, "output file");
  if (a.nobody || b.nobody) return false;
  if (a.exists && b.exists && a.old == b.old) return true;
  return !a.direct && !b.direct && a.folder_identity == b.folder_identity && a.name == b.name;
}

}  // namespace graphrun
