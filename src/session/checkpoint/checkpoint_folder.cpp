// checkpoint_folder.cpp: file set of a checkpoint folder, atomic replacement, and schedule.
// A file is written under kTemporary, synced and renamed; then the folder is synced. A lock on the folder excludes
// other processes. Messages about a write use text prepared beforehand.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/descriptor.h"
#include "base/not_moved.h"
#include "graphrun/checkpoint.h"
#include "graphrun/error.h"
#include "graphrun/output_file.h"
#include "session/checkpoint/training_state.h"
#include "session/session_access.h"

namespace graphrun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWrite = "checkpoint.write";
constexpr const char* kTemporary = "checkpoint.tmp";
constexpr const char* kBest = "best.safetensors";
constexpr const char* kBestTemporary = "best.tmp";
constexpr std::string_view kPrefix = "checkpoint-", kSuffix = ".safetensors";
constexpr std::int64_t kManyEpochs = 200;
constexpr double kPause = 1;  // seconds between checkpoints if there are many epochs

// "checkpoint-000000001200.safetensors", without an allocation.
class StepName {
 public:
  explicit StepName(std::uint64_t step) {
    *fmt::format_to_n(text_, sizeof text_ - 1, "{}{:012}{}", kPrefix, step, kSuffix).out = '\0';
  }
  const char* text() const { return text_; }

 private:
  char text_[64] = {};
};

std::optional<std::uint64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::uint64_t step = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  return name == StepName(step).text() ? std::optional(step) : std::nullopt;
}

// Some file systems do not support syncing a folder and return these errors.
bool sync_folder(int folder) {
  return ::fsync(folder) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EBADF;
}

}  // namespace

struct __attribute__((visibility("hidden"))) CheckpointFolder::Impl {  // member of an exported class
  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {  // removes a folder created in vain; fails if it has contents
    std::error_code ignored;
    if (is_new) fs::remove(path, ignored);
  }

  std::string path;
  CheckpointEvery every;
  std::size_t keep = 0;
  Descriptor folder;
  std::optional<TrainingState> state;
  Descriptor file;  // file being written
  int error = 0;    // errno of the failed write
  std::function<void(std::string_view)> sink = [this](std::string_view bytes) {
    if (error == 0 && !write_all(file.number(), bytes)) error = errno;
  };
  std::vector<std::uint64_t> kept;           // steps, ascending; candidates for removal
  std::optional<std::uint64_t> saved, best;  // steps
  double saved_at = 0;
  bool is_new = false;   // this process created the folder
  bool failing = false;  // the last attempt failed and was reported
  std::atomic<bool> requested{false};
  std::function<void(const Error&)> failed;

  std::string place(std::string_view name) const { return fmt::format("{}/{}", path, name); }
  [[noreturn]] void fail(ErrorKind kind, std::string_view name, int number) const {
    throw Error(kind, kWrite,
                fmt::format("cannot write '{}': {}", place(name), std::generic_category().message(number)));
  }

  void open();
  std::vector<std::uint64_t> steps() const;
  bool has(const char* name) const { return ::faccessat(folder.number(), name, F_OK, AT_SYMLINK_NOFOLLOW) == 0; }
  void prepare(Session& session);
  void write_temporary(const char* name);
  void make_best(const char* name);
  void write(bool is_best);
  void remove_old();
  bool is_due(const StepEnd& end) const;
  void at(const StepEnd& end);
};

