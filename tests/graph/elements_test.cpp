// The pass that finds regions over elements: what is in one, in which order, and what stays in registers; and what a
// Program with them must keep.
#include "compiler/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "compiler/compile.h"
#include "graph/builder.h"
#include "graph/verifier.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun {
namespace {

using ir::NodeId;
using List = std::vector<std::int64_t>;

constexpr ElementLimits kGpu{1, 64, 64, 200, 12};

struct ElementStep {
  ir::Graph graph;
  ir::Builder make{graph};
  std::size_t after_product = 64;  // steps that a product runs, with itself

  ElementStep() {
    graph.phases.push_back({"train", 1, ir::kNoNode});
    make.enter(0);
  }
  NodeId named(const std::string& name, NodeId id) {
    make.rename(id, name);
    return id;
  }
  NodeId state(const std::string& name, const List& shape) {
    return named(name, make.add("state", {}, {{"shape", shape}}));
  }
  NodeId sum(NodeId x) { return make.add("sum", {x}, {{"axes", List{0}}}); }

  Program program(const ElementLimits& limits = kGpu) const {
    CompileOptions options;
    options.name = "test";
    options.target = "host";
    options.tiles.elements = limits;
    options.supports = [](const StepSignature&) { return Support::with_workspace(0); };
    options.fuse = true;
    options.plan_region = [this](const RegionSignature& region) {
      if (!region.over_elements()) return RegionPlan::no("over rows");
      const bool fits = region.rows[0].op != Op::matmul || region.rows.size() <= after_product;
      return fits ? RegionPlan::with(HostTiling{}) : RegionPlan::no("too many steps after a product");
    };
    return compile(graph, options).program;
  }
};

// The names of the steps of each chain of each region.
std::vector<std::vector<std::vector<std::string>>> regions_of(const Program& program) {
  std::vector<std::vector<std::vector<std::string>>> regions;
  for (const Region& region : program.phases[0].regions) {
    auto& chains = regions.emplace_back();
    for (const ElementChain& chain : region.chains) {
      auto& names = chains.emplace_back();
      for (std::uint32_t i = chain.first; i < chain.last; ++i) names.push_back(program.phases[0].steps[i].name);
    }
  }
  return regions;
}
using ChainNames = std::vector<std::vector<std::vector<std::string>>>;

const Buffer& buffer(const Program& program, std::string_view name) {
  return program.buffers.at(find_buffer(program, name));
}
bool in_registers(const Program& program, std::string_view name) {
  const Buffer& found = buffer(program, name);
  return found.kind == BufferKind::tile && found.layout == Layout::registers && found.bytes == 0;
}

// w -= lr * g for each of two parameters, whose gradients are computed one after the other.
TEST(Elements, UpdatesWaitForEachOtherAndNeedNoMemory) {
  ElementStep step;
  for (const std::string w : {"a", "b"}) {
    const NodeId state = step.state(w, {64});
    const NodeId g = step.named("g" + w, step.make.add("softmax", {step.state("x" + w, {64})}, {{"axis", 0L}}));
    const NodeId by = step.named("by" + w, step.make.add("mul", {g, step.state("lr" + w, {})}));
    step.make.add("assign", {state, step.named("new" + w, step.make.add("sub", {state, by}))});
  }
  const Program program = step.program();
  EXPECT_EQ(regions_of(program), (ChainNames{{{"bya", "newa"}, {"byb", "newb"}}}));
  EXPECT_TRUE(in_registers(program, "bya"));
  EXPECT_FALSE(in_registers(program, "ga"));
  EXPECT_EQ(buffer(program, "newa").storage, find_buffer(program, "a")) << "in place of the state";
  // A host has no use for chains side by side.
  EXPECT_EQ(regions_of(step.program({1, 1, 64, 200, 0})), (ChainNames{{{"bya", "newa"}}, {{"byb", "newb"}}}));
  EXPECT_EQ(regions_of(step.program({65, 1, 64, 200, 0})), ChainNames{});
}

// The update of a large parameter does not wait for the gradients of others, of which the last are complete first.
TEST(Elements, LargeUpdatesOfAShardAreRegionsOfTheirOwn) {
  ElementStep step;
  const std::pair<const char*, std::int64_t> parameters[] = {{"a", 4 << 20}, {"b", 64}, {"c", 4 << 20}, {"d", 64}};
  for (const auto& [w, size] : parameters) {
    const std::string name = w;
    const NodeId state = step.state(name, {size});
    const NodeId by = step.named("by" + name, step.make.add("neg", {step.state("g" + name, {size})}));
    step.make.add("assign", {state, step.named("new" + name, step.make.add("add", {state, by}))});
  }
  const ChainNames together = {{{"bya", "newa"}, {"byb", "newb"}, {"byc", "newc"}, {"byd", "newd"}}};
  EXPECT_EQ(regions_of(step.program()), together);
  step.graph.phases[0].shards = 2;
  EXPECT_EQ(regions_of(step.program()),
            (ChainNames{{{"byc", "newc"}}, {{"bya", "newa"}}, {{"byb", "newb"}, {"byd", "newd"}}}));
}

TEST(Elements, NumbersAreComputedAnewInEachChain) {
  ElementStep step;
  const NodeId t = step.state("t", {});
  const NodeId n = step.named("n", step.make.add("exp", {step.named("m", step.make.add("neg", {t}))}));
  for (const std::string w : {"a", "b"}) {
    const NodeId state = step.state(w, {64});
    step.make.add("assign", {state, step.named("new" + w, step.make.add("mul", {state, n}))});
  }
  step.make.add("assign", {t, step.named("next", step.make.add("add", {t, step.make.scalar(1, DType::f32)}))});
  const Program program = step.program();
  // The counter goes up when nobody reads its old value.
  EXPECT_EQ(regions_of(program), (ChainNames{{{"m", "n", "newa"}, {"m.copy1", "n.copy1", "newb"}}}));
  EXPECT_EQ(program.phases[0].steps.back().name, "next");
  for (const std::string_view name : {"m", "n", "m.copy1", "n.copy1"}) EXPECT_TRUE(in_registers(program, name));
  // Two are more than one: they stay steps by themselves.
  EXPECT_EQ(regions_of(step.program({1, 64, 64, 200, 1})), (ChainNames{{{"m", "n"}}, {{"newa"}, {"newb"}, {"next"}}}));
}

TEST(Elements, ANumberThatAnotherStepReadsIsStoredToo) {
  ElementStep step;
  const NodeId n = step.named("n", step.make.add("exp", {step.state("t", {})}));
  const NodeId w = step.state("w", {64});
  step.make.add("assign", {w, step.named("new", step.make.add("mul", {w, n}))});
  step.graph[step.make.add("transpose", {n}, {{"axes", List{}}})].keep = true;
  const Program program = step.program();
  EXPECT_FALSE(in_registers(program, "n"));
  EXPECT_EQ(regions_of(program), (ChainNames{{{"n"}, {"n.copy1", "new"}}}));
  EXPECT_TRUE(in_registers(program, "n.copy1"));
}

// The first region has a copy of the number, which comes before the number itself: others read what is stored.
TEST(Elements, WhatIsStoredStandsForItsCopies) {
  ElementStep step;
  const NodeId n = step.named("n", step.make.add("exp", {step.state("t", {})}));
  const NodeId a = step.named("a", step.make.add("mul", {step.state("x", {4}), n}));
  const NodeId y = step.state("y", {3, 4});
  step.make.add("assign", {y, step.named("new", step.make.add("add", {y, a}))});
  step.graph[step.make.add("transpose", {n}, {{"axes", List{}}})].keep = true;
  const Program program = step.program();
  EXPECT_EQ(regions_of(program), (ChainNames{{{"n.copy1", "a"}}, {{"n"}, {"new"}}}));
  EXPECT_FALSE(in_registers(program, "n"));
  EXPECT_TRUE(in_registers(program, "n.copy1"));
}

TEST(Elements, AViewOfANumberIsComputedAnewWithIt) {
  ElementStep step;
  const NodeId n = step.named("n", step.make.add("exp", {step.state("t", {})}));
  const NodeId shown = step.make.add("reshape", {n}, {{"shape", List{1}}});
  for (const std::string w : {"a", "b"}) {
    const NodeId state = step.state(w, {64});
    step.make.add("assign", {state, step.named("new" + w, step.make.add("mul", {state, shown}))});
  }
  const Program program = step.program();
  EXPECT_EQ(regions_of(program), (ChainNames{{{"n", "newa"}, {"n.copy1", "newb"}}}));
  EXPECT_TRUE(in_registers(program, "n") && in_registers(program, "n.copy1"));
}

// A batch of one row has one element, too, but is no number.
TEST(Elements, AChainOfOneRowReadsNumbers) {
  ElementStep step;
  const NodeId n = step.named("n", step.make.add("exp", {step.state("t", {})}));
  const NodeId x = step.make.add("input", {}, {{"shape", List{1, 1}}, {"rows", std::int64_t{1}}});
  const NodeId y = step.named("y", step.make.add("mul", {step.named("e", step.make.add("exp", {x})), n}));
  step.graph[y].keep = true;
  const Program program = step.program();
  EXPECT_EQ(regions_of(program), (ChainNames{{{"e", "n", "y"}}}));
  EXPECT_TRUE(in_registers(program, "n"));
  try {  // what follows from rows is no number
    Program broken = program;
    const auto e = find_buffer(program, "e"), shown = static_cast<BufferId>(broken.buffers.size());
    broken.buffers.push_back(broken.buffers[e]);
    broken.buffers[shown].name = "shown";
    broken.buffers[shown].storage = e;
    broken.buffers[shown].type = {DType::f32, {}, 0};
    broken.phases[0].steps[1].inputs[0] = shown;
    check(broken);
    ADD_FAILURE() << "not found: " << to_string(broken);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cannot read shown"), std::string::npos) << error.what();
  }
}

// The sum cuts, and what follows it in the order of nodes needs no more than what comes before it.
TEST(Elements, LaterReadersOfTheSameElementsComeAlong) {
  ElementStep step;
  const NodeId d = step.named("d", step.make.add("neg", {step.state("x", {64})}));
  const NodeId loss = step.sum(step.named("square", step.make.add("square", {d})));
  step.graph[loss].keep = true;
  const NodeId g = step.named("g", step.make.add("mul", {d, step.make.scalar(2, DType::f32)}));
  step.graph[step.make.add("transpose", {g}, {{"axes", List{0}}})].keep = true;
  EXPECT_EQ(regions_of(step.program()), (ChainNames{{{"d", "square", "g"}}}));
}

TEST(Elements, WhatIsReadInAnotherOrderComesBefore) {
  ElementStep step;
  const NodeId x = step.state("x", {4});
  const NodeId y = step.state("y", {3, 4});
  const NodeId row = step.named("row", step.make.add("exp", {x}));
  const NodeId all = step.named("all", step.make.add("add", {y, row}));
  step.make.add("assign", {y, step.named("twice", step.make.add("add", {all, all}))});
  const Program program = step.program();
  EXPECT_EQ(regions_of(program), (ChainNames{{{"all", "twice"}}}));
  EXPECT_FALSE(in_registers(program, "row"));
}

TEST(Elements, AStateIsReadBeforeItIsWritten) {
  ElementStep step;
  const NodeId s = step.state("s", {64}), r = step.state("r", {64}), wide = step.state("wide", {2, 64});
  step.make.add("assign", {wide, step.named("sum", step.make.add("add", {wide, s}))});  // broadcasts s
  step.make.add("assign", {r, step.named("copy", step.make.add("neg", {s}))});          // reads it alike
  step.make.add("assign", {s, step.named("new", step.make.add("exp", {step.state("z", {64})}))});
  const Program program = step.program();
  // What reads it alike may be in a chain with what writes it, what broadcasts it runs before.
  EXPECT_EQ(regions_of(program), (ChainNames{{{"copy", "new"}}}));
  EXPECT_EQ(program.phases[0].steps.front().name, "sum");
}

// A number that is stored waits with its first reader; one that comes later in the same region would compute it anew.
TEST(Elements, AStateIsReadByCopiesBeforeItIsWritten) {
  ElementStep step;
  const NodeId t = step.state("t", {}), a = step.state("a", {64}), b = step.state("b", {64});
  const NodeId n = step.named("n", step.make.add("exp", {t}));
  step.graph[n].keep = true;
  const NodeId total = step.sum(step.named("e", step.make.add("exp", {b})));
  step.graph[total].keep = true;
  step.make.add("assign", {a, step.named("newa", step.make.add("mul", {a, n}))});
  step.make.add("assign", {t, step.named("next", step.make.add("add", {t, step.make.scalar(1, DType::f32)}))});
  const Program program = step.program();
  std::vector<std::string> order;
  for (const Step& one : program.phases[0].steps) order.push_back(one.name);
  const auto at = [&](std::string_view name) { return std::find(order.begin(), order.end(), name) - order.begin(); };
  EXPECT_LT(at("newa"), at("next")) << to_string(program);
  EXPECT_LT(at("n.copy1"), at("next")) << to_string(program);
}

// A number that has run is read where it is stored, and not computed anew from a state that has its new value by then.
TEST(Elements, ANumberThatHasRunIsReadWhereItIsStored) {
  ElementStep step;
  const NodeId t = step.state("t", {}), a = step.state("a", {}), b = step.state("b", {64});
  const NodeId c = step.state("c", {64}), d = step.state("d", {64});
  const NodeId n = step.named("n", step.make.add("exp", {t}));
  step.graph[n].keep = true;
  const auto alone = [&](NodeId from) {  // no elementwise step, so what waits runs
    const NodeId made = step.make.add("softmax", {step.make.add("exp", {from})}, {{"axis", 0L}});
    step.graph[made].keep = true;
    return made;
  };
  alone(c);  // "n" and "newb", which comes along, run
  const NodeId sum = step.sum(alone(d));
  const NodeId part = step.make.add("mul", {step.make.add("add", {sum, a}), step.make.add("exp", {a})});
  step.make.add("assign", {a, step.named("newa", step.make.add("mul", {part, n}))});
  step.make.add("assign", {b, step.named("newb", step.make.add("mul", {b, n}))});
  step.make.add("assign", {t, step.named("next", step.make.add("add", {t, n}))});
  const Program program = step.program();
  bool written = false;
  for (const Step& one : program.phases[0].steps) {
    EXPECT_FALSE(written && one.name.starts_with("n.copy")) << to_string(program);
    written = written || one.name == "next";
  }
  EXPECT_TRUE(written) << to_string(program);
}

// What the order of states' new values goes by: nobody is left who reads the old one.
TEST(Elements, AStatesNewValueComesAlong) {
  ElementStep step;
  const NodeId a = step.state("a", {64}), b = step.state("b", {64}), c = step.state("c", {64});
  const NodeId one = step.named("one", step.make.add("exp", {a}));
  const NodeId total = step.named("total", step.sum(one));
  const NodeId late = step.named("late", step.make.add("softmax", {b}, {{"axis", 0L}}));
  step.graph[total].keep = step.graph[late].keep = true;
  step.make.add("assign",
                {a, step.named("newa", step.make.add("neg", {step.named("same", step.make.add("abs", {one}))}))});
  step.make.add("assign", {b, step.named("newb", step.make.add("add", {b, one}))});
  step.make.add("assign", {c, step.named("newc", step.make.add("mul", {c, late}))});
  // "newa" needs "same", which comes with it. The softmax that is not there yet reads "b", and "newc" its result.
  EXPECT_EQ(regions_of(step.program()), (ChainNames{{{"one", "same", "newb", "newa"}}, {{"assign_2"}, {"newc"}}}));
}

TEST(Elements, WhatTheHostReadsIsStored) {
  for (const bool keep : {false, true}) {
    ElementStep step;
    const NodeId s = step.state("s", {64});
    const NodeId seen = step.named("seen", step.make.add("exp", {s}));
    step.graph[seen].keep = keep;
    step.make.add("assign", {s, step.make.add("neg", {seen})});
    EXPECT_EQ(in_registers(step.program(), "seen"), !keep);
  }
}

TEST(Elements, AViewOfARegisterIsOne) {
  ElementStep step;
  const NodeId s = step.state("s", {64}), t = step.state("t", {8, 8});
  const NodeId e = step.named("e", step.make.add("exp", {s}));
  const NodeId view = step.named("view", step.make.add("reshape", {e}, {{"shape", List{8, 8}}}));
  step.make.add("assign", {t, step.make.add("neg", {view})});
  const Program program = step.program();
  EXPECT_TRUE(in_registers(program, "e"));
  EXPECT_TRUE(in_registers(program, "view"));
  EXPECT_EQ(buffer(program, "view").storage, find_buffer(program, "e"));
}

TEST(Elements, LongChainsAreCut) {
  ElementStep step;
  const NodeId s = step.state("s", {64});
  NodeId x = s;
  for (int i = 0; i < 10; ++i) x = step.named("x" + std::to_string(i), step.make.add("neg", {x}));
  step.make.add("assign", {s, x});
  const auto regions = regions_of(step.program({1, 64, 4, 200, 12}));
  ASSERT_EQ(regions.size(), 3u);
  for (const auto& region : regions) EXPECT_LE(region.at(0).size(), 4u);
  EXPECT_TRUE(in_registers(step.program({1, 64, 4, 200, 12}), "x2"));
  EXPECT_FALSE(in_registers(step.program({1, 64, 4, 200, 12}), "x3"));
}

// If launches run at once, the values that a gradient reads from the forward pass do not wait for the gradient.
TEST(Elements, ReductionsMoveUpToTheirOperands) {
  ElementStep step;
  const NodeId x = step.state("x", {8, 8});
  const NodeId y = step.make.add("matmul", {x, x});
  const NodeId most = step.make.add("max", {y}, {{"axes", List{0}}, {"keepdims", true}});
  const NodeId z = step.named("z", step.make.add("matmul", {y, x}));
  const NodeId mask = step.make.add("cast", {step.make.add("equal", {y, most})}, {{"dtype", std::string("f32")}});
  const NodeId count = step.named("count", step.sum(mask));
  const NodeId last = step.named("last", step.sum(step.make.add("div", {z, count})));
  step.graph[last].keep = true;
  const auto order = [&](const ElementLimits& limits) {
    const Program program = step.program(limits);
    check(program);
    std::string names;
    for (const Step& one : program.phases[0].steps)
      if (one.name == "z" || one.name == "count" || one.name == "last") names += one.name + " ";
    return names;
  };
  EXPECT_EQ(order(kGpu), "count z last ");
  ElementLimits host = kGpu;
  host.chains = 1;
  EXPECT_EQ(order(host), "z count last ");
}

// A model of many nodes is ordered in little more time than one of few, node for node.
TEST(Elements, OrderManyNodes) {
  ElementStep step;
  for (int i = 0; i < 20000; ++i) {
    const NodeId s = step.state("s" + std::to_string(i), {64});
    step.make.add("assign", {s, step.make.add("neg", {step.make.add("exp", {s})})});
  }
  EXPECT_GT(regions_of(step.program()).size(), 100u);
}

// ---- what a Program must keep

// A product begins a region of its own. The steps after it move up to it, past readers of their other operands, and
// nothing takes the memory that the product reads, whatever its type.
TEST(Products, RunTheStepsAfterThem) {
  ElementStep step;
  const NodeId data = step.state("data", {16, 16}), w = step.state("w", {16, 16}), b = step.state("b", {16});
  const NodeId x = step.named("x", step.make.add("exp", {data}));
  const auto product = [&](const std::string& name, NodeId left) {
    return step.named(name, step.make.add("matmul", {left, w}));
  };
  const NodeId z = product("z", x);
  const NodeId h = step.named("h", step.make.add("relu", {step.named("a", step.make.add("add", {z, b}))}));
  const NodeId d = product("d", h);
  const NodeId total = step.named("total", step.sum(h));
  const NodeId r = step.named("r", step.make.add("relu_gradient", {h, d}));
  const NodeId last = step.named("last", step.sum(r));
  step.graph[total].keep = step.graph[last].keep = true;
  const Program program = step.program();
  check(program);
  EXPECT_EQ(regions_of(program), (ChainNames{{{"z", "a", "h"}}, {{"d", "r"}}}));
  for (const char* inside : {"z", "a", "d"}) EXPECT_TRUE(in_registers(program, inside)) << inside;
  EXPECT_NE(buffer(program, "h").storage, buffer(program, "x").storage);
  EXPECT_NE(buffer(program, "r").storage, buffer(program, "h").storage);
}

// A product runs some of the steps after it only if that saves a launch, or the traffic of a large result.
TEST(Products, LeaveStepsToALaunchThatOthersNeed) {
  for (const std::int64_t rows : {8, 20000}) {
    ElementStep step;
    step.after_product = 2;
    const NodeId x = step.state("x", {rows, 4}), w = step.state("w", {4, 4}), b = step.state("b", {4});
    const NodeId z = step.named("z", step.make.add("matmul", {x, w}));
    const NodeId a = step.named("a", step.make.add("add", {z, b}));
    const NodeId e = step.named("e", step.make.add("exp", {step.make.add("reshape", {a}, {{"shape", List{4, rows}}})}));
    const NodeId total = step.sum(step.named("s", step.make.add("sqrt", {e})));
    step.graph[total].keep = true;
    EXPECT_EQ(regions_of(step.program()),
              rows == 8 ? (ChainNames{{{"a", "e", "s"}}}) : (ChainNames{{{"z", "a"}}, {{"e", "s"}}}));
  }
}

TEST(Products, KeepValuesThatOthersRead) {
  for (const bool keep : {false, true}) {
    ElementStep step;
    const NodeId x = step.state("x", {8, 8}), late = step.state("late", {8, 8});
    const NodeId z = step.named("z", step.make.add("matmul", {x, x}));
    const NodeId other = step.named("other", step.make.add("matmul", {late, late}));
    const NodeId y = step.named("y", step.make.add("mul", {z, other}));  // after `other`, which is not there before z
    const NodeId end = step.named("end", step.sum(y));
    step.graph[end].keep = true;
    step.graph[other].keep = keep;
    EXPECT_EQ(regions_of(step.program()), keep ? ChainNames{} : (ChainNames{{{"other", "y"}}}));
  }
}

TEST(ElementCheck, AProductIsTheFirstStepOfItsRegion) {
  ElementStep step;
  const NodeId x = step.state("x", {8, 8});
  const NodeId h = step.named("h", step.make.add("relu", {step.named("z", step.make.add("matmul", {x, x}))}));
  step.graph[h].keep = true;
  const Program good = step.program();
  check(good);
  const auto broken = [&](std::string_view rule, const std::function<void(Program&)>& change) {
    Program program = good;
    change(program);
    try {
      check(program);
      ADD_FAILURE() << "not found: " << rule;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(rule), std::string::npos) << error.what();
    }
  };
  const auto id = [&](std::string_view name) { return find_buffer(good, name); };
  broken("overlaps memory", [&](Program& p) { p.phases[0].steps[1].output = id("x"); });
  const auto with_scratch = [&](Program& p, std::uint64_t offset) {  // for parts of its sums
    Buffer scratch{"scratch", {DType::boolean, {256}, 0}, BufferKind::workspace, 0, offset, 256};
    scratch.storage = p.phases[0].steps[0].workspace = static_cast<BufferId>(p.buffers.size());
    p.arena_bytes += 256;
    p.buffers.push_back(scratch);
  };
  Program scratched = good;
  with_scratch(scratched, good.arena_bytes);
  check(scratched);
  broken("overlaps memory", [&](Program& p) { with_scratch(p, p.buffers[id("h")].offset); });
  broken("has not written", [&](Program& p) { std::swap(p.phases[0].steps[0], p.phases[0].steps[1]); });
  broken("does not go by elements", [&](Program& p) { p.phases[0].regions[0].chains = {{0, 1}, {1, 2}}; });
  broken("does not go by elements", [&](Program& p) { p.phases[0].steps[0].output = id("h"); });
}

