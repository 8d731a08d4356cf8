// Every row of every family against central differences, and every op declared, recorded and tested under one name.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include "engine/gradcheck.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/reduce.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"
#include "tests/support/rows.hpp"

using namespace lookback;
using namespace lookback::test;

using Names = std::set<std::string>;

static Names without(const Names& all, const Names& some) {
    Names rest;
    std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::inserter(rest, rest.end()));
    return rest;
}

// The functions that a header declares at its left margin and that return tensors: those are the ops.
static Names declared_in(const std::string& header) {
    static const std::regex declaration(R"(^(?:inline )?(?:Tensor|std::vector<Tensor>|LSTMState|Attended) (\w+)\()",
                                        std::regex::multiline);
    Names names;
    for (std::sregex_iterator at(header.begin(), header.end(), declaration), end; at != end; ++at)
        names.insert((*at)[1]);
    return names;
}

static Names declared() {
    Names names;
    for (const auto& file : std::filesystem::directory_iterator(LOOKBACK_SOURCE_DIR "/engine/ops")) {
        if (file.path().extension() != ".hpp") continue;
        std::ostringstream text;
        text << std::ifstream(file.path()).rdbuf();
        names.merge(declared_in(text.str()));
    }
    return names;
}

static Names in_rows(const std::vector<Row>& rows) {
    Names names;
    for (const Row& row : rows) names.insert(row.op);
    return names;
}

static std::string title(const Row& row) { return row.op + ": " + row.shapes; }

// tag is an op of the tape itself.
static std::vector<Row> rows() {
    std::vector<Row> all = all_rows();
    all.push_back({"tag",
                   "a vector",
                   [](const std::vector<Tensor>& x) { return std::vector{tag(x[0], "here")}; },
                   {uniform({3}, -1, 1)}});
    return all;
}

// No element to step, or none that a step could change: there is no number that could be wrong. (Shapes still could.)
static bool without_numbers(const Row& row) {
    if (std::all_of(row.inputs.begin(), row.inputs.end(), [](const Array& x) { return x.size() == 0; })) return true;
    Tape tape;
    std::vector<Tensor> leaves;
    for (const Array& x : row.inputs) leaves.push_back(tape.leaf(x));
    const std::vector<Tensor> outputs = row.f(leaves);
    return std::all_of(outputs.begin(), outputs.end(), [](const Tensor& y) { return y.size() == 0; });
}

// The rows of which that is so. They do check shapes.
static const Names zero_size{"abs: (0,3)",
                             "add: (0) with (0)",
                             "add: (0,3) with (0,1)",
                             "clamp: (0,2)",
                             "div: (0) with (0)",
                             "div: (0,3) with (0,1)",
                             "exp: (0,3)",
                             "gelu: (0,3)",
                             "log: (0,3)",
                             "logsumexp: nothing left",
                             "masked_fill: zero size",
                             "max: nothing left",
                             "maximum: (0) with (0)",
                             "maximum: (0,3) with (0,1)",
                             "mean: nothing left",
                             "min: nothing left",
                             "minimum: (0) with (0)",
                             "minimum: (0,3) with (0,1)",
                             "mul: (0) with (0)",
                             "mul: (0,3) with (0,1)",
                             "neg: (0,2)",
                             "norm: nothing left",
                             "norm: of nothing",
                             "pow: (0,2) to -1",
                             "pow: (0,2) to -2",
                             "pow: (0,2) to 1",
                             "pow: (0,2) to 2",
                             "pow: (0,2) to 2.5",
                             "pow: (0,2) to 3",
                             "prod: nothing left",
                             "prod: of nothing",
                             "relu: (0,3)",
                             "sigmoid: (0,3)",
                             "softplus: (0,3)",
                             "sqrt: (0,3)",
                             "sub: (0) with (0)",
                             "sub: (0,3) with (0,1)",
                             "sum: nothing left",
                             "sum: of nothing",
                             "tanh: (0,3)",
                             "variance: nothing left",
                             "where: zero size"};

TEST_CASE("each row's pullback agrees with central differences") {
    for (const Row& row : rows()) {
        INFO(title(row));
        const GradcheckReport report = gradcheck(row.f, row.inputs);
        INFO(report.why);
        CHECK(report.ok);
    }
}

