// The gradcheck table: one row an op and shape case. Each family's test file gives its rows; census_test.cpp checks
// them all against central differences, and that every op declared in engine/ops/*.hpp has rows.
#pragma once
#include <functional>
#include <string>
#include <vector>
#include "engine/tape.hpp"

namespace lookback::test {

struct Row {
    std::string op;      // as declared in ops/*.hpp, and as recorded
    std::string shapes;  // what is special about this case: "same input", "(2,1) with (2,3)", "0-d", "negative axis"
    std::function<std::vector<Tensor>(const std::vector<Tensor>&)> f;
    std::vector<Array> inputs;  // away from kinks; those have tests of their own
};

Array uniform(const Shape& shape, double low, double high, unsigned seed = 1);  // the same numbers in every build

std::vector<Row> arithmetic_rows();
std::vector<Row> activation_rows();
std::vector<Row> reduce_rows();
std::vector<Row> movement_rows();
std::vector<Row> linear_rows();
std::vector<Row> softmax_rows();
std::vector<Row> gather_rows();
std::vector<Row> recurrent_rows();
std::vector<Row> regularise_rows();
std::vector<Row> all_rows();

}  // namespace lookback::test
