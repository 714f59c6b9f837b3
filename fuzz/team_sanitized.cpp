// Threads on one batch of classes, under the sanitizers: the loops of additive/loops.cpp with
// several threads must leave the bits that one thread leaves, in buffers of exactly their sizes.  A
// test compiles and runs it.
//
//     team_sanitized
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "additive/code_passes.hpp"
#include "additive/loops.cpp"
#include "team.cpp"

using namespace widemargin;

namespace {

constexpr std::int64_t kCodes = 9;
constexpr int kClasses = 3;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::abort();
}

std::mt19937 random_bits(0);
double uniform() { return std::uniform_real_distribution<double>()(random_bits); }

struct Data {
  std::int64_t n_rows, n_features;
  std::vector<std::uint8_t> codes;
  std::vector<std::int32_t> label;
  std::vector<std::int64_t> offset;
  std::vector<float> c, diagonal, targets;

  Data(std::int64_t rows, std::int64_t features)
      : n_rows(rows),
        n_features(features),
        c(std::size_t(rows), 0.05F),
        diagonal(std::size_t(rows), float(features) * 2 / 3),
        targets(kClasses * kLanes) {
    for (std::int64_t i = 0; i < n_rows; ++i) {
      label.push_back(std::int32_t(i % kClasses));
      for (std::int64_t j = 0; j < n_features; ++j)
        codes.push_back(std::uint8_t((random_bits() % 7 + std::size_t(label.back() * j)) % kCodes));
    }
    for (std::int64_t j = 0; j <= n_features; ++j) offset.push_back(j * kCodes);
    for (int k = 0; k < kClasses; ++k)
      for (int l = 0; l < kClasses; ++l) targets[std::size_t(k * kLanes + l)] = k == l ? 1 : -1;
  }
};

// Rank 0 is ICD's table.
std::vector<float> make_table(int rank) {
  std::vector<float> table;
  for (int k = 0; k < kCodes; ++k)
    for (int m = 0; m < (rank > 0 ? rank : kCodes); ++m)
      table.push_back(rank > 0 ? float(k > 0 ? uniform() - 0.3 : 0)
                               : float(std::min(k, m)) / kCodes);
  return table;
}

// All that a fit writes.
struct State {
  std::vector<float> weights, coef, bias;
  std::vector<std::uint8_t> status;
  std::vector<Account> accounts;

  bool operator==(const State& other) const {
    return weights == other.weights && coef == other.coef && bias == other.bias &&
           status == other.status && accounts.size() == other.accounts.size() &&
           std::memcmp(accounts.data(), other.accounts.data(), accounts.size() * sizeof(Account)) ==
               0;
  }
};

// Sweeps in slices of no time at all or of any length, a certificate, and a start from the result.
State fit(const Data& data, const std::vector<float>& table, int rank, LossKind loss, int n_threads,
          double seconds) {
  const std::int64_t n_rows = data.n_rows;
  const std::int64_t n_weights = data.n_features * (rank > 0 ? rank : kCodes) * kLanes;
  State state{std::vector<float>(std::size_t(n_weights)),
              std::vector<float>(std::size_t(n_rows * kLanes)),
              std::vector<float>(kLanes),
              std::vector<std::uint8_t>(std::size_t(n_rows)),
              {}};
  const SharedArg shared{
      {IndexType::dense, CodeType::u8, data.codes.data(), nullptr, nullptr, n_rows,
       data.n_features},
      {false, rank, kLanes, kCodes, table.data(), table.data(), data.offset.data()},
      loss,
      {},
      data.label.data(),
      data.c.data(),
      data.diagonal.data(),
      0.5};
  const BoxArg box{data.targets.data(), state.weights.data(), state.coef.data(), state.bias.data()};
  const AdditiveLoops& loops = WIDEMARGIN_ISA::additive_float;
  std::vector<std::int32_t> order(state.status.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> bounds(2 * kLanes, 0.01);
  std::fill(bounds.begin() + kLanes, bounds.end(), -0.01);
  for (int pass = 0; pass < 3; ++pass) {
    const bool sweeps = pass < 2;
    state.accounts.push_back({});
    if (sweeps) shuffle(order, std::uint64_t(pass));
    bool crowded = false;
    Sweep sweep{order.data(),
                0,
                n_rows,
                seconds,
                bounds.data(),
                bounds.data() + kLanes,
                state.status.data(),
                &state.accounts.back(),
                n_threads,
                &crowded};
    while (sweep.begin < n_rows)
      sweep.begin = (sweeps ? loops.box.descend : loops.box.certify)(shared, box, sweep);
  }
  loops.box.accumulate(shared, box, 0, n_rows, n_threads);
  return state;
}

void check_threads(const Data& data, int rank) {
  const LossKind loss = rank > 0 ? LossKind::squared_hinge : LossKind::hinge;
  const std::vector<float> table = make_table(rank);
  const State alone = fit(data, table, rank, loss, 1, 1e9);
  check(alone.accounts.back().gap[0] > 0, "a gap");
  check(alone == fit(data, table, rank, loss, 2, 1e9), "the same bits");
  check(alone == fit(data, table, rank, loss, 5, 0.0), "the same bits in slices");
}

// Threads that wait: call after call, from two callers at once, and an error that comes through.
void check_waiting_threads() {
  Team team(4);
  const auto call = [&] {
    for (std::int64_t n = 1; n < 400; ++n) {
      std::vector<int> taken(std::size_t(n), 0);
      run_parts(&team, n, 3, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = begin; k < end; ++k) ++taken[std::size_t(k)];
      });
      check(taken == std::vector<int>(std::size_t(n), 1), "every number once");
    }
  };
  std::thread other(call);
  call();
  other.join();
  bool caught = false;
  try {
    run(&team, 100, [](std::int64_t k) {
      if (k == 50) throw std::bad_alloc();
    });
  } catch (const std::bad_alloc&) {
    caught = true;
  }
  check(caught, "an error of a task");
  call();
}

}  // namespace

int main() {
  const Data wide(450, 301), narrow(2400, 9);
  check_threads(wide, 0);
  check_threads(wide, 16);
  check_threads(narrow, 16);  // swept by one thread, certified by all
  check_waiting_threads();
  std::puts("the same bits with any number of threads, no finding");
}
