// The solvers' headers alone, without Python, under the sanitizers: small problems in buffers of
// exactly their sizes, solved until they certify themselves.  A test compiles and runs it.
//
//     core_sanitized
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "additive/any_rows.hpp"
#include "additive/certificate.hpp"
#include "additive/code_passes.hpp"
#include "additive/crammer_singer.hpp"
#include "additive/descent.hpp"
#include "additive/encode.hpp"
#include "kernel/compressed.hpp"
#include "kernel/dense.hpp"
#include "kernel/finish.hpp"
#include "kernel/kept_rows.hpp"
#include "kernel/pair_steps.hpp"
#include "kernel/panels.hpp"
#include "kernel/row_buffer.hpp"
#include "kernel/row_sums.hpp"
#include "kernel/working_set.hpp"
#include "team.cpp"

using namespace widemargin;
using namespace widemargin::WIDEMARGIN_ISA;

namespace {

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::abort();
}

std::mt19937 random_bits(0);
std::size_t below(std::size_t n) { return random_bits() % n; }
double uniform() { return std::uniform_real_distribution<double>()(random_bits); }

// ------------------------------------------------------------------ additive

constexpr std::int64_t kRows = 150, kFeatures = 5, kCodes = 9;
constexpr int kRank = 4;

// Rows whose codes depend on their label, dense and without the zeros.
struct Data {
  std::vector<std::uint8_t> dense, sparse;
  std::vector<std::uint16_t> index;
  std::vector<std::int64_t> start;
  std::vector<std::int32_t> label;

  explicit Data(int n_classes) {
    for (std::int64_t i = 0; i < kRows; ++i) {
      label.push_back(std::int32_t(below(std::size_t(n_classes))));
      for (std::int64_t j = 0; j < kFeatures; ++j) {
        const auto centre = std::size_t(label.back() * (j + 1)) % kCodes;
        dense.push_back(below(3) ? std::uint8_t((centre + below(3)) % kCodes) : std::uint8_t(0));
      }
    }
    const std::int64_t most = kRows * kFeatures - std::count(dense.begin(), dense.end(), 0);
    const auto packed =
        compress_codes<std::uint16_t, std::uint8_t>(kRows, most, [&](std::int64_t i, auto&& emit) {
          for (std::int64_t j = 0; j < kFeatures; ++j) emit(j, dense[i * kFeatures + j]);
        });
    const auto copy = [](const auto& from, auto& to) {
      to.assign(from.data.get(), from.data.get() + from.size);
    };
    copy(packed.start, start), copy(packed.index, index), copy(packed.codes, sparse);
  }

  RowsArg rows(bool is_dense) const {
    if (is_dense)
      return {IndexType::dense, CodeType::u8, dense.data(), nullptr, nullptr, kRows, kFeatures};
    return {IndexType::u16, CodeType::u8, sparse.data(), index.data(),
            start.data(),   kRows,        kFeatures};
  }
};

// A random table whose row 0 is zero, and what a problem has of its own.
template <class T, int lanes>
struct Problem {
  std::vector<T> table, c, diagonal, weights, coef, bias;
  SharedArg shared{};

  Problem(const Data& data, bool is_dense, LossKind loss, std::int64_t n_blocks)
      : table(kCodes * kRank),
        c(kRows),
        weights(std::size_t(n_blocks * kFeatures * kRank * lanes)),
        coef(std::size_t(kRows * n_blocks * lanes)),
        bias(std::size_t(n_blocks * lanes)) {
    for (auto k = std::size_t(kRank); k < table.size(); ++k) table[k] = T(uniform() - 0.3);
    for (auto& ci : c) ci = T(0.2 + uniform());
    shared.rows = data.rows(is_dense);
    check_rows(shared.rows, is_dense ? kRows * kFeatures : data.start.back(), kCodes);
    shared.tables = {sizeof(T) == 8, kRank, lanes, kCodes, table.data(), table.data(), nullptr};
    std::vector<double> squares(kCodes);
    for (std::int64_t k = 0; k < kCodes; ++k)
      for (int m = 0; m < kRank; ++m)
        squares[k] += double(table[k * kRank + m]) * table[k * kRank + m];
    for (const double sum : row_sums(shared.rows, squares.data())) diagonal.push_back(T(sum + 1));
    shared.loss = loss;
    shared.label = data.label.data();
    shared.c = c.data();
    shared.diagonal = diagonal.data();
    shared.bias_value = 1;
  }
};

