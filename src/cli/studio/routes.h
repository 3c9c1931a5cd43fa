// routes.h: HTTP routes of the studio, as one table for the server and for a test.
// Contract: fast routes answer in the server's thread; others answer through Server::answer() from the helper's or the
// training's thread. No route opens a file outside the model's folder (model.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "cli/command_line/arguments.h"
#include "cli/studio/model.h"
#include "cli/studio/training.h"
#include "studio/server.h"

namespace graphrun::cli {

struct StudioViews;  // state of the helper's thread (views.h)

// Shared state of all routes. Member order matters: the two threads must end before the members that their jobs use.
class Studio {
 public:
  explicit Studio(const Arguments& arguments);
  ~Studio();

  std::optional<studio::Response> answer(const studio::Request& request, studio::Ticket ticket);

  StudioModel model;
  std::string trained_text;  // model text of the latest training
  ScratchFolder scratch;
  studio::Server server;
  std::unique_ptr<StudioViews> views;
  studio::Worker helper;
  StudioTraining training;  // its jobs post to the helper

 private:
  void read_runs();
};

struct StudioRoute {
  std::string_view method, path;
  std::optional<studio::Response> (*answer)(Studio& studio, const studio::Request& request, studio::Ticket ticket);
};
std::span<const StudioRoute> studio_routes();  // in addition to the files of the page

}  // namespace graphrun::cli
