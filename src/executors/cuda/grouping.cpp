#include "executors/cuda/grouping.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "executors/cuda/launch_order.h"
#include "graphrun/op.h"
#include "kernels/cuda/fused.h"
#include "kernels/cuda/layout.h"

namespace graphrun::cuda {
namespace {

// Steps that are grouped together at most: the search is quadratic.
constexpr std::size_t kWindow = 384;
constexpr std::size_t kMembers = 64;    // of a segment
constexpr std::size_t kOperands = 200;  // of a launch: each is an address among the kernel's parameters

struct Range {
  std::uint64_t begin = 0, end = 0;
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
  bool covers(const Range& other) const { return begin <= other.begin && end >= other.end; }
  friend bool operator==(const Range&, const Range&) = default;
};

struct Read {
  Range range;
  bool aligned = false;       // element i of the result needs element i and no other
  bool one = false;           // the operand is one number
  std::int64_t inlined = -1;  // the step that is computed anew instead
  std::int64_t scalar = -1;   // of an inlinable step: the inlinable step whose result it is
};

// What a step touches.
struct Footprint {
  bool elementwise = false;
  std::uint64_t elements = 0;
  bool state = false;                  // its result must be stored
  bool partial = false;                // its result is a part of the range
  bool inlinable = false;              // one number from others, or the same one for all elements
  BufferId rows = kNoBuffer;           // how many samples it has; past them all is zero
  bool dead = false;                   // computed anew by everyone who needs it
  std::vector<std::uint32_t> scalars;  // what it computes anew, in order; their reads are its own, after its inputs
  Range written, scratch;
  std::vector<Read> reads;  // the inputs in order, then the row count: `own` of them; then those of the scalars
  std::size_t own = 0;
};

Range range_of(const Program& program, BufferId id) {
  const Buffer& buffer = program.buffers[id];
  const std::uint64_t bytes = buffer.kind == BufferKind::workspace ? buffer.bytes : buffer.type.bytes();
  return {buffer.offset, buffer.offset + bytes};
}

Footprint footprint_of(const Program& program, const Step& step) {
  const TensorType& out = program.buffers[step.output].type;
  const bool record = step.op == Op::record;
  Footprint f;
  f.elements = record ? 1 : static_cast<std::uint64_t>(out.shape.elements());
  f.elementwise = can_fuse(step.op) && f.elements > 0;
  f.state = is_state(program.buffers[step.output].kind) ||
            is_state(program.buffers[program.buffers[step.output].storage].kind);
  f.partial = record;
  f.written = range_of(program, step.output);
  if (step.workspace != kNoBuffer) f.scratch = range_of(program, step.workspace);
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    const Shape& in = program.buffers[step.inputs[i]].type.shape;
    const bool aligned = f.elementwise && (record ? in.elements() == 1
                                                  : in.rank() <= out.shape.rank() &&
                                                        operand_of(in, out.shape, nullptr).access == Access::same);
    f.reads.push_back({range_of(program, step.inputs[i]), aligned, in.elements() == 1});
  }
  if (step.row_count != kNoBuffer) f.reads.push_back({range_of(program, step.row_count)});
  f.own = f.reads.size();
  if (out.rows > 0) f.rows = step.row_count;
  const bool number = f.elements == 1 && out.rows == 0 && step.op != Op::increment && step.op != Op::row_count &&
                      step.op != Op::record && step.op != Op::assign;
  const bool everywhere = step.op == Op::broadcast_to && f.reads.front().one;
  f.inlinable = f.elementwise && !f.state && (number || everywhere);
  return f;
}

// Numbers that follow from others without a sum in between need no launch of their own: where they are used over a
// larger space each thread computes them anew, from memory that still holds what it held.
class Scalars {
 public:
  Scalars(std::vector<Footprint>& steps, const std::vector<bool>& read_outside)
      : steps_(steps), read_outside_(read_outside) {}

  void inline_all() {
    for (std::uint32_t i = 0; i < steps_.size(); ++i) {
      if (!steps_[i].inlinable) continue;
      for (Read& read : steps_[i].reads) {
        const std::int64_t from = writer(read.range, i);
        if (can(from)) read.scalar = from;
      }
    }
    std::vector<bool> read(steps_.size(), false);
    for (std::uint32_t i = static_cast<std::uint32_t>(steps_.size()); i-- > 0;) {
      Footprint& f = steps_[i];
      f.dead = read[i] && !read_outside_[i] && f.inlinable && !needed(i);
      if (f.elementwise && f.elements > 1) inline_into(i);
      for (const Read& r : f.reads) mark(r, i, !f.dead && r.inlined < 0, read);
    }
  }

