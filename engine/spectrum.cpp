#include "spectrum.hpp"
#include <cmath>
#include "kernels.hpp"
// The only file with xtensor-blas: its headers clash with <cblas.h>.
#include <xtensor-blas/xlinalg.hpp>

namespace lookback {

using Matrix = xt::xtensor<double, 2, xt::layout_type::column_major>;  // LAPACK's own order

static void check(const char* what, const Array& a, bool square = false) {
    if (a.dimension() != 2) fail<ShapeError>(what, "a matrix is wanted, not " + text(a.shape()));
    if (square && a.shape()[0] != a.shape()[1])
        fail<ShapeError>(what, "a square matrix is wanted, not " + text(a.shape()));
    if (!std::all_of(a.data(), a.data() + a.size(), [](Real x) { return std::isfinite(x); }))
        fail<ValueError>(what, "an entry of the matrix " + text(a.shape()) + " is not finite");
}

static Matrix matrix(const Array& a) {
    const std::size_t rows = a.shape()[0], columns = a.shape()[1];
    Matrix m = Matrix::from_shape({rows, columns});
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j) m(i, j) = a.data()[i * columns + j];
    return m;
}

std::vector<double> singular_values(const Array& a) {
    check("singular_values", a);
    if (a.size() == 0) return {};
    const auto [u, s, v] = xt::linalg::svd(matrix(a), false, false);
    return {s.begin(), s.end()};
}

double spectral_norm(const Array& a) {
    check("spectral_norm", a);
    return a.size() ? singular_values(a)[0] : 0;
}

double frobenius_norm(const Array& a) {
    check("frobenius_norm", a);
    return norm(a);
}

std::size_t rank(const Array& a) {
    check("rank", a);
    const std::vector<double> s = singular_values(a);
    const double epsilon = std::numeric_limits<Real>::epsilon();  // of the entries, not of the computation
    return std::size_t(std::count_if(s.begin(), s.end(), [&](double x) {
        return x > double(std::max(a.shape()[0], a.shape()[1])) * epsilon * s[0];
    }));
}

std::vector<std::complex<double>> eigenvalues(const Array& a) {
    check("eigenvalues", a, true);
    if (a.size() == 0) return {};
    const xt::xtensor<std::complex<double>, 1> all = xt::linalg::eigvals(matrix(a));
    std::vector<std::complex<double>> values(all.begin(), all.end());
    std::stable_sort(values.begin(), values.end(), [](auto x, auto y) { return std::abs(x) > std::abs(y); });
    return values;
}

double spectral_radius(const Array& a) {
    check("spectral_radius", a, true);
    return a.size() ? std::abs(eigenvalues(a)[0]) : 0;
}

}  // namespace lookback
