// Bindings of the additive solver: tables, losses, and the two duals with their sweeps.
#include <algorithm>
#include <cmath>
#include <new>

#include "checked_rows.hpp"
#include "team.hpp"

namespace widemargin {
namespace {

// The two look-up tables.
class Tables {
 public:
  Tables(std::optional<Array> left, Array right, std::optional<Array> offset, int lanes)
      : left_(left), right_(right), offset_(offset) {
    require(lanes == 1 || lanes == kLanes, "lanes must be 1 or 16");
    require(left.has_value() != offset.has_value(), "give left (factors) or offset (unary)");
    require(right.ndim() == 2, "right must be a matrix");
    arg_.is_double = right.dtype() == nb::dtype<double>();
    arg_.lanes = lanes;
    arg_.n_codes = std::int64_t(right.shape(0));
    arg_.right = number_pointer(right, arg_.is_double, std::int64_t(right.size()),
                                "tables must be float32 or float64");
    if (left)
      take_factors();
    else
      take_unary();
  }

  const TablesArg& arg() const { return arg_; }

  // Of one block of lanes.
  std::int64_t n_weights(const Rows& rows) const {
    require(rows.n_codes() <= arg_.n_codes, "the codes exceed the table");
    require(arg_.rank > 0 || std::int64_t(offset_->size()) == rows.n_features() + 1,
            "offset must have n_features + 1 entries");
    const std::int64_t cells =
        arg_.rank > 0 ? rows.n_features() * arg_.rank : arg_.offset[rows.n_features()];
    return cells * arg_.lanes;
  }

 private:
  void take_factors() {
    arg_.rank = int(right_.shape(1));
    require(arg_.rank > 0, "the rank must be positive");
    const bool own = arg_.rank <= 4;  // with a loop of its own
    require(arg_.lanes == 1 ? arg_.rank == 1 || arg_.rank == 4 || arg_.rank % 8 == 0
                            : arg_.rank % 4 == 0 || own,
            "pad the rank: see padded_rank");
    arg_.left = number_pointer(*left_, arg_.is_double, std::int64_t(right_.size()),
                               "left and right must agree");
    require(begins_with_zeros(arg_.left) && begins_with_zeros(arg_.right),
            "code 0 is absent: its numbers must be zero");
  }

  bool begins_with_zeros(const void* table) const {
    for (int m = 0; m < arg_.rank; ++m)
      if (arg_.is_double ? static_cast<const double*>(table)[m] != 0
                         : static_cast<const float*>(table)[m] != 0)
        return false;
    return true;
  }

  void take_unary() {
    require(right_.shape(0) == right_.shape(1), "the kernel matrix must be square");
    const auto n = std::int64_t(offset_->size());
    require(n > 1, "offset is empty");
    arg_.offset = pointer<std::int64_t>(*offset_, n, "offset must be int64");
    require(arg_.offset[0] == 0, "offset must start at 0");
    for (std::int64_t j = 1; j < n; ++j)
      require(arg_.offset[j - 1] <= arg_.offset[j] &&
                  arg_.offset[j] - arg_.offset[j - 1] <= arg_.n_codes,
              "offset must ascend by at most n_codes");
  }

  std::optional<Array> left_;  // what arg_ points into
  Array right_;
  std::optional<Array> offset_;
  TablesArg arg_{};
};

struct LossName {
  const char* name;
  LossKind kind;
};
constexpr LossName kLosses[] = {
    {"hinge", LossKind::hinge},
    {"squared_hinge", LossKind::squared_hinge},
    {"epsilon_insensitive", LossKind::epsilon_insensitive},
    {"squared_epsilon_insensitive", LossKind::squared_epsilon_insensitive}};

class NamedLoss {
 public:
  NamedLoss(const std::string& name, std::optional<Array> epsilon) : name_(name) {
    const LossName* found = nullptr;
    for (const LossName& known : kLosses)
      if (name == known.name) found = &known;
    require(found,
            "the loss must be 'hinge' or 'squared_hinge', or either epsilon_insensitive one");
    kind_ = found->kind;
    require(has_tube() == epsilon.has_value(), "a tube has an epsilon, a margin has none");
    if (epsilon) take(*epsilon);
  }
  LossKind kind() const { return kind_; }
  bool has_tube() const { return kind_ != LossKind::hinge && kind_ != LossKind::squared_hinge; }
  const double* epsilon() const { return epsilon_; }
  const std::string& name() const { return name_; }