void CheckpointFolder::Impl::open() {
  std::error_code made;
  is_new = fs::create_directories(path, made);
  folder = Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.number() < 0) {
    const int number = errno == ENOENT && made ? made.value() : errno;
    throw Error(ErrorKind::input, "checkpoint.folder",
                fmt::format("'{}' cannot hold checkpoints: {}", path, std::generic_category().message(number)));
  }
  if (::flock(folder.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(ErrorKind::input, "checkpoint.locked",
                fmt::format("another training run writes its checkpoints to '{}'", path),
                "each run needs its own folder");
  ::unlinkat(folder.number(), kTemporary, 0);  // left by a killed process
  ::unlinkat(folder.number(), kBestTemporary, 0);
  const Descriptor probe(::openat(folder.number(), kTemporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (probe.number() < 0) fail(ErrorKind::input, kTemporary, errno);
  ::unlinkat(folder.number(), kTemporary, 0);
}

std::vector<std::uint64_t> CheckpointFolder::Impl::steps() const {
  std::vector<std::uint64_t> found;
  std::error_code unread;
  for (fs::directory_iterator entry(path, unread), end; !unread && entry != end; entry.increment(unread)) {
    if (const auto step = step_of(entry->path().filename().string())) found.push_back(*step);
  }
  std::sort(found.begin(), found.end());
  return found;
}

void CheckpointFolder::Impl::prepare(Session& session) {
  state.emplace(SessionAccess::impl(session));
  kept.clear();
  for (const std::uint64_t step : steps()) {
    if (step <= state->step()) kept.push_back(step);
  }
  remove_old();  // a killed process may have left old ones
  kept.reserve(keep + 1);
  saved_at = Profiler::now();
}

void CheckpointFolder::Impl::write_temporary(const char* name) {
  file = Descriptor(::openat(folder.number(), kTemporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  error = file.number() < 0 ? errno : 0;
  if (error == 0 && !state->write(sink)) {
    ::unlinkat(folder.number(), kTemporary, 0);
    throw Error(ErrorKind::run, "checkpoint.not_finite",
                fmt::format("'{}' is not written: a parameter is not finite", place(name)));
  }
  if (error == 0 && ::fsync(file.number()) != 0) error = errno;
  if (file.number() >= 0 && !file.close() && error == 0) error = errno;
  if (error != 0) {
    ::unlinkat(folder.number(), kTemporary, 0);
    fail(ErrorKind::run, name, error);
  }
}

// Publishes the temporary file as the best, too: as a hard link, or as a copy if links are not supported.
void CheckpointFolder::Impl::make_best(const char* name) {
  ::unlinkat(folder.number(), kBestTemporary, 0);
  if (::linkat(folder.number(), kTemporary, folder.number(), kBestTemporary, 0) == 0) {
    if (::renameat(folder.number(), kBestTemporary, folder.number(), kBest) != 0) fail(ErrorKind::run, kBest, errno);
    return;
  }
  if (::renameat(folder.number(), kTemporary, folder.number(), kBest) != 0) fail(ErrorKind::run, kBest, errno);
  write_temporary(name);
}

// Replace the best first: if the process is killed in between, training resumes from an earlier step and repeats it.
void CheckpointFolder::Impl::write(bool is_best) {
  const std::uint64_t step = state->step();
  const StepName name(step);
  write_temporary(name.text());
  if (is_best) make_best(name.text());
  if (::renameat(folder.number(), kTemporary, folder.number(), name.text()) != 0 || !sync_folder(folder.number()))
    fail(ErrorKind::run, name.text(), errno);
  saved = step;
  if (is_best) best = step;
  saved_at = Profiler::now();
  if (kept.empty() || kept.back() != step) kept.push_back(step);
  remove_old();
}

void CheckpointFolder::Impl::remove_old() {
  while (kept.size() > keep) {
    ::unlinkat(folder.number(), StepName(kept.front()).text(), 0);
    kept.erase(kept.begin());
  }
}

bool CheckpointFolder::Impl::is_due(const StepEnd& end) const {
  if (every.steps > 0 && end.step % every.steps == 0) return true;
  if (every.epochs > 0 && end.step % (every.epochs * end.steps_of_epoch) == 0) return true;
  return every.seconds > 0 && Profiler::now() - saved_at >= every.seconds;
}

void CheckpointFolder::Impl::at(const StepEnd& end) {
  const bool is_best = end.best && best != end.step;
  const bool is_wanted = requested.exchange(false, std::memory_order_relaxed);
  if (!is_best && (saved == end.step || (!is_due(end) && !is_wanted && !end.last))) return;
  try {
    write(is_best);
    failing = false;
  } catch (const Error& problem) {
    saved_at = Profiler::now();
    if (failed && !failing) failed(problem);
    failing = true;
  }
}

namespace {
constexpr std::string_view kFolder = "checkpoint folder";
}

CheckpointFolder::CheckpointFolder(const std::string& path, const CheckpointEvery& every, int keep)
    : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  impl_->every = every;
  impl_->keep = static_cast<std::size_t>(std::max(keep, 1));
  impl_->open();
}
CheckpointFolder::~CheckpointFolder() = default;
CheckpointFolder::CheckpointFolder(CheckpointFolder&&) noexcept = default;
CheckpointFolder& CheckpointFolder::operator=(CheckpointFolder&&) noexcept = default;

void CheckpointFolder::begin(Session& session) {
  Impl& impl = not_moved(impl_, kFolder);
  const std::vector<std::uint64_t> steps = impl.steps();
  if (!steps.empty() || impl.has(kBest))
    throw Error(ErrorKind::input, "checkpoint.exists",
                fmt::format("'{}' already has checkpoints of a training run: '{}'", impl.path,
                            steps.empty() ? kBest : StepName(steps.back()).text()),
                "resume that run (--resume), or choose another folder");
  impl.prepare(session);
}

std::optional<CheckpointInfo> CheckpointFolder::resume(Session& session, const std::string& from,
                                                       const std::function<void(const Error&)>& damaged) {
  Impl& impl = not_moved(impl_, kFolder);
  impl.state.emplace(SessionAccess::impl(session));
  std::optional<CheckpointInfo> info;
  if (!from.empty()) {
    info = impl.state->restore(CheckpointFile(from));
  } else {
    std::vector<std::string> names;
    const std::vector<std::uint64_t> steps = impl.steps();
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) names.emplace_back(StepName(*step).text());
    if (impl.has(kBest)) names.emplace_back(kBest);
    std::optional<CheckpointFile> file;
    for (const std::string& name : names) {
      try {
        file.emplace(impl.place(name));
        break;
      } catch (const Error& error) {
        if (error.diagnostics().front().code == kOtherFormat) throw;  // intact, so training must not restart
        if (damaged) damaged(error);
      }
    }
    if (file) info = impl.state->restore(*file);
  }
  impl.prepare(session);
  // Reports that are due change the state once they are made.
  if (info && impl.state->is_reported() && info->path == impl.place(StepName(info->step).text()))
    impl.saved = info->step;
  return info;
}

void CheckpointFolder::connect(TrainOptions& options, std::function<void(const Error&)> failed) {
  Impl& impl = not_moved(impl_, kFolder);
  if (!impl.state) throw std::logic_error("CheckpointFolder: begin() or resume() comes before connect()");
  CheckpointEvery& every = impl.every;
  impl.failed = std::move(failed);
  if (every.epochs == 0 && every.steps == 0 && every.seconds == 0) {
    if (impl.state->epochs() > kManyEpochs) {
      every.seconds = kPause;
      impl.saved_at -= kPause;  // write the first one immediately
    } else {
      every.epochs = 1;
    }
  }
  options.step_end_every = every.steps > 0 ? every.steps : every.epochs * impl.state->steps_of_epoch();
  options.on_step_end = [&impl](const StepEnd& end) { impl.at(end); };
}

void CheckpointFolder::request() noexcept {
  if (impl_ != nullptr) impl_->requested.store(true, std::memory_order_relaxed);
}

void CheckpointFolder::save() {
  Impl& impl = not_moved(impl_, kFolder);
  if (!impl.state) throw std::logic_error("CheckpointFolder: begin() or resume() comes before save()");
  if (impl.saved != impl.state->step()) impl.write(false);
}

}  // namespace graphrun