double relative_gap(const Account& a, int lane) {
  return a.gap[lane] / (0.5 * a.quadratic[lane] + a.loss[lane]);
}

// Sweeps in random order until a pass at fixed weights certifies every problem.
template <class Descend, class Certify>
void solve(Descend&& descend_once, Certify&& certify_all, int n_problems) {
  std::vector<std::int32_t> order(kRows);
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::uint8_t> status(kRows);
  std::vector<double> never(2 * kLanes, HUGE_VAL);
  std::fill(never.begin() + kLanes, never.end(), -HUGE_VAL);
  Offset offset;
  double gap = HUGE_VAL;
  for (int sweep = 0; sweep < 2000 && gap > 1e-3; ++sweep) {
    shuffle(order, std::uint64_t(sweep));
    Account account{};
    Sweep s{order.data(),  0,       kRows, 1.0, never.data(), never.data() + kLanes,
            status.data(), &account};
    check(descend_once(s) == kRows, "a sweep over all rows");
    Account certificate{};
    s.order = nullptr;
    s.account = &certificate;
    check(certify_all(s) == kRows, "a pass over all rows");
    gap = 0;
    for (int l = 0; l < n_problems; ++l) {
      check(certificate.gap[l] >= 0, "a gap that is not negative");
      gap = std::max(gap, relative_gap(certificate, l));
    }
  }
  check(gap <= 1e-3, "a certified optimum");
}

// Rows behind calls, as loops.cpp has them in 16 lanes.
template <class Rows, class Cells>
struct Called : AnyRows<Rows::dense && Cells::kFused> {
  explicit Called(const RowsArg& a)
      : AnyRows < Rows::dense
      && Cells::kFused > (a, kCallsOf<Rows, Cells>) {}
};

template <class Layout, class Shape, int lanes, bool kCalled = false>
void solve_box(const Data& data, LossKind loss) {
  using T = typename Shape::Number;
  using Rows = std::conditional_t<kCalled, Called<Layout, Shape>, Layout>;
  using Cells = std::conditional_t<kCalled, AnyCells<T, lanes>, Shape>;
  Problem<T, lanes> p(data, Layout::dense, loss, 1);
  constexpr int n_problems = lanes == 1 ? 1 : 3;
  std::vector<T> targets(3 * lanes);  // lanes without a problem stay 0
  for (int c = 0; c < 3; ++c)
    for (int l = 0; l < n_problems; ++l) targets[std::size_t(c * lanes + l)] = T(c == l ? 1 : -1);
  const BoxArg box{targets.data(), p.weights.data(), p.coef.data(), p.bias.data()};
  const Rows rows(p.shared.rows);
  const Cells cells(p.shared.tables, box.weights, kFeatures);
  using Any = AnyCells<T, lanes>;
  const Any any_cells(p.shared.tables, box.weights, kFeatures);
  const Called<Layout, Shape> any_rows(p.shared.rows);
  solve(
      [&](const Sweep& s) {
        Alone<typename Cells::Lanes> alone;
        return descend(rows, cells, box, BoxDual<Cells, Margin>(p.shared, box), s, alone);
      },
      [&](const Sweep& s) {
        return certify(any_rows, any_cells, BoxDual<Any, Margin>(p.shared, box), s, 3);
      },
      n_problems);
  for (std::int64_t i = 0; i < kRows; ++i)
    for (int l = 0; l < lanes; ++l) {
      const double t = targets[std::size_t(data.label[i] * lanes + l)], b = p.coef[i * lanes + l];
      check(t * b >= 0 && (t != 0 || b == 0), "a coefficient of its target's sign");
      check(loss != LossKind::hinge || std::abs(b) <= p.c[i], "a coefficient within C");
    }
}