 private:
  void take(const Array& epsilon) {
    const auto n = std::int64_t(epsilon.size());
    require(n <= kLanes, "epsilon has an entry per lane");
    const double* from = pointer<double>(epsilon, n, "epsilon must be float64");
    for (std::int64_t l = 0; l < n; ++l) {
      require(from[l] >= 0 && std::isfinite(from[l]), "epsilon must be finite and not negative");
      epsilon_[l] = from[l];
    }
  }

  std::string name_;
  LossKind kind_;
  double epsilon_[kLanes] = {};
};

// What the duals of a fit share; copies keep the arrays alive.
class SharedProblem {
 public:
  SharedProblem(const Rows& rows, const Tables& tables, Array label, Array c, Array diagonal,
                double bias_value, const NamedLoss& loss)
      : rows_(rows), tables_(tables), label_(label), c_(c), diagonal_(diagonal), loss_(loss) {
    const std::int64_t n = rows.n_rows();
    const bool d = tables.arg().is_double;
    n_weights_ = tables.n_weights(rows);
    arg_.rows = rows.arg();
    arg_.tables = tables.arg();
    arg_.loss = loss.kind();
    std::copy_n(loss.epsilon(), kLanes, arg_.epsilon);
    arg_.label = pointer<std::int32_t>(label, n, "label must be int32 (n_rows)");
    arg_.c = number_pointer(c, d, n, "c must have n_rows entries");
    arg_.diagonal = number_pointer(diagonal, d, n, "diagonal must have n_rows entries");
    arg_.bias_value = bias_value;
  }

  const SharedArg& arg() const { return arg_; }
  std::int64_t n_rows() const { return arg_.rows.n_rows; }
  int lanes() const { return arg_.tables.lanes; }
  bool is_double() const { return arg_.tables.is_double; }
  bool has_tube() const { return loss_.has_tube(); }
  std::int64_t n_weights() const { return n_weights_; }
  void check_labels(std::int64_t n) const {
    require(all_within(arg_.label, n_rows(), n), "a label is out of range");
  }

 private:
  Rows rows_;
  Tables tables_;
  Array label_, c_, diagonal_;
  NamedLoss loss_;
  std::int64_t n_weights_;
  SharedArg arg_{};
};

static_assert(sizeof(Account) == 5 * kLanes * sizeof(double));

// What both duals offer; each checks its own arrays when it is made.
template <class Arg>
class Dual {
 public:
  Dual(const SharedProblem& shared, Output weights, Output coef, Output bias, int n_threads)
      : shared_(shared), weights_(weights), coef_(coef), bias_(bias), n_threads_(n_threads) {
    require(n_threads > 0, "n_threads must be positive");
  }
  Dual(const Dual&) = delete;
  Dual& operator=(const Dual&) = delete;

  std::int64_t sweep(const Array& order, std::int64_t begin, double seconds, const Array& shrink,
                     const Output& status, const Output& account) {
    const auto end = std::int64_t(order.size());
    Sweep s = part(begin, end, seconds, account);
    s.order = pointer<std::int32_t>(order, end, "order must be int32");
    s.status = pointer<std::uint8_t>(status, shared_.n_rows(), "status must be uint8, one per row");
    s.shrink_max = pointer<double>(shrink, 2 * kLanes, "shrink must be float64 (2, 16)");
    s.shrink_min = s.shrink_max + kLanes;
    nb::gil_scoped_release release;
    require(all_within(s.order + begin, end - begin, shared_.n_rows()),
            "order names a row out of range");
    const bool may_share =
        n_threads_ > 1 && all_distinct(s.order + begin, end - begin, shared_.n_rows());
    s.n_threads = may_share ? crowding_.threads(n_threads_) : 1;
    bool crowded = false;
    s.crowded = &crowded;
    const std::int64_t at = loops().descend(shared_.arg(), arg_, s);
    if (s.n_threads > 1) crowding_.tell(crowded);
    return reached(at);
  }

  std::int64_t certify(std::int64_t begin, double seconds, const Output& account) const {
    const Sweep s = part(begin, shared_.n_rows(), seconds, account);
    nb::gil_scoped_release release;
    return reached(loops().certify(shared_.arg(), arg_, s));
  }

