// Joining a job: proofs of the secret, launchers' variables, and peers that send anything.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "graphrun/communicator.h"
#include "graphrun/error.h"
#include "session/ranks/sha256.h"
#include "session/ranks/shared_rings.h"
#include "session/ranks/socket_ranks.h"
#include "support/rounds.h"
#include "support/variable.h"

namespace graphrun::test {
namespace {

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

TEST(Sha256, GivesTheDigestsOfTheStandards) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256(std::string(1000000, 'a'))), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

std::string code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.diagnostics().front().code;
  }
  return "";
}

Descriptor connect_to(int port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(socket.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? std::move(socket)
                                                                                                : Descriptor();
}

TEST(RankJob, JoinsDespiteStrangersAndWrongSecrets) {
  RankJob root({.rank = 0, .ranks = 3, .port = 0, .secret = "right"});
  const int port = root.port();
  auto joined = std::async(std::launch::async, [&] { return root.join(30); });
  std::mt19937 random(1);
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 100; ++i) {  // more than rank 0 keeps
    strangers.push_back(connect_to(port));
    std::string bytes(random() % 80, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (strangers.back().number() >= 0 && i % 2 == 0)
      (void)::send(strangers.back().number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  const auto join = [&](int rank, int ranks, const std::string& secret) {
    return RankJob({.rank = rank, .ranks = ranks, .port = port, .secret = secret}).join(10);
  };
  EXPECT_EQ(code_of([&] { join(1, 3, "wrong"); }), "ranks.rejected");
  EXPECT_EQ(code_of([&] { join(1, 2, "right"); }), "ranks.rejected");
  std::future<std::shared_ptr<Communicator>> twins[2];
  for (auto& twin : twins) twin = std::async(std::launch::async, [&] { return join(1, 3, "right"); });
  int rejected = 0;
  while (twins[rejected].wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) rejected ^= 1;
  EXPECT_EQ(code_of([&] { twins[rejected].get(); }), "ranks.rejected");
  const auto second = join(2, 3, "right");
  const auto first = twins[1 - rejected].get();
  const auto zeroth = joined.get();
  for (const auto& one : {first, second, zeroth}) EXPECT_EQ(one->transport(), "shared memory");
  std::uint32_t all[3] = {};
  for (const auto& one : {first, second, zeroth}) {
    const auto rank = static_cast<std::uint32_t>(one->rank()) + 5;
    one->gather(std::as_bytes(std::span(&rank, 1)), std::as_writable_bytes(std::span(all)));
  }
  EXPECT_EQ(all[1], 6u);
  EXPECT_EQ(all[2], 7u);
}

TEST(RankJob, GivesUpWithTheMissingRanks) {
  RankJob root({.rank = 0, .ranks = 3, .port = 0, .secret = "x"});
  try {
    root.join(0.1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().message, "ranks 1, 2 did not join within 0.1 s");
  }
  EXPECT_EQ(code_of([&] { RankJob({.rank = 1, .ranks = 2, .port = 1, .secret = "x"}).join(0.1); }), "ranks.missing");
}

// Whatever a peer sends: rank 0 gets the message or throws, and never waits for more.
void reject_mutated_messages(const std::shared_ptr<SharedRings>& rings, int mutants) {
  const Descriptor readable(::open("/dev/null", O_RDONLY));
  std::mt19937_64 random(7);
  const std::string message = "twelve bytes";
  std::string good(16, '\0');
  const std::uint32_t magic = 0x47524e31, number = 1;
  const std::uint64_t size = message.size();
  std::memcpy(good.data(), &magic, 4), std::memcpy(good.data() + 4, &number, 4), std::memcpy(good.data() + 8, &size, 8);
  good += message;
  int accepted = 0;
  for (int i = 0; i < mutants; ++i) {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    std::vector<Descriptor> peers;
    peers.emplace_back(pair[0]);
    Descriptor peer(pair[1]);
    std::string bytes = good;
    for (std::uint64_t change = random() % 4; change > 0; --change) {
      const std::size_t at = random() % bytes.size();
      if (random() % 8 == 0)
        bytes.resize(at + 1);
      else if (random() % 8 == 0)
        bytes.insert(at, 1, static_cast<char>(random()));
      else
        bytes[at] = static_cast<char>(random());
    }
    if (rings != nullptr)
      rings->move(1, 0, true, std::as_writable_bytes(std::span(bytes)), -1);
    else
      (void)::send(peer.number(), bytes.data(), bytes.size(), 0);
    peer = Descriptor();
    const auto root = socket_ranks(0, 2, std::move(peers), 1, rings);
    std::string all(2 * message.size(), '\0');
    const std::string code =
        code_of([&] { root->gather(std::as_bytes(std::span(message)), std::as_writable_bytes(std::span(all))); });
    EXPECT_TRUE(code.empty() || code == "ranks.lost") << code;
    accepted += code.empty() ? 1 : 0;
    for (std::byte rest[1]; rings != nullptr && rings->move(1, 0, false, rest, readable.number());) continue;
  }
  EXPECT_GT(accepted, mutants / 5);
  EXPECT_LT(accepted, mutants / 5 * 4);
}

TEST(SocketRanks, RejectMutatedMessages) {
  reject_mutated_messages(nullptr, rounds(20000, 100000));
}

TEST(SharedRings, RejectMutatedMessages) {
  reject_mutated_messages(SharedRings::create(2), rounds(20000, 100000));
}

// Messages of many sizes, up to several times the size of a ring, which the ranks write and read at different speeds.
TEST(SharedRings, MoveMessagesOfAnySize) {
  const std::vector<std::shared_ptr<Communicator>> ranks = thread_ranks(3, true);
  const auto run = [](Communicator& one) {
    std::mt19937 random(3);
    for (int round = 0; round < 60; ++round) {
      const std::size_t size = round % 20 == 19 ? 1'000'000 + random() % 1000 : random() % 5000;
      std::vector<std::uint8_t> all(3 * size), mine(size, static_cast<std::uint8_t>(16 * round + one.rank()));
      if (one.rank() == round % 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      one.gather(std::as_bytes(std::span(mine)),
                 std::as_writable_bytes(std::span(all).first(one.rank() == 0 ? 3 * size : 0)));
      one.broadcast(std::as_writable_bytes(std::span(all)));
      for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i] != static_cast<std::uint8_t>(16 * round + static_cast<int>(i / size))) return false;
    }
    return true;
  };
  std::vector<std::future<bool>> running;
  for (const auto& one : ranks) running.push_back(std::async(std::launch::async, [&] { return run(*one); }));
  for (auto& one : running) EXPECT_TRUE(one.get());
}

TEST(SharedRings, AreThoseOfTheOffer) {
  const auto rings = SharedRings::create(2);
  ASSERT_NE(rings, nullptr);
  EXPECT_NE(SharedRings::open(rings->offer(), 2), nullptr);
  SharedRings::Offer other = rings->offer();
  ++other.name[1];  // the same path on another host
  EXPECT_EQ(SharedRings::open(other, 2), nullptr);
  for (const std::int64_t file : {-1, 0, 1 << 30}) {
    other = rings->offer();
    other.file = file;
    EXPECT_EQ(SharedRings::open(other, 2), nullptr);
  }
}

TEST(LaunchedPlace, FollowsTheVariablesOfLaunchers) {
  for (const char* name :
       {"GRAPHRUN_RANK", "GRAPHRUN_RANKS", "GRAPHRUN_RENDEZVOUS", "GRAPHRUN_JOB_SECRET", "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "RANK", "WORLD_SIZE"})
    ::unsetenv(name);
  EXPECT_FALSE(launched_place());
  const Variable rank("RANK", "2"), size("WORLD_SIZE", "4");
  EXPECT_FALSE(launched_place());  // others use these names, too
  const Variable local("LOCAL_RANK", "0"), address("MASTER_ADDR", "node7"), port("MASTER_PORT", "1000");
  ASSERT_TRUE(launched_place());
  EXPECT_EQ(launched_place()->host, "127.0.0.1");  // no secret
  const Variable secret("GRAPHRUN_JOB_SECRET", "s");
  EXPECT_EQ(launched_place()->host, "node7");
  EXPECT_EQ(launched_place()->port, 1001);
  const Variable process("SLURM_PROCID", "3"), tasks("SLURM_STEP_NUM_TASKS", "1"), job("SLURM_JOB_ID", "123456"),
      nodes("SLURM_STEP_NODELIST", "gpu[03-07,12].lan,login");
  EXPECT_EQ(launched_place()->rank, 2);  // a batch script with one task
  const Variable more("SLURM_STEP_NUM_TASKS", "8");
  EXPECT_EQ(launched_place()->rank, 3);
  EXPECT_EQ(launched_place()->ranks, 8);
  EXPECT_EQ(launched_place()->host, "gpu03.lan");
  const Variable mpi("OMPI_COMM_WORLD_RANK", "1"), mpi_size("OMPI_COMM_WORLD_SIZE", "2"),
      where("GRAPHRUN_RENDEZVOUS", "head:77");
  EXPECT_EQ(launched_place()->rank, 1);
  EXPECT_EQ(launched_place()->host, "head");
  EXPECT_EQ(launched_place()->port, 77);
  const Variable bad("GRAPHRUN_RENDEZVOUS", "head:99999");
  EXPECT_EQ(code_of([] { (void)launched_place(); }), "ranks.variable");
}

}  // namespace
}  // namespace graphrun::test