template <class Layout, class T>
void solve_simplex(const Data& data, std::int32_t n_classes, LossKind loss) {
  using Cells = AnyCells<T, kLanes>;
  using Rows = Called<Layout, FactorLanes<T, 0>>;
  const std::int32_t n_blocks = (n_classes + kLanes - 1) / kLanes;
  Problem<T, kLanes> p(data, Layout::dense, loss, n_blocks);
  std::vector<void*> blocks;
  for (std::int32_t b = 0; b < n_blocks; ++b)
    blocks.push_back(p.weights.data() + b * kFeatures * kRank * kLanes);
  const SimplexArg simplex{n_classes, n_blocks, blocks.data(), p.coef.data(), p.bias.data()};
  const Rows rows(p.shared.rows);
  solve(
      [&](const Sweep& s) {
        return pass_crammer_singer<Rows, Cells, true>(rows, p.shared, simplex, s);
      },
      [&](const Sweep& s) {
        return pass_crammer_singer<Rows, Cells, false>(rows, p.shared, simplex, s);
      },
      1);
}

void additive() {
  using Dense = DenseRows<std::uint8_t>;
  using Sparse = SparseRows<std::uint16_t, std::uint8_t>;
  const Data three(3), twenty(20);
  check(count_codes(three.rows(true), kCodes, std::vector<double>(kRows, 1.0).data())[0] > 0,
        "codes that are counted");
  check(largest_codes(three.rows(false)).size() == kFeatures, "a largest code per feature");
  for (const LossKind loss : {LossKind::hinge, LossKind::squared_hinge}) {
    solve_box<Dense, FactorLanes<float, 4>, kLanes>(three, loss);
    solve_box<Sparse, FactorLanes<double, 0>, kLanes>(three, loss);
    solve_box<Dense, FactorLanes<float, 4>, kLanes, true>(three, loss);
    solve_box<Sparse, FactorLanes<float, 4>, kLanes, true>(three, loss);
    solve_box<Dense, FactorSingle<float, 4>, 1>(three, loss);
    solve_box<Sparse, FactorSingle<float, 4>, 1>(three, loss);
    solve_simplex<Dense, float>(three, 3, loss);
    solve_simplex<Sparse, double>(twenty, 20, loss);
  }
}

// ------------------------------------------------------------------ kernel

template <class T>
KernelLoopsOf<T> loops() {
  return {finish_block<T>,
          fill<T>,
          add<T>,
          kStrip<T>,
          fill_dense<T>,
          dense_norms<T>,
          gather_row<T>,
          [](const WorkingSetArg<T>& w) { return PairSteps<T>(w).solve(); },
          WIDEMARGIN_ISA::add_rows<T>};
}