TEST(ElementCheck, BrokenRegionsAreFound) {
  ElementStep step;
  const NodeId t = step.state("t", {});
  const NodeId n = step.named("n", step.make.add("neg", {t}));
  for (const std::string w : {"a", "b"}) {
    const NodeId state = step.state(w, {64});
    const NodeId e = step.named("e" + w, step.make.add("mul", {state, n}));
    step.make.add("assign", {state, step.named("new" + w, step.make.add("sub", {e, state}))});
  }
  const Program good = step.program();
  check(good);
  ASSERT_EQ(regions_of(good), (ChainNames{{{"n", "ea", "newa"}, {"n.copy1", "eb", "newb"}}}));
  const auto broken = [&](std::string_view rule, const std::function<void(Program&, Region&)>& change) {
    Program program = good;
    change(program, program.phases[0].regions[0]);
    try {
      check(program);
      ADD_FAILURE() << "not found: " << rule << "\n" << to_string(program);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(rule), std::string::npos) << error.what();
    }
  };
  const auto id = [&](std::string_view name) { return find_buffer(good, name); };
  broken("region.order", [](Program& p, Region& r) { p.phases[0].regions.emplace_back(r); });
  broken("region.elements", [](Program&, Region& r) { r.last = 99; });
  broken("region.elements", [](Program&, Region& r) { r.chains[1].last = 99; });
  broken("follows step", [](Program&, Region& r) { r.chains[1].first = 0; });
  broken("follows step", [](Program&, Region& r) { r.chains[0].last = 0; });
  broken("stages too", [](Program&, Region& r) { r.stages.emplace_back(); });
  broken("not written", [](Program&, Region& r) { r.chains = {{0, 2}, {2, 3}, {3, 6}}; });  // a chain is cut
  broken("region.tile", [](Program& p, Region&) { p.phases[0].regions.clear(); });
  broken("not written", [&](Program& p, Region&) { p.phases[0].steps[4].inputs[1] = id("n"); });  // of the other chain
  broken("written twice", [&](Program& p, Region&) { p.phases[0].steps[2].output = id("ea"); });
  broken("rule 'tile'", [&](Program& p, Region&) { p.buffers[id("ea")].bytes = 256; });
  broken("rule 'tile'", [&](Program& p, Region&) { p.buffers[id("ea")].offset = 256; });
  broken("rule 'tile'", [&](Program& p, Region&) { p.buffers[id("ea")].poll = true; });
  broken("other elements", [&](Program& p, Region&) { p.buffers[id("ea")].storage = id("n"); });
  broken("overlaps memory", [&](Program& p, Region&) {  // writes what the other reads
    p.phases[0].steps[2].output = id("b");
  });
  broken("overlaps memory", [&](Program& p, Region&) {  // whose bytes are another's, too
    for (Buffer& other : p.buffers)
      if (other.storage == id("a")) other.offset = p.buffers[id("b")].offset;
  });
  broken("a number that is not in registers", [&](Program& p, Region&) { p.phases[0].steps[0].output = id("t"); });
  broken("does not go by elements", [&](Program& p, Region&) {
    p.phases[0].steps[1] = {*find_op("softmax"), "s", {id("a")}, id("ea"), kNoBuffer, kNoBuffer, AxisParams{0}};
  });
  broken("does not go by elements", [&](Program& p, Region&) {
    Buffer scratch{"scratch", {DType::boolean, {256}, 0}, BufferKind::workspace, 0, p.arena_bytes, 256};
    scratch.storage = p.phases[0].steps[1].workspace = static_cast<BufferId>(p.buffers.size());
    p.arena_bytes += 256;
    p.buffers.push_back(scratch);
  });
}

}  // namespace
}  // namespace graphrun
