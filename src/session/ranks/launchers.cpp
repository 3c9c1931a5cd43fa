// launchers.cpp: launched_place(): the variables that launchers set for the processes of a job; mpi_ranks(): the
// library that joins them over MPI (mpi/mpi_ranks.cpp).
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/text.h"
#include "graphrun/communicator.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

constexpr int kPort = 29571;

std::string text_of(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int number_of(const char* name) {
  const std::string text = text_of(name);
  if (const std::optional<int> value = parse_number<int>(text); value && *value >= 0) return *value;
  throw Error(ErrorKind::input, "ranks.variable", fmt::format("{}: expected a number, got '{}'", name, text));
}

// The variables of one launcher. One that every process of a batch job has is not enough to be among several ranks.
struct Launcher {
  const char *rank, *ranks;
};
constexpr Launcher kLaunchers[] = {{"GRAPHRUN_RANK", "GRAPHRUN_RANKS"},
                                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"PMI_RANK", "PMI_SIZE"},
                                   {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
                                   {"RANK", "WORLD_SIZE"}};

// First host of "node[03-07,12],other".
std::string first_host(const std::string& list) {
  const std::size_t open = list.find_first_of("[,");
  if (open == std::string::npos || list[open] == ',') return list.substr(0, open);
  const std::size_t end = list.find_first_of("-,]", open);
  const std::size_t close = list.find(']', open);
  const std::string rest = close == std::string::npos ? "" : list.substr(close + 1);
  return list.substr(0, open) + list.substr(open + 1, end - open - 1) + rest.substr(0, rest.find(','));
}

}  // namespace

std::optional<RankPlace> launched_place() {
  for (const Launcher& launcher : kLaunchers) {
    const std::string name = launcher.rank;
    if (text_of(launcher.rank).empty() || text_of(launcher.ranks).empty()) continue;
    if (name == "RANK" &&
        (text_of("LOCAL_RANK").empty() || text_of("MASTER_ADDR").empty() || text_of("MASTER_PORT").empty()))
      continue;  // torchrun sets all five
    RankPlace place;
    place.rank = number_of(launcher.rank);
    place.ranks = number_of(launcher.ranks);
    if (place.ranks == 1) continue;
    place.port = kPort;
    place.secret = text_of("GRAPHRUN_JOB_SECRET");
    if (name == "RANK") {
      place.host = text_of("MASTER_ADDR");
      place.port = number_of("MASTER_PORT") + 1;  // torchrun itself may listen on the other one
    } else if (name == "SLURM_PROCID") {
      place.host = first_host(text_of("SLURM_STEP_NODELIST"));
      place.port = 20000 + number_of("SLURM_JOB_ID") % 10000;
    }
    if (const std::string where = text_of("GRAPHRUN_RENDEZVOUS"); !where.empty()) {
      const std::size_t colon = where.rfind(':');
      const std::optional<int> port =
          colon == std::string::npos ? std::nullopt : parse_number<int>(where.substr(colon + 1));
      if (!port || *port < 1 || *port > 65535 || colon == 0)
        throw Error(ErrorKind::input, "ranks.variable",
                    fmt::format("GRAPHRUN_RENDEZVOUS: expected HOST:PORT of rank 0, got '{}'", where));
      place.host = where.substr(0, colon);
      place.port = *port;
    }
    if (place.secret.empty()) place.host = "127.0.0.1";
    return place;
  }
  return std::nullopt;
}

std::shared_ptr<Communicator> mpi_ranks() {
  Dl_info own{};
  std::error_code ignored;
  (void)dladdr(reinterpret_cast<const void*>(&mpi_ranks), &own);
  const std::string path =
      std::filesystem::weakly_canonical(own.dli_fname, ignored).replace_filename("libgraphrun_mpi.so").string();
  if (!std::filesystem::exists(path, ignored))
    throw Error(ErrorKind::device, "mpi.not_built", fmt::format("there is no {}", path),
                "build graphrun where MPI is installed, or leave --ranks=mpi out: ranks of mpirun then use TCP");
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);  // global for the components of Open MPI
  if (library == nullptr)
    throw Error(ErrorKind::device, "mpi.load", fmt::format("{} does not load: {}", path, dlerror()),
                "it needs the MPI that it was built with");
  const auto entry = reinterpret_cast<Communicator* (*)(const char*)>(dlsym(library, "graphrun_mpi_ranks"));
  std::shared_ptr<Communicator> ranks(entry == nullptr ? nullptr : entry(GRAPHRUN_VERSION));
  if (ranks == nullptr)
    throw Error(ErrorKind::device, "mpi.version", fmt::format("{} belongs to another build of graphrun", path),
                "install both libraries from the same build");
  return ranks;
}

}  // namespace graphrun