// The exact dual of random compressed rows with the rbf kernel, by working sets of 16.
template <class T>
void kernel(std::int64_t n, std::int64_t n_features) {
  PackedRows<T> all;
  std::vector<T> norms;
  for (std::int64_t i = 0; i < n; ++i) {
    norms.push_back(0);
    for (std::int64_t j = 0; j < n_features; ++j)
      if (below(3) == 0) {
        all.index.push_back(std::int32_t(j));
        all.value.push_back(T(uniform()));
        norms.back() += all.value.back() * all.value.back();
      }
    all.start.push_back(std::int64_t(all.index.size()));
  }
  const CompressedArg<T> rows{all.start.data(), all.index.data(), all.value.data(), norms.data(), n,
                              n_features};
  check_compressed(rows, all.start.back());
  const std::vector<T> values = make_panels(rows, nullptr, n_features);
  const std::int64_t n_panels = (n + kPanel - 1) / kPanel;
  std::vector<T> padded(norms);
  padded.resize(std::size_t(n_panels * kPanel));
  std::vector<T> K(std::size_t(n * n));
  fill<T>({values.data(), padded.data(), nullptr, n_panels, n_features}, rows,
          {FinishKind::rbf, T(0.5), 0, 0}, {K.data(), n, n, n});

  std::vector<double> alpha(n, 0.0), gradient(n, -1.0), sign, upper(n, 3.0), diagonal(n, 1.0);
  for (std::int64_t i = 0; i < n; ++i) sign.push_back(below(2) ? 1.0 : -1.0);
  const VariablesArg v{n,           alpha.data(), gradient.data(),
                       sign.data(), upper.data(), diagonal.data()};
  std::vector<std::int64_t> last;
  Offset offset;
  double gap = HUGE_VAL;
  for (int step = 0; step < 5000 && gap > 1e-6 * double(n); ++step) {
    const Selection chosen =
        select_working_sets(v, {}, offset, last.data(), std::int64_t(last.size()), 16);
    gap = chosen.gap;
    last = chosen.block;
    const std::int64_t size = padded_size(std::int64_t(last.size()));
    std::vector<T> q(std::size_t(size * size));
    std::vector<const T*> kernel_rows;
    std::vector<double> coef(last.size());
    for (const auto i : last) kernel_rows.push_back(K.data() + i * n);
    check(minimise_working_set(v, loops<T>(), kernel_rows.data(), last.data(),
                               std::int64_t(last.size()), 0.1 * chosen.violation, false, q.data(),
                               coef.data()) >= 0,
          "a step that gains");
    add_signed_rows(loops<T>(), kernel_rows, coef.data(), sign.data(), 0, n, gradient.data());
  }
  check(gap <= 1e-6 * double(n), "a dual within its gap");

  // Rows reduced and moved apart again are where they were.
  const std::vector<T> before(K);
  std::vector<std::int64_t> kept{0, n / 2, n - 1}, columns{1, n - 2};
  compact_rows(K.data(), kept.data(), 3, columns.data(), 2, n, 5);
  widen_rows(K.data(), 3, 5, n);
  for (int k = 0; k < 3; ++k)
    for (int j = 0; j < 2; ++j)
      check(K[k * n + j] == before[kept[k] * n + columns[j]], "a row that was moved");
  check(take_rows(rows, all.start.back(), kept.data(), 3).start.size() == 4,
        "rows that were taken");
}

// Dense rows of which the core computes kernel rows by itself, as they are asked for.
template <class T>
void few_rows(std::int64_t n, std::int64_t n_features) {
  const KernelLoopsOf<T> all = loops<T>();
  std::vector<T> data;
  for (std::int64_t k = 0; k < n * n_features; ++k) data.push_back(T(uniform()));
  for (const FinishKind kind : {FinishKind::rbf, FinishKind::polynomial, FinishKind::none}) {
    const auto kernel = std::make_shared<const DenseKernel<T>>(
        DenseKernel<T>{StripRows<T>(data.data(), n, n_features, all), {kind, T(0.5), T(0.1), 2}});
    std::vector<T> pool(std::size_t(n * n)), whole(std::size_t(n * n));
    KeptRows<T> kept(pool.data(), n, kernel), every(whole.data(), n, kernel);
    check(every.ask_all(all) && every.n_used() == n, "all rows");
    std::vector<double> alpha(n, 0.0), gradient(n), linear(n, -1.0), upper(n, 3.0), sign, diagonal;
    for (std::int64_t i = 0; i < n; ++i) {
      sign.push_back(below(2) ? 1.0 : -1.0);
      diagonal.push_back(every.row(i)[i]);
    }
    const VariablesArg v{n,           alpha.data(), gradient.data(),
                         sign.data(), upper.data(), diagonal.data()};
    Offset offset = kind == FinishKind::none ? Offset() : Offset(0.0);
    std::vector<std::int64_t> last;
    Descent<T> descent(v, all, kept, offset, last);
    const Measured begun = descent.refresh(linear.data());
    check(begun.dual == 0 && kept.n_used() == 0, "nothing at the beginning");
    const Descended found = descent.run(0.0, {1e-3, 0.1, 200, 16});
    check(found.missing.empty() && found.steps > 0, "steps for which rows were computed");
    check(descent.refresh(linear.data()).dual > 0, "a dual that was gained");
    for (const auto i : last)
      for (std::int64_t j = 0; j < n; ++j)
        check(kept.row(i)[j] == every.row(i)[j], "the same row, whenever it is asked for");
  }
}

}  // namespace

int main() {
  additive();
  for (const std::int64_t n : {5, 64, 70, 130}) {
    kernel<float>(n, 7);
    kernel<double>(n, 7);
    few_rows<float>(n, 7);
    few_rows<double>(n, 7);
  }
  std::puts("all problems certified, no finding");
}