 private:
  // The step whose result the range holds just before step `at`; -1: none wrote it, -2: several, or in parts.
  std::int64_t writer(const Range& range, std::uint32_t at) const {
    for (std::uint32_t i = at; i-- > 0;) {
      const Footprint& f = steps_[i];
      if (f.scratch.overlaps(range)) return -2;
      if (f.written == range && !f.partial) return i;
      if (f.written.overlaps(range)) return -2;
    }
    return -1;
  }
  bool can(std::int64_t producer) const {
    return producer >= 0 && steps_[static_cast<std::size_t>(producer)].inlinable &&
           !read_outside_[static_cast<std::size_t>(producer)];
  }
  // What the producer and those it needs read from memory, when that is the same at step `at`.
  bool collect(std::uint32_t producer, std::uint32_t at, std::vector<std::uint32_t>& scalars,
               std::vector<Read>& reads) const {
    if (std::find(scalars.begin(), scalars.end(), producer) != scalars.end()) return true;
    const Footprint& f = steps_[producer];
    for (std::size_t i = 0; i < f.own; ++i) {
      const Read& read = f.reads[i];
      if (f.rows != kNoBuffer && i + 1 == f.own) continue;  // the row count
      if (read.scalar >= 0) {
        if (!collect(static_cast<std::uint32_t>(read.scalar), at, scalars, reads)) return false;
        continue;
      }
      const std::int64_t from = writer(read.range, producer);
      if (from == -2 || !read.one) return false;
      if (writer(read.range, at) != from) return false;
      reads.push_back({read.range});
    }
    scalars.push_back(producer);
    return scalars.size() <= kScalars;
  }
  void inline_into(std::uint32_t step) {
    Footprint& f = steps_[step];
    for (std::size_t i = 0; i < f.own; ++i) {
      const std::int64_t producer = writer(f.reads[i].range, step);
      if (!can(producer)) continue;
      const BufferId rows = steps_[static_cast<std::size_t>(producer)].rows;
      if (rows != kNoBuffer && rows != f.rows) continue;  // its zeros would be seen
      std::vector<std::uint32_t> scalars = f.scalars;
      std::vector<Read> reads;
      if (!collect(static_cast<std::uint32_t>(producer), step, scalars, reads)) continue;
      f.scalars = std::move(scalars);
      f.reads.insert(f.reads.end(), reads.begin(), reads.end());
      f.reads[i].inlined = producer;
    }
  }
  // Every step that the read may take a value from.
  void mark(const Read& read, std::uint32_t at, bool needed, std::vector<bool>& seen) {
    for (std::uint32_t i = at; i-- > 0;) {
      if (!steps_[i].written.overlaps(read.range)) continue;
      seen[i] = true;
      if (needed) needed_.insert(i);
      if (steps_[i].written.covers(read.range) && !steps_[i].partial) return;
    }
  }
  bool needed(std::uint32_t step) const { return needed_.count(step) > 0; }

  static constexpr std::size_t kScalars = 12;  // of one step
  std::vector<Footprint>& steps_;
  const std::vector<bool>& read_outside_;
  std::set<std::uint32_t> needed_;
};

// Step `later` needs something of step `earlier`.
struct Dependence {
  enum class Kind : std::uint8_t { value, overwrites_read, overwrites_result, scratch } kind;
  std::uint32_t earlier = 0, later = 0;
  std::size_t input = 0;  // value: of the later step; overwrites_read: of the earlier one
  bool aligned = false;   // element by element: may hold within a segment
};

class Grouper {
 public:
  Grouper(std::vector<Footprint> steps, std::vector<bool> read_outside)
      : steps_(std::move(steps)), read_outside_(std::move(read_outside)), segment_(steps_.size()) {
    for (std::uint32_t i = 0; i < steps_.size(); ++i) segment_[i] = i;
    find_dependences();
  }

  void merge() {
    for (std::uint32_t step = 0; step < steps_.size(); ++step) {
      if (!steps_[step].elementwise || steps_[step].dead) continue;
      for (const Dependence& d : dependences_) {
        if (d.later != step || d.kind != Dependence::Kind::value || !d.aligned) continue;
        if (!steps_[d.earlier].elementwise || steps_[d.earlier].elements != steps_[step].elements) continue;
        if (steps_[d.earlier].partial) continue;
        unite(segment_[d.earlier], segment_[step]);
      }
    }
  }

