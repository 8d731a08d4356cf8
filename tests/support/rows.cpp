#include "tests/support/rows.hpp"
#include <iterator>
#include "engine/random.hpp"

namespace lookback::test {

Array uniform(const Shape& shape, double low, double high, unsigned seed) {
    return Generator(seed).uniform(shape, low, high);
}

std::vector<Row> all_rows() {
    std::vector<Row> all;
    for (auto family : {arithmetic_rows, activation_rows, reduce_rows, movement_rows, linear_rows, softmax_rows,
                        gather_rows, recurrent_rows, regularise_rows}) {
        std::vector<Row> rows = family();
        std::move(rows.begin(), rows.end(), std::back_inserter(all));
    }
    return all;
}

}  // namespace lookback::test