  void accumulate(std::int64_t begin, std::int64_t end) const {
    require(0 <= begin && begin <= end && end <= shared_.n_rows(), "rows out of range");
    nb::gil_scoped_release release;
    loops().accumulate(shared_.arg(), arg_, begin, end, n_threads_);
  }

 protected:
  SharedProblem shared_;
  Output weights_, coef_, bias_;
  int n_threads_;
  Crowding crowding_;
  Arg arg_{};

 private:
  Sweep part(std::int64_t begin, std::int64_t end, double seconds, const Output& account) const {
    require(begin >= 0 && begin <= end, "begin is out of range");
    Sweep s{};
    s.begin = begin;
    s.end = end;
    s.seconds = seconds;
    s.n_threads = n_threads_;
    s.account = reinterpret_cast<Account*>(
        pointer<double>(account, 5 * kLanes, "account must be float64 (5, 16)"));
    return s;
  }
  static std::int64_t reached(std::int64_t position) {
    if (position < 0) throw std::bad_alloc();
    return position;
  }
  const DualLoops<Arg>& loops() const {
    const AdditiveLoops& all = additive_loops(shared_.is_double());
    if constexpr (std::is_same_v<Arg, BoxArg>)
      return all.box;
    else
      return all.simplex;
  }
};

template <class F>
bool all_targets(const void* targets, bool is_double, std::int64_t n, F&& is_target) {
  for (std::int64_t k = 0; k < n; ++k) {
    const double t = is_double ? static_cast<const double*>(targets)[k]
                               : double(static_cast<const float*>(targets)[k]);
    if (!is_target(t)) return false;
  }
  return true;
}
bool is_sign(double t) { return t == 1 || t == -1 || t == 0; }
bool is_finite(double t) { return std::isfinite(t); }

class BoxDual : public Dual<BoxArg> {
 public:
  BoxDual(const SharedProblem& shared, Array targets, Output weights, Output coef, Output bias,
          int n_threads)
      : Dual(shared, weights, coef, bias, n_threads), targets_(targets) {
    const bool d = shared.is_double();
    const std::int64_t lanes = shared.lanes(), n_labels = std::int64_t(targets.size()) / lanes;
    arg_.targets =
        number_pointer(targets, d, n_labels * lanes, "targets must be (n_labels, lanes)");
    const bool tube = shared.has_tube();
    require(all_targets(arg_.targets, d, n_labels * lanes, tube ? is_finite : is_sign),
            tube ? "targets must be finite" : "targets must be +1, -1 or 0");
    shared.check_labels(n_labels);
    arg_.weights =
        number_pointer(weights, d, shared.n_weights(), "weights have the wrong size or dtype");
    arg_.coef = number_pointer(coef, d, shared.n_rows() * lanes, "coef must be (n_rows, lanes)");
    arg_.bias = number_pointer(bias, d, lanes, "bias must have one entry per lane");
  }

  double damping() const { return arg_.damping; }
  void set_damping(double damping) {
    require(damping >= 1 && damping <= 1e6, "damping must be between 1 and 1e6");
    arg_.damping = damping;
  }

 private:
  Array targets_;
};

class SimplexDual : public Dual<SimplexArg> {
 public:
  SimplexDual(const SharedProblem& shared, std::int32_t n_classes, Output weights, Output coef,
              Output bias, int n_threads)
      : Dual(shared, weights, coef, bias, n_threads) {
    const bool d = shared.is_double();
    require(shared.lanes() == kLanes && n_classes > 1, "Crammer-Singer needs 16 lanes");
    require(!shared.has_tube(), "Crammer-Singer needs the loss of a margin");
    require(shared.arg().tables.rank % 4 == 0, "pad the rank of Crammer-Singer to a multiple of 4");
    shared.check_labels(n_classes);
    arg_.n_classes = n_classes;
    arg_.n_blocks = (n_classes + kLanes - 1) / kLanes;
    const std::int64_t n = arg_.n_blocks * kLanes;
    require(weights.ndim() >= 2 && std::int64_t(weights.shape(0)) == arg_.n_blocks,
            "weights must have one block per 16 classes");
    void* first = number_pointer(weights, d, arg_.n_blocks * shared.n_weights(),
                                 "weights have the wrong size or dtype");
    const auto block_bytes = std::size_t(shared.n_weights()) * (d ? sizeof(double) : sizeof(float));
    for (std::int32_t b = 0; b < arg_.n_blocks; ++b)
      blocks_.push_back(static_cast<char*>(first) + std::size_t(b) * block_bytes);
    arg_.weights = blocks_.data();
    arg_.coef = number_pointer(coef, d, shared.n_rows() * n, "coef has the wrong size");
    arg_.bias = number_pointer(bias, d, n, "bias has the wrong size");
  }