  // Appends to `launches`; steps are numbered from `base`. `share`: elementwise segments of no order among them get one
  // launch.
  void schedule(std::uint32_t base, bool share, std::vector<Launch>& launches) const;

 private:
  using Kind = Dependence::Kind;
  static constexpr std::uint32_t kNone = ~0u;
  using Edges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // of segments

  void find_dependences() {
    const auto count = static_cast<std::uint32_t>(steps_.size());
    for (std::uint32_t later = 0; later < count; ++later) {
      const Footprint& l = steps_[later];
      producer_.emplace_back(l.reads.size(), kNone);
      if (l.dead) continue;
      for (std::size_t i = 0; i < l.reads.size(); ++i) {
        if (l.reads[i].inlined >= 0) continue;
        bool nearest = true;
        for (std::uint32_t earlier = later; earlier-- > 0;) {
          const Footprint& e = steps_[earlier];
          if (e.dead || !e.written.overlaps(l.reads[i].range)) continue;
          const bool aligned = nearest && l.reads[i].aligned && e.written == l.reads[i].range && !e.partial;
          if (aligned) producer_[later][i] = earlier;
          nearest = false;
          dependences_.push_back({Kind::value, earlier, later, i, aligned});
          if (e.written.covers(l.reads[i].range) && !e.partial) break;
        }
      }
      for (std::uint32_t earlier = 0; earlier < later; ++earlier) {
        const Footprint& e = steps_[earlier];
        if (e.dead) continue;
        for (std::size_t i = 0; i < e.reads.size(); ++i) {
          if (e.reads[i].inlined >= 0) continue;
          if (!l.written.overlaps(e.reads[i].range)) continue;
          const bool aligned = e.reads[i].aligned && l.written == e.reads[i].range && !l.partial;
          dependences_.push_back({Kind::overwrites_read, earlier, later, i, aligned});
        }
        if (l.written.overlaps(e.written)) {
          dependences_.push_back({Kind::overwrites_result, earlier, later, 0, l.written == e.written && !l.partial});
        }
        if (scratches(e, l) || scratches(l, e)) dependences_.push_back({Kind::scratch, earlier, later, 0, false});
      }
    }
  }

  // The scratch of `a` lies where `b` reads, writes or has its own.
  static bool scratches(const Footprint& a, const Footprint& b) {
    if (a.scratch.overlaps(b.written) || a.scratch.overlaps(b.scratch)) return true;
    return std::any_of(b.reads.begin(), b.reads.end(), [&](const Read& r) { return a.scratch.overlaps(r.range); });
  }

  bool in_register(const Dependence& d, const std::vector<std::uint32_t>& segment) const {
    return d.kind == Kind::value && d.aligned && segment[d.earlier] == segment[d.later];
  }

  std::vector<bool> stored_with(const std::vector<std::uint32_t>& segment) const {
    std::vector<bool> stored = read_outside_, read(steps_.size(), false);
    for (std::size_t i = 0; i < steps_.size(); ++i) stored[i] = stored[i] || steps_[i].state || !steps_[i].elementwise;
    for (const Dependence& d : dependences_) {
      if (d.kind != Kind::value) continue;
      read[d.earlier] = true;
      if (!in_register(d, segment)) stored[d.earlier] = true;
    }
    for (std::size_t i = 0; i < steps_.size(); ++i) stored[i] = stored[i] || !read[i];
    return stored;
  }

  // Whether the input is read from memory: no member of the segment has its value.
  bool reads_memory(std::uint32_t step, std::size_t input, const std::vector<std::uint32_t>& segment) const {
    const std::uint32_t producer = producer_[step][input];
    return producer == kNone || segment[producer] != segment[step];
  }

