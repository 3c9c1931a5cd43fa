#include "session/ranks/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "graphrun/checkpoint.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

// Gathers a T of every rank on rank 0, which makes an Answer of them for all.
template <class Answer, class T, class Decide>
Answer decide(Communicator& communicator, const T& mine, Decide decision) {
  std::vector<T> all(communicator.rank() == 0 ? static_cast<std::size_t>(communicator.ranks()) : 0);
  communicator.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  Answer answer{};
  if (communicator.rank() == 0) answer = decision(all);
  communicator.broadcast(std::as_writable_bytes(std::span(&answer, 1)));
  return answer;
}

using FactText = std::array<char, 64>;  // ends with zeros
FactText text_of(std::string_view text) {
  FactText result{};
  std::copy_n(text.begin(), std::min(text.size(), result.size() - 1), result.begin());
  return result;
}

constexpr std::array<std::string_view, 4> kFacts = {"version of graphrun", "executor", "model and data", "plan"};
struct RankDifference {
  std::uint32_t rank, fact;  // rank 0: none
  FactText here, there;
};

}  // namespace

void check_same_training(Communicator* communicator, const Model& model, const Program& program,
                         std::string_view executor) {
  if (communicator == nullptr) return;
  using Facts = std::array<FactText, kFacts.size()>;
  const Facts mine = {text_of(GRAPHRUN_VERSION), text_of(executor), text_of(model_hash(model)),
                      text_of(plan_hash(program))};
  const auto found = decide<RankDifference>(*communicator, mine, [](const std::vector<Facts>& all) {
    for (std::uint32_t fact = 0; fact < kFacts.size(); ++fact)
      for (std::uint32_t rank = 1; rank < all.size(); ++rank)
        if (all[rank][fact] != all[0][fact]) return RankDifference{rank, fact, all[0][fact], all[rank][fact]};
    return RankDifference{};
  });
  if (found.rank == 0) return;
  throw Error(ErrorKind::input, "ranks.differ",
              fmt::format("rank {} has another {} than rank 0: {}, not {}", found.rank, kFacts[found.fact],
                          found.there.data(), found.here.data()),
              "all ranks need the same program, model, data and flags");
}

bool agreed_cancel(Communicator* communicator, bool cancelled, std::uint64_t steps) {
  if (communicator == nullptr) return cancelled;
  struct State {
    std::uint64_t steps, cancelled;
  };
  enum : std::uint64_t { kRun, kCancel, kApart };
  const auto answer = decide<std::uint64_t>(*communicator, State{steps, cancelled}, [](const std::vector<State>& all) {
    if (std::ranges::any_of(all, [&](const State& one) { return one.steps != all[0].steps; })) return kApart;
    return std::ranges::any_of(all, &State::cancelled) ? kCancel : kRun;
  });
  if (answer == kApart)
    throw Error(ErrorKind::run, "ranks.apart",
                fmt::format("rank {} has finished {} steps, another rank has not", communicator->rank(), steps));
  return answer == kCancel;
}

std::uint64_t agreed_number(Communicator* communicator, std::uint64_t number) {
  if (communicator != nullptr) communicator->broadcast(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

}  // namespace graphrun