 private:
  std::vector<void*> blocks_;
};

void decide(const Rows& rows, const Tables& tables, const Array& weights, std::int64_t begin,
            std::int64_t end, const Output& out) {
  require(0 <= begin && begin <= end && end <= rows.n_rows(), "rows out of range");
  const TablesArg& t = tables.arg();
  const void* from = number_pointer(weights, t.is_double, tables.n_weights(rows),
                                    "weights have the wrong size or dtype");
  void* to =
      number_pointer(out, t.is_double, rows.n_rows() * t.lanes, "out must be (n_rows, lanes)");
  nb::gil_scoped_release release;
  additive_loops(t.is_double).decide(rows.arg(), t, from, begin, end, to);
}

template <class D>
nb::class_<D> bind_dual(nb::module_& m, const char* name, const char* doc) {
  return nb::class_<D>(m, name, doc)
      .def("sweep", &D::sweep, "order"_a, "begin"_a, "seconds"_a, "shrink"_a,
           "status"_a.noconvert(), "account"_a.noconvert(),
           "Descend along order[begin:]; returns the position reached when the time is up.")
      .def("certify", &D::certify, "begin"_a, "seconds"_a, "account"_a.noconvert(),
           "The sums of a sweep at fixed weights, over rows from begin; returns the row reached.")
      .def("accumulate", &D::accumulate, "begin"_a, "end"_a,
           "Add sum_i coef_i phi(x_i) of some rows to weights and bias: how a start is taken.");
}

}  // namespace

void bind_additive(nb::module_& m) {
  m.attr("LANES") = kLanes;
  m.attr("RESTS") = kRests;
  m.attr("MOVED") = kMoved;
  nb::class_<Tables>(m, "Tables", "A pair of look-up tables, or ICD's kernel matrix with offsets.")
      .def(nb::init<std::optional<Array>, Array, std::optional<Array>, int>(), "left"_a.none(),
           "right"_a, "offset"_a.none(), "lanes"_a);
  nb::class_<NamedLoss>(m, "Loss", "A loss by its name, with an epsilon per lane where it has any.")
      .def(nb::init<const std::string&, std::optional<Array>>(), "name"_a, "epsilon"_a.none())
      .def_prop_ro("name", &NamedLoss::name);
  nb::class_<SharedProblem>(m, "SharedProblem", "What all duals of a fit have in common, checked.")
      .def(nb::init<const Rows&, const Tables&, Array, Array, Array, double, const NamedLoss&>(),
           "rows"_a, "tables"_a, "label"_a, "c"_a, "diagonal"_a, "bias_value"_a, "loss"_a);
  bind_dual<BoxDual>(m, "BoxDual",
                     "Box-constrained duals, one per lane, in signed coefficients; the arrays are "
                     "checked once and written in place.")
      .def(nb::init<const SharedProblem&, Array, Output, Output, Output, int>(), "shared"_a,
           "targets"_a, "weights"_a.noconvert(), "coef"_a.noconvert(), "bias"_a.noconvert(),
           "n_threads"_a)
      .def_prop_rw("damping", &BoxDual::damping, &BoxDual::set_damping,
                   "What a step's curvature and its move of the weights are multiplied by.");
  bind_dual<SimplexDual>(m, "SimplexDual",
                         "Crammer and Singer's dual, a class per lane, in blocks of 16; the arrays "
                         "are checked once and written in place.")
      .def(nb::init<const SharedProblem&, std::int32_t, Output, Output, Output, int>(), "shared"_a,
           "n_classes"_a, "weights"_a.noconvert(), "coef"_a.noconvert(), "bias"_a.noconvert(),
           "n_threads"_a);
  m.def("decide", &decide, "rows"_a, "tables"_a, "weights"_a, "begin"_a, "end"_a,
        "out"_a.noconvert(), "Decision values of some rows, without the constant feature.");
}

}  // namespace widemargin