TEST_CASE("each row fails when its gradients are off by little") {
    if (sizeof(Real) != 8) return;  // differences of floats are too rough to tell
    const GradcheckOptions off{.scale_x_bar = 1.0001};
    Names able, exempt;
    for (const Row& row : rows()) {
        if (without_numbers(row)) {
            exempt.insert(title(row));
            continue;
        }
        able.insert(row.op);
        INFO(title(row));
        CHECK(!gradcheck(row.f, row.inputs, off).ok);
    }
    CHECK(exempt == zero_size);                        // measured and listed are the same
    CHECK(without(in_rows(rows()), able) == Names{});  // no op has only such rows
}

// Gradients of Σ y ⊙ (fixed numbers), over all outputs y, with respect to the inputs that are leaves. Bit i of `leaves`
// says it of input i; the others are constants. Nothing if no output depends on a leaf.
static std::vector<Array> gradients(const Row& row, unsigned leaves) {
    Tape tape;
    std::vector<Tensor> x, wanted;
    for (std::size_t i = 0; i < row.inputs.size(); ++i) {
        x.push_back(leaves >> i & 1 ? tape.leaf(row.inputs[i]) : tape.constant(row.inputs[i]));
        if (leaves >> i & 1) wanted.push_back(x[i]);
    }
    Tensor root = tape.constant(filled({}, 0));
    unsigned seed = 7;
    for (const Tensor& y : row.f(x)) root = root + sum(y * tape.constant(uniform(y.shape(), -1, 1, ++seed)));
    std::vector<Array> all;
    if (root.is_constant()) return all;
    const Gradients g = tape.backward(root, wanted);
    for (const Tensor& leaf : wanted) all.push_back(g[leaf]);
    return all;
}

TEST_CASE("each row gives an input the same gradient, whichever others are constants") {
    for (const Row& row : rows()) {
        const std::size_t n = row.inputs.size();
        const std::vector<Array> expected = gradients(row, (1u << n) - 1);
        for (unsigned leaves = 1; leaves + 1 < 1u << n; ++leaves) {
            INFO(title(row) << ", inputs that are leaves: bits of " << leaves);
            const std::vector<Array> g = gradients(row, leaves);
            std::size_t k = 0;
            for (std::size_t i = 0; i < n && !g.empty(); ++i)
                if (leaves >> i & 1) CHECK(close(g[k++], expected[i]));
        }
    }
}

TEST_CASE("each declared op has rows, and each row is of a declared op") {
    const Names ops = declared();
    CHECK(ops.size() > 50);
    CHECK(without(ops, in_rows(rows())) == Names{});
    CHECK(without(in_rows(rows()), ops) == Names{"tag"});
}

TEST_CASE("each recorded name is of an op that has rows") {
    Names recorded;
    for (const Row& row : rows()) {
        Tape tape;
        std::vector<Tensor> leaves;
        for (const Array& x : row.inputs) leaves.push_back(tape.leaf(x));
        const std::vector<Tensor> outputs = row.f(leaves);
        for (Id id = 0; id < tape.size(); ++id) recorded.insert(tape[id].op);
        INFO(title(row));
        CHECK(std::any_of(outputs.begin(), outputs.end(), [](const Tensor& y) { return !y.is_constant(); }));
    }
    CHECK(without(recorded, in_rows(rows())) == Names{"leaf"});
}

TEST_CASE("the census sees an op that somebody adds and forgets to test") {
    const std::string header = R"(
// y = x twice. Tensor not_this(const Tensor& x);
Tensor twice(const Tensor& x);
std::vector<Tensor> halves(const Tensor& x, int axis = 0);
LSTMState step(const Tensor& a,
               const Tensor& h);
inline Tensor quick(const Tensor& x) { return twice(x); }
Tensor operator+(const Tensor& a, const Tensor& b);
Indices argmax(const Tensor& x);
struct State {
    Tensor member(int i) const;
};
)";
    CHECK(declared_in(header) == Names{"twice", "halves", "step", "quick"});
    Names ops = declared();
    ops.merge(declared_in(header));
    CHECK(without(ops, in_rows(rows())) == Names{"twice", "halves", "step", "quick"});
}