  // The order between segments; nothing when a segment would have to wait for itself.
  std::optional<Edges> edges_with(const std::vector<std::uint32_t>& segment) const {
    const std::vector<bool> stored = stored_with(segment);
    Edges edges;
    for (const Dependence& d : dependences_) {
      const bool matters =
          d.kind == Kind::value || d.kind == Kind::scratch ||
          (d.kind == Kind::overwrites_result && stored[d.earlier] && stored[d.later]) ||
          (d.kind == Kind::overwrites_read && stored[d.later] && reads_memory(d.earlier, d.input, segment));
      if (!matters) continue;
      if (segment[d.earlier] != segment[d.later]) {
        edges.emplace_back(segment[d.earlier], segment[d.later]);
      } else if (!d.aligned) {
        return std::nullopt;
      }
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    return edges;
  }

  // Segments in an order that keeps all edges; fewer than there are when they run in circles.
  static std::vector<std::uint32_t> order_of(const std::vector<std::uint32_t>& segment, const Edges& edges) {
    const std::size_t count = segment.size();
    std::vector<std::uint32_t> waiting(count, 0), order;
    std::vector<bool> used(count, false);
    for (const std::uint32_t s : segment) used[s] = true;
    for (const auto& [from, to] : edges) ++waiting[to];
    for (std::uint32_t s = 0; s < count; ++s) {
      if (used[s] && waiting[s] == 0) order.push_back(s);
    }
    for (std::size_t at = 0; at < order.size(); ++at) {
      const auto from = std::lower_bound(edges.begin(), edges.end(), std::pair{order[at], std::uint32_t{0}});
      for (auto edge = from; edge != edges.end() && edge->first == order[at]; ++edge) {
        if (--waiting[edge->second] == 0) order.push_back(edge->second);
      }
    }
    return order;
  }

  void unite(std::uint32_t a, std::uint32_t b) {
    if (a == b) return;
    std::vector<std::uint32_t> trial = segment_;
    for (std::uint32_t& s : trial) {
      if (s == b) s = a;
    }
    if (static_cast<std::size_t>(std::count(trial.begin(), trial.end(), a)) > kMembers) return;
    const auto edges = edges_with(trial);
    if (!edges) return;
    std::vector<bool> used(trial.size(), false);
    for (const std::uint32_t s : trial) used[s] = true;
    const auto segments = static_cast<std::size_t>(std::count(used.begin(), used.end(), true));
    if (order_of(trial, *edges).size() == segments) segment_ = std::move(trial);
  }

  std::vector<Footprint> steps_;
  std::vector<bool> read_outside_;
  std::vector<Dependence> dependences_;
  std::vector<std::vector<std::uint32_t>>
      producer_;                        // of each input of each step: whose value it is, element by element
  std::vector<std::uint32_t> segment_;  // of each step
};

void Grouper::schedule(std::uint32_t base, bool share, std::vector<Launch>& launches) const {
  const Edges edges = edges_with(segment_).value();
  const std::vector<std::uint32_t> order = order_of(segment_, edges);
  const std::vector<bool> stored = stored_with(segment_);
  const std::size_t count = segment_.size();

  // How long the longest way from a segment to the end is: elementwise segments that could wait do so until one that
  // cannot shares their launch.
  std::vector<std::uint32_t> height(count, 0), waiting(count, 0);
  for (auto s = order.rbegin(); s != order.rend(); ++s) {
    for (const auto& [from, to] : edges) {
      if (from == *s) height[from] = std::max(height[from], height[to] + 1);
    }
  }
  for (const auto& [from, to] : edges) ++waiting[to];

  std::vector<Segment> segments(count);
  std::vector<int> place(count, -1);                        // of a step in its segment
  std::vector<std::map<std::int64_t, int>> scalars(count);  // of a segment: where what it computes anew stands
  for (std::uint32_t i = 0; i < count; ++i) {
    if (steps_[i].dead) continue;
    std::vector<Member>& members = segments[segment_[i]].members;
    std::map<std::int64_t, int>& anew = scalars[segment_[i]];
    const auto inputs = [&](std::uint32_t step) {
      std::vector<int> from;
      for (std::size_t input = 0; input < steps_[step].own; ++input) {
        const std::int64_t scalar = steps_[step].reads[input].scalar;
        from.push_back(scalar >= 0 ? anew.at(scalar) : -1);
      }
      return from;
    };
    for (const std::uint32_t scalar : steps_[i].scalars) {
      if (anew.count(scalar) > 0) continue;
      members.push_back({base + scalar, false, true, inputs(scalar)});
      anew[scalar] = static_cast<int>(members.size()) - 1;
    }
    Member member{base + i, stored[i], false, std::vector<int>(steps_[i].own, -1)};
    for (std::size_t input = 0; input < steps_[i].own; ++input) {
      if (steps_[i].reads[input].inlined >= 0) {
        member.from[input] = anew.at(steps_[i].reads[input].inlined);
      } else if (!reads_memory(i, input, segment_)) {
        member.from[input] = place[producer_[i][input]];
      }
    }
    place[i] = static_cast<int>(members.size());
    members.push_back(std::move(member));
  }

  std::vector<std::uint32_t> ready;
  for (const std::uint32_t s : order) {
    if (waiting[s] == 0 && !segments[s].members.empty()) ready.push_back(s);
  }
  const auto operands = [&](std::uint32_t s) {
    std::size_t sum = 0;
    for (const Member& m : segments[s].members) sum += m.from.size() + 1;
    return sum;
  };
  const auto add = [&](const std::vector<std::uint32_t>& parts) {
    Launch launch;
    for (const std::uint32_t s : parts) launch.segments.push_back(segments[s]);
    launches.push_back(std::move(launch));
  };
  while (!ready.empty()) {
    std::uint32_t level = 0;
    for (const std::uint32_t s : ready) level = std::max(level, height[s]);
    std::vector<std::uint32_t> alone, shared, later;
    bool urgent = false;
    for (const std::uint32_t s : ready) {
      const bool elementwise = share && steps_[segments[s].members.back().step - base].elementwise;
      (elementwise ? shared : alone).push_back(s);
      urgent = urgent || (elementwise && height[s] == level);
    }
    if (!urgent && !alone.empty()) later.swap(shared);
    for (const std::uint32_t s : alone) add({s});
    std::vector<std::uint32_t> part;
    std::size_t used = 0;
    for (const std::uint32_t s : shared) {
      if (!part.empty() && used + operands(s) > kOperands) {
        add(part);
        part.clear();
        used = 0;
      }
      part.push_back(s);
      used += operands(s);
    }
    if (!part.empty()) add(part);

    std::vector<std::uint32_t> done = std::move(alone);
    done.insert(done.end(), shared.begin(), shared.end());
    ready = std::move(later);
    for (const std::uint32_t s : done) {
      for (const auto& [from, to] : edges) {
        if (from == s && --waiting[to] == 0) ready.push_back(to);
      }
    }
    std::sort(ready.begin(), ready.end());
  }
}

LaunchAccess access_of(const Program& program, const Phase& phase, const Launch& launch) {
  LaunchAccess access;
  for (const Segment& segment : launch.segments) {
    for (const Member& member : segment.members) {
      LaunchAccess all;
      all.add(program, phase.steps[member.step]);
      for (std::size_t i = 0; i < all.reads.size(); ++i) {
        if (i >= member.from.size() || member.from[i] < 0) access.reads.push_back(all.reads[i]);
      }
      if (member.stored) access.writes.insert(access.writes.end(), all.writes.begin(), all.writes.end());
    }
  }
  return access;
}

}  // namespace

std::vector<Launch> group_steps(const Program& program, const Phase& phase, bool fuse) {
  std::vector<Footprint> all;
  for (const Step& step : phase.steps) all.push_back(footprint_of(program, step));
  const bool shares = fuse && std::any_of(all.begin(), all.end(), [](const Footprint& f) { return f.state; });
  std::vector<Launch> launches;
  for (std::size_t begin = 0; begin < all.size(); begin += kWindow) {
    const std::size_t end = std::min(all.size(), begin + kWindow);
    std::vector<Footprint> window(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                  all.begin() + static_cast<std::ptrdiff_t>(end));
    std::vector<bool> read_outside(window.size(), !shares);
    for (std::size_t later = end; later < all.size() && shares; ++later) {
      for (const Read& read : all[later].reads) {
        for (std::size_t i = 0; i < window.size(); ++i) {
          if (window[i].written.overlaps(read.range)) read_outside[i] = true;
        }
      }
    }
    if (shares) Scalars(window, read_outside).inline_all();
    Grouper grouper(std::move(window), std::move(read_outside));
    if (shares) grouper.merge();
    grouper.schedule(static_cast<std::uint32_t>(begin), shares, launches);
  }
  std::vector<LaunchAccess> accesses;
  for (const Launch& launch : launches) accesses.push_back(access_of(program, phase, launch));
  std::vector<std::vector<std::uint32_t>> order = launch_order(accesses);
  for (std::size_t i = 0; i < launches.size(); ++i) launches[i].after = std::move(order[i]);
  return launches;
}

}  // namespace graphrun::cuda
