#include "cli/training/ranks.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <cstdlib>

#include "cli/stored_runs/jobs.h"
#include "cli/training/training_run.h"
#include "graphrun/error.h"
#include "graphrun/executor.h"
#include "graphrun/target.h"

namespace graphrun::cli {
namespace {

constexpr std::int64_t kShards = 8;
constexpr int kToEndMs = 60'000, kToFailMs = 2'000;  // for the other processes, when this one has ended

std::string random_secret() {
  std::array<unsigned char, 32> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error(ErrorKind::run, "ranks.random", "the system gives no random bytes for the secret of the ranks");
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool on_gpus(const SessionOptions& session) {
  if (session.executor == "auto") return false;
  const std::string_view target = session.target;
  return find_target(target.empty() ? find_executor(session.executor)->default_target() : target).multiprocessors > 0;
}

// Without a number of shards from the model or a flag, there are at least eight; on GPUs, one per rank.
void choose_shards(Arguments& arguments, int ranks) {
  LoadOptions load = arguments.load;
  load.data = DataUse::none;
  if (load_model(arguments.model, load).train.shards > 1) return;
  const auto one_each = static_cast<std::int64_t>(std::bit_ceil(static_cast<unsigned>(ranks)));
  const std::int64_t shards = on_gpus(arguments.session) ? one_each : std::max(kShards, one_each);
  arguments.load.overrides.emplace_back("train.shards", std::to_string(shards));
}

// All other ranks compute only.
void drop_outputs(Arguments& arguments) {
  arguments.logs.clear();
  for (std::string* const path : {&arguments.tensorboard, &arguments.losses, &arguments.save_weights, &arguments.report,
                                  &arguments.certificate, &arguments.profile_trace, &arguments.run_dir,
                                  &arguments.run_name, &arguments.checkpoint_dir, &arguments.resume})
    path->clear();
  arguments.json = arguments.verbose = arguments.assert_no_alloc = false;
  arguments.session.profiling = Profiling::off;
}

}  // namespace

Ranks::Ranks(const Arguments& arguments, Diagnostics& diagnostics, Share share) : arguments_(arguments) {
  if (arguments.gpus > 0 && share == Share::batches) {
    if (arguments.mpi || arguments.ranks > 0 || launched_place())
      throw Error(ErrorKind::input, "ranks.gpus", "--gpus starts threads, but there are several processes already",
                  "leave it out: with --executor=cuda, each of them uses another GPU");
    if (arguments_.session.executor == "cpu") arguments_.session.executor = "cuda";
    if (arguments.gpus > 1) start_threads();
    return;
  }
  if (arguments.mpi) use_mpi(diagnostics, share);
  std::optional<RankPlace> place = arguments.mpi ? std::nullopt : launched_place();
  if (place && arguments.ranks > 0 && arguments.ranks != place->ranks)
    throw Error(ErrorKind::input, "ranks.launcher",
                fmt::format("--ranks={}, but the launcher started {} processes", arguments.ranks, place->ranks),
                "leave --ranks out: the launcher chooses the number");
  const bool starts = !place && arguments.ranks > 1;
  if (starts) {
    place.emplace().ranks = arguments.ranks;
    place->secret = random_secret();
  }
  if (!place) return;
  rank_ = place->rank;
  const bool one_network = share == Share::batches;
  if (one_network && starts && arguments.session.threads == 0 && std::getenv("GRAPHRUN_THREADS") == nullptr) {
    const std::size_t threads = std::max<std::size_t>(1, cores() / static_cast<std::size_t>(place->ranks));
    setenv("GRAPHRUN_THREADS", std::to_string(threads).c_str(), 1);
  }
  if (one_network) choose_shards(arguments_, place->ranks);
  if (place->secret.empty() && place->rank == 0)
    diagnostics.note("GRAPHRUN_JOB_SECRET is not set: only ranks of this host may join");
  if (one_network && rank_ != 0) drop_outputs(arguments_);
  if (rank_ != 0) diagnostics.set_quiet(true);
  RankJob job(*place);
  place->port = job.port();
  if (starts) start(*place);
  try {
    const auto note = [&](std::string_view text) {
      for (std::size_t i = 0; i < children_.size(); ++i)
        if (::waitpid(children_[i], nullptr, WNOHANG) != 0)
          throw Error(ErrorKind::device, "ranks.missing", fmt::format("rank {} has ended before it joined", i + 1),
                      "every rank opens the model and its data itself: they must be files, not pipes");
      if (!text.empty()) diagnostics.note(text);
    };
    if (one_network)
      communicators_ = {arguments_.session.communicator = job.join(60, note)};
    else
      communicators_ = job.join_in_pairs(60, note);
    if (one_network) diagnostics.note(fmt::format("{} ranks over {}", place->ranks, communicators_[0]->transport()));
  } catch (...) {
    for (const pid_t child : children_) ::kill(child, SIGTERM);
    throw;
  }
}

void Ranks::use_mpi(Diagnostics& diagnostics, Share share) {
  if (share == Share::runs)
    throw Error(ErrorKind::input, "ranks.mpi", "--ranks=mpi is for a single network",
                "leave it out: processes of mpirun share the runs of a sweep without it");
  communicators_ = {arguments_.session.communicator = mpi_ranks()};
  rank_ = communicators_[0]->rank();
  if (rank_ != 0) diagnostics.set_quiet(true);
  diagnostics.note(fmt::format("{} ranks over {}", communicators_[0]->ranks(), communicators_[0]->transport()));
  choose_shards(arguments_, communicators_[0]->ranks());
  if (rank_ != 0) drop_outputs(arguments_);
}

void Ranks::start(const RankPlace& place) {
  setenv("GRAPHRUN_JOB_SECRET", place.secret.c_str(), 1);
  setenv("GRAPHRUN_RANKS", std::to_string(place.ranks).c_str(), 1);
  setenv("GRAPHRUN_RENDEZVOUS", fmt::format("{}:{}", place.host, place.port).c_str(), 1);
  for (int rank = 1; rank < place.ranks; ++rank) {
    setenv("GRAPHRUN_RANK", std::to_string(rank).c_str(), 1);
    children_.push_back(start_process(arguments_.command));
  }
  for (const char* const name : {"GRAPHRUN_RANK", "GRAPHRUN_RANKS", "GRAPHRUN_RENDEZVOUS", "GRAPHRUN_JOB_SECRET"})
    unsetenv(name);
}

void Ranks::start_threads() {
  choose_shards(arguments_, arguments_.gpus);
  std::vector<std::shared_ptr<Communicator>> ranks = thread_ranks(arguments_.gpus);
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    Arguments arguments = arguments_;
    drop_outputs(arguments);
    arguments.session.communicator = std::move(ranks[rank]);
    threads_.emplace_back([arguments = std::move(arguments)]() mutable {
      Communicator& own = *arguments.session.communicator;
      Diagnostics quiet(Diagnostics::Format::text, true);
      try {
        train_and_store(arguments, quiet, {});
      } catch (const Error& error) {
        own.leave(error.diagnostics().front().message);
      } catch (...) {
        own.leave("it failed");
      }
      arguments.session.communicator.reset();  // the other ranks see that it has ended
    });
  }
  communicators_ = {arguments_.session.communicator = std::move(ranks[0])};
}

Ranks::~Ranks() {
  arguments_.session.communicator.reset();
  communicators_.clear();
  threads_.clear();
  for (int waited = 0; !children_.empty(); waited += 5) {
    std::erase_if(children_, [](pid_t child) { return ::waitpid(child, nullptr, WNOHANG) != 0; });
    if (children_.empty()) return;
    if (waited >= (failed_ ? kToFailMs : kToEndMs))
      for (const pid_t child : children_) ::kill(child, SIGKILL);
    ::poll(nullptr, 0, 5);
  }
}

bool Ranks::leave(const Error& error) {
  failed_ = true;
  const Diagnostic& first = error.diagnostics().front();
  for (const std::shared_ptr<Communicator>& one : communicators_) one->leave(first.message);
  return rank_ == 0 || (rank_ == 1 && first.code == "ranks.lost" && first.message == "rank 0 is gone");
}

}  // namespace graphrun::cli
