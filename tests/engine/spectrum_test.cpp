// Spectra against matrices whose answer is known.
#include "engine/spectrum.hpp"
#include <cmath>
#include <numbers>
#include "engine/blas.hpp"
#include "engine/random.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

static constexpr double tolerance = sizeof(Real) == 8 ? 1e-12 : 1e-6;

TEST_CASE("a diagonal matrix shows its entries") {
    const Array d{{3, 0, 0}, {0, -5, 0}, {0, 0, 1}};
    const std::vector<double> s = singular_values(d);
    REQUIRE(s.size() == 3);
    CHECK((close(s[0], 5, tolerance) && close(s[1], 3, tolerance) && close(s[2], 1, tolerance)));
    CHECK(close(spectral_norm(d), 5, tolerance));
    CHECK(close(spectral_radius(d), 5, tolerance));
    CHECK(close(frobenius_norm(d), std::sqrt(35.0), tolerance));
    CHECK(rank(d) == 3);
}

TEST_CASE("norm and radius part on a matrix that is not normal") {
    const Array shear{{Real(0.5), 10}, {0, Real(0.25)}};  // powers grow at first, then die
    CHECK(close(spectral_radius(shear), 0.5, tolerance));
    CHECK(spectral_norm(shear) > 10);
    const Array nilpotent{{0, 1}, {0, 0}};
    CHECK(close(spectral_norm(nilpotent), 1, tolerance));
    CHECK(spectral_radius(nilpotent) < 1e-7);
    CHECK(rank(nilpotent) == 1);
}

TEST_CASE("a rotation has complex eigenvalues of length one") {
    const double angle = 0.3;
    const Array turn{{Real(std::cos(angle)), Real(-std::sin(angle))}, {Real(std::sin(angle)), Real(std::cos(angle))}};
    const auto values = eigenvalues(turn);
    REQUIRE(values.size() == 2);
    CHECK(close(std::abs(values[0]), 1, tolerance));
    CHECK(close(std::abs(std::arg(values[0])), angle, tolerance));
    CHECK(close(std::arg(values[0]), -std::arg(values[1]), tolerance));
    CHECK(close(spectral_norm(turn), 1, tolerance));
}

TEST_CASE("a wide and a tall matrix have the same singular values, whose squares sum to the squared Frobenius norm") {
    const Array a = Generator(3).normal({4, 7});
    Array transposed = filled({7, 4}, 0);
    for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t j = 0; j < 7; ++j) transposed(j, i) = a(i, j);
    const std::vector<double> s = singular_values(a), t = singular_values(transposed);
    REQUIRE(s.size() == 4);
    REQUIRE(t.size() == 4);
    double squares = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(close(s[i], t[i], 1e-12));
        CHECK((i == 0 || s[i] <= s[i - 1]));
        squares += s[i] * s[i];
    }
    CHECK(close(frobenius_norm(a), std::sqrt(squares), 1e-12));
}

TEST_CASE("the rank of a product is at most its inner size, in spite of rounding") {
    const Array a = Generator(5).normal({20, 3}), b = Generator(6).normal({3, 15});
    CHECK(rank(product(a, Op::plain, b, Op::plain)) == 3);
    CHECK(rank(filled({3, 4}, 0)) == 0);
    CHECK(rank(filled({3, 4}, 1)) == 1);
}

TEST_CASE("matrices without entries have zero norms") {
    for (const Shape& shape : {Shape{0, 0}, Shape{0, 3}, Shape{3, 0}}) {
        const Array a = filled(shape, 0);
        CHECK(singular_values(a).empty());
        CHECK(spectral_norm(a) == 0);
        CHECK(frobenius_norm(a) == 0);
        CHECK(rank(a) == 0);
    }
    CHECK(spectral_radius(filled({0, 0}, 0)) == 0);
}

TEST_CASE("huge entries don't overflow the Frobenius norm") {
    const Real huge = sizeof(Real) == 8 ? Real(1e200) : Real(1e30f);
    CHECK(close(frobenius_norm(filled({3, 3}, huge)), 3 * double(huge), tolerance, 0));
    CHECK(close(frobenius_norm(filled({1, 1}, -2)), 2));
}

TEST_CASE("what is no matrix, not square or not finite is refused") {
    CHECK_THROWS_AS(singular_values(filled({3}, 1)), ShapeError);
    CHECK_THROWS_AS(spectral_norm(filled({2, 2, 2}, 1)), ShapeError);
    CHECK_THROWS_AS(frobenius_norm(filled({}, 1)), ShapeError);
    CHECK_THROWS_AS(eigenvalues(filled({2, 3}, 1)), ShapeError);
    CHECK_THROWS_WITH(spectral_radius(filled({2, 3}, 1)), "[spectral_radius] a square matrix is wanted, not (2,3)");
    CHECK_THROWS_AS(rank(Array{{1, NAN}}), ValueError);
    CHECK_THROWS_AS(singular_values(Array{{1, INFINITY}}), ValueError);
}
