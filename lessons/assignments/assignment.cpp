#include "assignment.hpp"

namespace lookback {

static std::string pair(std::size_t i, std::size_t j) {
    return "(" + std::to_string(i) + "," + std::to_string(j) + ")";
}
static std::string shape(const Matrix& a) { return pair(a.rows(), a.columns()); }

static void check_equal_shapes(const char* sign, const Matrix& a, const Matrix& b) {
    if (a.rows() != b.rows() || a.columns() != b.columns())
        throw std::invalid_argument(std::string("[a ") + sign + " b] shapes differ: " + shape(a) + " and " + shape(b));
}

Matrix::Matrix(std::size_t rows, std::size_t columns, double value)
    : rows_(rows), columns_(columns), data_(rows * columns, value) {}

Matrix::Matrix(std::initializer_list<std::initializer_list<double>> rows)
    : rows_(rows.size()), columns_(rows.size() ? rows.begin()->size() : 0) {
    for (const auto& row : rows) {
        if (row.size() != columns_) throw std::invalid_argument("[Matrix] rows of different lengths");
        data_.insert(data_.end(), row);
    }
}

std::size_t Matrix::place(std::size_t i, std::size_t j) const {
    if (i >= rows_ || j >= columns_)
        throw std::out_of_range("[Matrix] no element " + pair(i, j) + " in a matrix of " + shape(*this));
    return i * columns_ + j;
}

Matrix operator*(const Matrix& a, const Matrix& b) {
    if (a.columns() != b.rows())
        throw std::invalid_argument("[a * b] inner sizes differ: " + shape(a) + " · " + shape(b));
    Matrix c(a.rows(), b.columns());
    for (std::size_t i = 0; i < a.rows(); ++i)
        for (std::size_t k = 0; k < a.columns(); ++k)
            for (std::size_t j = 0; j < b.columns(); ++j) c(i, j) += a(i, k) * b(k, j);
    return c;
}

Matrix operator*(double s, const Matrix& a) {
    Matrix b = a;
    for (double& x : b.data()) x *= s;
    return b;
}

Matrix operator+(const Matrix& a, const Matrix& b) {
    Matrix c = a;
    return c += b;
}

Matrix operator-(const Matrix& a, const Matrix& b) {
    check_equal_shapes("-", a, b);
    return a + -1.0 * b;
}

Matrix& operator+=(Matrix& a, const Matrix& b) {
    check_equal_shapes("+", a, b);
    for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] += b.data()[i];
    return a;
}

Matrix transpose(const Matrix& a) {
    Matrix b(a.columns(), a.rows());
    for (std::size_t i = 0; i < a.rows(); ++i)
        for (std::size_t j = 0; j < a.columns(); ++j) b(j, i) = a(i, j);
    return b;
}

}  // namespace lookback
