// routes.h: what the page may ask of the studio: one table, which the server and a test walk.
// Contract: answers are made in the server's thread where they are quick, else in the helper's or the training's: then
// they come by Server::answer(). No route opens a file beyond the model's folder (model.h).
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

struct StudioViews;  // what the helper's thread keeps (views.h)

// All that routes work on. Jobs of the two threads are done before what they use is gone: the order counts.
class Studio {
 public:
  explicit Studio(const Arguments& arguments);
  ~Studio();

  std::optional<studio::Response> answer(const studio::Request& request, studio::Ticket ticket);

  StudioModel model;
  std::string trained_text;  // of the latest training
  ScratchFolder scratch;
  studio::Server server;
  std::unique_ptr<StudioViews> views;
  studio::Worker helper;
  StudioTraining training;  // whose jobs ask the helper

 private:
  void read_runs();
};

struct StudioRoute {
  std::string_view method, path;
  std::optional<studio::Response> (*answer)(Studio& studio, const studio::Request& request, studio::Ticket ticket);
};
std::span<const StudioRoute> studio_routes();  // beside the files of the page

}  // namespace graphrun::cli
