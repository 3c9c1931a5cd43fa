#include "cli/plans/plan_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "cli/plans/buffer_uses.h"
#include "cli/terminal/terminal.h"

namespace graphrun::cli {
namespace {

using plot::Colour;
using plot::Drawing;
using plot::kColours;

constexpr double kWidth = 960, kHeight = 560, kLeft = 92, kRight = 24, kTop = 100, kBottom = 52, kText = 11;
constexpr Colour kOnColour{0xffffff, 0x16191d};

struct KindLook {
  BufferKind kind;
  Colour colour;
};
constexpr KindLook kLooks[] = {
    {BufferKind::data, {0x6b7680, 0xa3adb6}},       {BufferKind::constant, {0x8b4513, 0xd2976b}},
    {BufferKind::parameter, {0x0072b2, 0x56b4e9}},  {BufferKind::slot, {0x6a3d9a, 0xb794f4}},
    {BufferKind::counter, {0xb8860b, 0xf0d050}},    {BufferKind::metric, {0xcc79a7, 0xe79bc6}},
    {BufferKind::activation, {0xd55e00, 0xff8c42}}, {BufferKind::workspace, {0x009e73, 0x2fd6a6}},
};

std::string short_bytes(double bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, bytes == std::floor(bytes) || bytes >= 100 ? 0 : 1, kUnits[unit]);
}

// A value that owns bytes, live from `first` to the end of `last`, in steps counted over all phases.
struct PlannedBlock {
  std::size_t id;
  std::uint64_t begin, end;
  std::size_t first, last;
  bool always;
};

class PlanPicture {
 public:
  PlanPicture(const Program& program, std::string_view executor) : program_(program), executor_(executor) {}

  Drawing run() {
    find_blocks();
    find_range();
    drawing_.title = fmt::format("Memory plan of {}", program_.name);
    drawing_.width = kWidth;
    drawing_.height = kHeight;
    axes();
    for (const PlannedBlock& block : blocks_) draw(block);
    marks();
    heading();
    return std::move(drawing_);
  }

 private:
  void find_blocks() {
    for (const Phase& phase : program_.phases) {
      starts_.push_back(steps_);
      steps_ += std::max<std::size_t>(phase.steps.size(), 1);
    }
    steps_ = std::max<std::size_t>(steps_, 1);
    const auto uses = storage_uses(program_);
    for (std::size_t id = 0; id < program_.buffers.size(); ++id) {
      const Buffer& buffer = program_.buffers[id];
      if (!owns_bytes(program_, id) || buffer.kind == BufferKind::tile || buffer.layout == Layout::registers ||
          buffer.bytes == 0)
        continue;
      PlannedBlock block{id, buffer.offset, buffer.offset + buffer.bytes, 0, steps_ - 1, true};
      if (const auto& use = uses[id]) {
        block.first = starts_[use->phase] + use->first;
        block.last = starts_[use->phase] + use->last;
        block.always = false;
      }
      blocks_.push_back(block);
    }
  }

  void find_range() {
    high_ = std::max<std::uint64_t>(program_.arena_bytes, 1);
    std::uint64_t begin = high_, end = 0;
    for (const PlannedBlock& block : blocks_) {
      if (block.always) continue;
      begin = std::min(begin, block.begin);
      end = std::max(end, block.end);
    }
    if (begin >= end) return;  // all values are always live
    low_ = begin;
    high_ = std::max(high_, end);
  }

  double x(std::size_t step) const {
    return kLeft + (kWidth - kLeft - kRight) * static_cast<double>(step) / static_cast<double>(steps_);
  }
  double y(std::uint64_t offset) const {
    const double part = static_cast<double>(offset - low_) / static_cast<double>(high_ - low_);
    return kHeight - kBottom - (kHeight - kTop - kBottom) * part;
  }
  void line(plot::Ink ink, double width, double x0, double y0, double x1, double y1, std::size_t dash = 0) {
    drawing_.strokes.push_back({{{x0, y0}, {x1, y1}}, ink, width, 0, dash});
  }
  void label(double at_x, double at_y, std::string text, plot::Anchor anchor, Colour colour = plot::kTextColour) {
    plot::Label made{{at_x, at_y}, std::move(text), kText, anchor};
    made.colour = colour;
    drawing_.labels.push_back(std::move(made));
  }

  void axes() {
    std::uint64_t step = 1;
    while (step * 8 < high_ - low_) step *= 2;
    for (std::uint64_t at = (low_ + step - 1) / step * step; at <= high_; at += step) {
      line(plot::Ink::axis, 1, kLeft - 5, y(at), kLeft, y(at));
      label(kLeft - 8, y(at) + 4, short_bytes(static_cast<double>(at)), plot::Anchor::end);
    }
    for (std::size_t i = 0; i < program_.phases.size(); ++i) {
      const std::size_t end = i + 1 < starts_.size() ? starts_[i + 1] : steps_;
      line(plot::Ink::axis, 1, x(starts_[i]), kTop, x(starts_[i]), kHeight - kBottom + 6);
      const double room = x(end) - x(starts_[i]) - 8;
      const auto most = static_cast<std::size_t>(std::max(room, 0.0) / (plot::kAdvance * kText));
      if (most >= 4)
        label(x(starts_[i]) + 4, kHeight - kBottom + 18, plot::shortened(program_.phases[i].name, most),
              plot::Anchor::start);
    }
    line(plot::Ink::axis, 1, x(steps_), kTop, x(steps_), kHeight - kBottom + 6);
    label((kLeft + kWidth - kRight) / 2, kHeight - 12, fmt::format("time: {} steps of all phases", steps_),
          plot::Anchor::middle);
  }

