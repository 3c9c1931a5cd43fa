// mpi_ranks.cpp: libgraphrun_mpi.so: a Communicator over MPI, for fast fabrics between hosts.
// Messages go from and to rank 0, as over sockets; their tags count them. The last message of a rank to each peer says
// that it makes no further calls, and why. Before MPI_Finalize, a rank receives and drops what its peers sent before
// theirs: so nobody waits for a rank that has failed. If a rank is killed, mpirun ends the others.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "graphrun/communicator.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

#if defined(OPEN_MPI)
constexpr const char *kMpi = "Open MPI", *kLaunched = "OMPI_COMM_WORLD_SIZE", *kOther = "PMI_SIZE";
#else
constexpr const char *kMpi = "MPICH", *kLaunched = "PMI_SIZE", *kOther = "OMPI_COMM_WORLD_SIZE";
#endif
constexpr int kEndTag = 0, kTags = 30000;  // MPI promises tags up to 32767

class MpiRanks final : public Communicator {
 public:
  MpiRanks() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    for (int peer = 0; peer < ranks_; ++peer)
      if ((peer == 0) != (rank_ == 0)) peers_.push_back({peer});
    if (provided < MPI_THREAD_SERIALIZED)
      throw Error(ErrorKind::device, "mpi.threads", fmt::format("this {} has no support for threads", kMpi));
  }
  ~MpiRanks() override {
    leave({});
    for (Peer& peer : peers_)
      while (!peer.ended) receive(peer);
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::string transport() const override { return fmt::format("MPI ({})", kMpi); }

  void gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    ++number_;
    if (rank_ != 0) return send(peers_[0].rank, tag(), mine);
    std::ranges::copy(mine, all.begin());
    for (std::size_t i = 0; i < peers_.size(); ++i) receive(peers_[i], all.subspan((i + 1) * mine.size(), mine.size()));
  }
  void broadcast(std::span<std::byte> bytes) override {
    ++number_;
    if (rank_ != 0) return receive(peers_[0], bytes);
    for (const Peer& peer : peers_) send(peer.rank, tag(), bytes);
  }
  void leave(std::string_view why) noexcept override {  // small messages: MPI copies them and does not wait
    for (const Peer& peer : peers_)
      if (!left_) send(peer.rank, kEndTag, std::as_bytes(std::span(why.substr(0, 512))));
    left_ = true;
  }

 private:
  struct Peer {
    int rank = 0;
    bool ended = false;
  };

  int tag() const { return 1 + static_cast<int>(number_ % kTags); }
  static void send(int rank, int tag, std::span<const std::byte> bytes) {
    if (bytes.size() > INT_MAX) throw Error(ErrorKind::run, "mpi.size", "MPI cannot send 2 GiB in one message");
    MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, rank, tag, MPI_COMM_WORLD);
  }

  // The next message of a peer, whatever it is. Returns its tag.
  int receive(Peer& peer) {
    MPI_Message message;
    MPI_Status status;
    int size = 0;
    MPI_Mprobe(peer.rank, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
    MPI_Get_count(&status, MPI_BYTE, &size);
    text_.resize(static_cast<std::size_t>(size));
    MPI_Mrecv(text_.data(), size, MPI_BYTE, &message, &status);
    peer.ended = status.MPI_TAG == kEndTag;
    return status.MPI_TAG;
  }
  void receive(Peer& peer, std::span<std::byte> bytes) {
    const int got = receive(peer);
    if (got == tag() && text_.size() == bytes.size())
      return void(std::ranges::copy(std::as_bytes(std::span(text_)), bytes.begin()));
    std::string why = rank_ == 0 ? fmt::format("rank {}: {}", peer.rank, text_) : text_;
    if (!peer.ended)
      why = fmt::format("rank {} is at message {} of {} bytes, rank {} at {} of {}", peer.rank, got, text_.size(),
                        rank_, tag(), bytes.size());
    else if (text_.empty())
      why = fmt::format("rank {} is gone", peer.rank);
    leave(why);
    throw Error(ErrorKind::device, "ranks.lost", std::move(why), "--resume continues from the last checkpoint");
  }

  int rank_ = 0, ranks_ = 1;
  std::vector<Peer> peers_;  // rank 0: all others; elsewhere: rank 0
  std::string text_;         // last message
  std::uint64_t number_ = 0;
  bool left_ = false;
};

std::unique_ptr<Communicator> launched_ranks() {
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  const std::optional<RankPlace> place = launched_place();
  if (!is_set(kLaunched) && !is_set("PMIX_RANK") && !place)
    throw Error(ErrorKind::input, "mpi.launch", "--ranks=mpi, but mpirun has not started this process",
                "for example: mpirun -n 4 graphrun train model.json --ranks=mpi");
  auto ranks = is_set(kLaunched) || !is_set(kOther) ? std::make_unique<MpiRanks>() : nullptr;
  if (ranks == nullptr || (place && place->ranks != ranks->ranks()))
    throw Error(ErrorKind::device, "mpi.other",
                fmt::format("libgraphrun_mpi.so was built for {}, which has not started this process", kMpi),
                fmt::format("use the mpirun of {}, or build graphrun with the MPI of this one", kMpi));
  return ranks;
}

}  // namespace
}  // namespace graphrun

// Null: the library has another version. The caller owns the result.
extern "C" GRAPHRUN_API graphrun::Communicator* graphrun_mpi_ranks(const char* version) {
  return std::string_view(version) == GRAPHRUN_VERSION ? graphrun::launched_ranks().release() : nullptr;
}
