#include "cli/stored_runs/rank_jobs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <utility>

#include "graphrun/error.h"

namespace graphrun::cli {

using RankText = std::array<char, 512>;  // ends with zeros
struct RankRequest {
  enum Kind : std::uint32_t { hello, round, take, ended, look } kind = look;
  std::uint32_t number = 0;  // round; ended: job
  std::int64_t code = 0;
  RankText text = {};  // hello: version; ended: message
};
struct RankAnswer {
  enum Kind : std::uint64_t { wait, go, stop, over } kind = wait;
  std::uint64_t number = 0;  // job or round
  std::int64_t folder = 0;
};

namespace {

constexpr auto kPoll = std::chrono::milliseconds(50);
constexpr double kPollSeconds = 0.05, kLookSeconds = 0.1;

RankText fixed_text(std::string_view text) {
  RankText result{};
  std::copy_n(text.begin(), std::min(text.size(), result.size() - 1), result.begin());
  return result;
}

std::string string_of(const RankText& text) {
  return {text.begin(), std::find(text.begin(), text.end(), '\0')};
}

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

JobQueue::JobQueue(std::span<const std::shared_ptr<Communicator>> pairs, std::int64_t folder,
                   std::function<void(std::string_view)> lost)
    : folder_(folder), lost_(std::move(lost)) {
  for (std::size_t i = 0; i < pairs.size(); ++i)
    threads_.emplace_back([this, pair = pairs[i], rank = static_cast<int>(i) + 1] { serve(*pair, rank); });
}

JobQueue::~JobQueue() {
  const std::lock_guard lock(mutex_);
  over_ = true;
}

std::shared_ptr<void> JobQueue::begin(const std::vector<std::size_t>& jobs, OnJobEnd ended) {
  const std::lock_guard lock(mutex_);
  waiting_.assign(jobs.begin(), jobs.end());
  ended_ = std::move(ended);
  ++round_;
  return {this, [this](void*) {
            const std::lock_guard closing(mutex_);
            ended_ = nullptr;
          }};
}

std::optional<std::size_t> JobQueue::take() {
  std::unique_lock lock(mutex_);
  while (waiting_.empty() && away_ > 0 && !interrupted()) changed_.wait_for(lock, kPoll);
  if (waiting_.empty() || interrupted()) return std::nullopt;
  const std::size_t job = waiting_.front();
  waiting_.pop_front();
  return job;
}

void JobQueue::end(const JobEnd& end) {
  const std::lock_guard lock(mutex_);
  ended_(end);
}

RankAnswer JobQueue::answer(const RankRequest& request, int rank, std::set<std::size_t>& running) {
  const std::lock_guard lock(mutex_);
  if (request.kind == RankRequest::ended && running.erase(request.number) > 0) {
    --away_;
    changed_.notify_all();
    if (ended_) ended_({request.number, static_cast<int>(request.code), string_of(request.text), rank});
  }
  if (request.kind == RankRequest::hello) return {RankAnswer::go, 0, folder_};
  if (interrupted() || (over_ && !running.empty())) return {RankAnswer::stop};
  if (over_) return {RankAnswer::over};
  if (request.kind == RankRequest::round && request.number < round_) return {RankAnswer::go, round_};
  if (request.kind != RankRequest::take) return {RankAnswer::wait};
  if (request.number != round_) return {RankAnswer::over};
  if (waiting_.empty()) return {RankAnswer::wait};
  const std::size_t job = waiting_.front();
  waiting_.pop_front();
  running.insert(job);
  ++away_;
  return {RankAnswer::go, job};
}

void JobQueue::serve(Communicator& pair, int rank) {
  std::set<std::size_t> running;
  std::string why;
  try {
    for (;;) {
      std::array<RankRequest, 2> requests;
      pair.gather(bytes_of(requests[0]), std::as_writable_bytes(std::span(requests)));
      if (requests[1].kind == RankRequest::hello && string_of(requests[1].text) != GRAPHRUN_VERSION) {
        why = fmt::format("rank {} is another version of graphrun: {}", rank, string_of(requests[1].text));
        pair.leave(why);
        break;
      }
      RankAnswer reply = answer(requests[1], rank, running);
      pair.broadcast(bytes_of(reply));
    }
  } catch (const Error& error) {
    why = error.diagnostics().front().message;
  }
  const std::lock_guard lock(mutex_);
  waiting_.insert(waiting_.end(), running.begin(), running.end());
  away_ -= running.size();
  changed_.notify_all();
  if (!over_ && !interrupted()) lost_(why);
}

RemoteJobs::RemoteJobs(std::shared_ptr<Communicator> pair) : pair_(std::move(pair)) {
  folder_ = ask({RankRequest::hello, 0, 0, fixed_text(GRAPHRUN_VERSION)}).folder;
  throw_if_lost();
  watch_ = std::jthread([this](const std::stop_token& end) {
    while (!end.stop_requested() && !interrupted()) {
      (void)ask({RankRequest::look});
      wait_or_interrupt(kLookSeconds);
    }
  });
}

RemoteJobs::~RemoteJobs() = default;

RankAnswer RemoteJobs::ask(const RankRequest& request) {
  const std::lock_guard lock(mutex_);
  RankAnswer reply{RankAnswer::stop};
  try {
    RankRequest sent = request;
    if (error_ == nullptr) pair_->gather(bytes_of(sent), {});
    if (error_ == nullptr) pair_->broadcast(bytes_of(reply));
  } catch (const Error& error) {
    error_ = std::make_exception_ptr(Error(ErrorKind::device, "ranks.lost", error.diagnostics().front().message,
                                           "the same command trains the missing runs"));
    reply.kind = RankAnswer::stop;
  }
  // Ends the trainings of this process.
  if (reply.kind == RankAnswer::stop && !interrupted() && !std::exchange(stopped_, true)) ::kill(::getpid(), SIGTERM);
  return reply;
}

void RemoteJobs::throw_if_lost() {
  const std::lock_guard lock(mutex_);
  if (error_ != nullptr) std::rethrow_exception(error_);
}

std::optional<std::size_t> RemoteJobs::wait_for(const RankRequest& request) {
  for (;;) {
    const RankAnswer reply = ask(request);
    if (reply.kind == RankAnswer::go) return reply.number;
    if (reply.kind != RankAnswer::wait || interrupted()) return std::nullopt;
    wait_or_interrupt(kPollSeconds);
  }
}

std::optional<std::size_t> RemoteJobs::next_round() {
  const std::optional<std::size_t> round = wait_for({RankRequest::round, static_cast<std::uint32_t>(round_)});
  throw_if_lost();
  round_ = round.value_or(round_);
  return round;
}

std::optional<std::size_t> RemoteJobs::take() {
  return interrupted() ? std::nullopt : wait_for({RankRequest::take, static_cast<std::uint32_t>(round_)});
}

void RemoteJobs::end(const JobEnd& end) {
  (void)ask({RankRequest::ended, static_cast<std::uint32_t>(end.job), end.code, fixed_text(end.message)});
}

}  // namespace graphrun::cli