  static Colour colour_of(BufferKind kind) {
    const auto* const look = std::ranges::find(kLooks, kind, &KindLook::kind);
    return look == std::end(kLooks) ? plot::kAxisColour : look->colour;
  }

  void draw(const PlannedBlock& block) {
    if (block.end <= low_ || block.begin >= high_) return;
    const double left = x(block.first), right = x(block.last + 1), bottom = y(std::max(block.begin, low_)),
                 top = y(std::min(block.end, high_));
    const double gap_x = right - left > 3 ? 0.5 : 0, gap_y = bottom - top > 2 ? 0.3 : 0;
    const Buffer& buffer = program_.buffers[block.id];
    drawing_.areas.push_back(
        {{left + gap_x, top + gap_y}, {right - left - 2 * gap_x, bottom - top - 2 * gap_y}, colour_of(buffer.kind)});
    const double room = (right - left - 6) / (plot::kAdvance * kText);
    if (bottom - top >= kText + 2 && room >= 3)
      label((left + right) / 2, (top + bottom) / 2 + 4, plot::shortened(buffer.name, static_cast<std::size_t>(room)),
            plot::Anchor::middle, kOnColour);
  }

  // Draws the step with the most live bytes, and the lower bound of any plan.
  void marks() {
    std::vector<std::int64_t> change(steps_ + 1, 0);
    std::int64_t live = 0, most = 0;
    std::size_t peak = 0;
    for (const PlannedBlock& block : blocks_) {
      const auto bytes = static_cast<std::int64_t>(block.end - block.begin);
      if (block.always) continue;
      change[block.first] += bytes;
      change[block.last + 1] -= bytes;
    }
    for (std::size_t at = 0; at < steps_; ++at) {
      live += change[at];
      if (live > most) most = live, peak = at;
    }
    if (most > 0) {
      line(plot::Ink::axis, 1.5, (x(peak) + x(peak + 1)) / 2, kTop - 4, (x(peak) + x(peak + 1)) / 2, kHeight - kBottom,
           1);
      peak_ = fmt::format("peak at step {}", name_of_step(peak));
    }
    for (const auto& [at, dash] :
         {std::pair{program_.arena_bytes, std::size_t{0}}, {program_.lower_bound, std::size_t{2}}})
      if (at > low_ && at <= high_) line(plot::Ink::axis, 1.5, kLeft, y(at), kWidth - kRight, y(at), dash);
  }
  std::string name_of_step(std::size_t at) const {
    for (std::size_t i = program_.phases.size(); i-- > 0;) {
      const Phase& phase = program_.phases[i];
      if (at >= starts_[i] && at - starts_[i] < phase.steps.size())
        return fmt::format("{} of '{}' ({})", at - starts_[i] + 1, phase.name, phase.steps[at - starts_[i]].name);
    }
    return fmt::format("{}", at + 1);
  }

  void heading() {
    const auto most = static_cast<std::size_t>((kWidth - 24) / (plot::kAdvance * 14));
    plot::Label title{{12, 22}, {}, 14};
    title.text =
        plot::shortened(fmt::format("{} on {}, {}: arena {}, lower bound {}", program_.name, executor_, program_.target,
                                    human_bytes(program_.arena_bytes), human_bytes(program_.lower_bound)),
                        most);
    drawing_.labels.push_back(std::move(title));
    std::string below = low_ > 0 ? fmt::format("below: {} live in all steps", human_bytes(low_)) : "";
    if (!peak_.empty()) below = peak_ + (below.empty() ? "" : "; " + below);
    label(12, 42, plot::shortened(below, static_cast<std::size_t>((kWidth - 24) / (plot::kAdvance * kText))),
          plot::Anchor::start);
    double at = 12, down = 54;
    for (const KindLook& look : kLooks) {
      std::uint64_t bytes = 0;
      for (const PlannedBlock& block : blocks_)
        if (program_.buffers[block.id].kind == look.kind) bytes += block.end - block.begin;
      if (bytes == 0) continue;
      const std::string text = fmt::format("{} {}", name_of(look.kind), short_bytes(static_cast<double>(bytes)));
      const double wide = 14 + plot::kAdvance * kText * static_cast<double>(text.size());
      if (at + wide > kWidth - 12) at = 12, down += 18;
      drawing_.areas.push_back({{at, down}, {10, 10}, look.colour});
      label(at + 14, down + 9, text, plot::Anchor::start);
      at += wide + 14;
    }
  }

  const Program& program_;
  std::string_view executor_;
  std::vector<PlannedBlock> blocks_;
  std::vector<std::size_t> starts_;  // first step of each phase
  std::size_t steps_ = 0;
  std::uint64_t low_ = 0, high_ = 1;
  std::string peak_;
  Drawing drawing_;
};

}  // namespace

Drawing plan_picture(const Program& program, std::string_view executor) {
  return PlanPicture(program, executor).run();
}

}  // namespace graphrun::cli
