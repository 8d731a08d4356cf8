// What an assignment's functions take and return. A student's file includes this and little else, so it compiles in a
// second, on any machine.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

namespace lookback {

// A matrix of doubles. An index outside it is an error that says so.
class Matrix {
public:
    Matrix() = default;  // (0,0)
    Matrix(std::size_t rows, std::size_t columns, double value = 0);
    Matrix(std::initializer_list<std::initializer_list<double>> rows);  // Matrix A{{1, 2}, {3, 4}};

    std::size_t rows() const { return rows_; }
    std::size_t columns() const { return columns_; }
    std::size_t size() const { return data_.size(); }
    double& operator()(std::size_t i, std::size_t j) { return data_[place(i, j)]; }
    double operator()(std::size_t i, std::size_t j) const { return data_[place(i, j)]; }

    // All elements, row after row:   for (double& a : A.data()) a *= 2;
    std::vector<double>& data() { return data_; }
    const std::vector<double>& data() const { return data_; }

private:
    std::size_t place(std::size_t i, std::size_t j) const;
    std::size_t rows_ = 0, columns_ = 0;
    std::vector<double> data_;
};

Matrix operator*(const Matrix& a, const Matrix& b);  // the matrix product: (M,K)·(K,N) → (M,N)
Matrix operator*(double s, const Matrix& a);
Matrix operator+(const Matrix& a, const Matrix& b);  // of equal shapes, as the next two
Matrix operator-(const Matrix& a, const Matrix& b);
Matrix& operator+=(Matrix& a, const Matrix& b);
Matrix transpose(const Matrix& a);

// What a task throws until it is done.
struct NotDone : std::logic_error {
    explicit NotDone(const std::string& task) : std::logic_error("task " + task + " is not done"), task(task) {}
    std::string task;
};

}  // namespace lookback
