"""Wires: what rounding does to points and rewards, and that both sides have the same after it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from laconic import Gaussian, Matern, Polynomial, RationalQuadratic
from laconic.arrays import Floats
from laconic.atoms.settings import POINT_ROUNDING
from laconic.errors import InputError, RemoteProtocolError
from laconic.kernels import Kernel
from laconic.protocol.wire import FloatWire, Int8Wire, as_wire

NONE = np.empty(0)
KERNELS: list[Kernel] = [Gaussian(0.1), Gaussian(30.0), Matern(nu=1.5, length=0.05), RationalQuadratic(), Polynomial()]
lams = st.sampled_from([1e-3, 0.1, 1.0, 30.0])
coordinates = hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(3)), elements=st.floats(-3, 3, width=32))


def rounded(points: Floats, wire: Int8Wire | None = None, *, kernel: Kernel | None = None, lam: float = 1.0) -> Floats:
    return (wire or Int8Wire()).rounded(np.atleast_2d(points), np.zeros(0), kernel=kernel, lam=lam)[0]


def rounded_rewards(rewards: list[float], *, lam: float) -> Floats:
    return Int8Wire().rounded(np.empty((0, 1)), np.array(rewards), kernel=None, lam=lam)[1]


@given(x=st.floats(-1, 1))
def test_a_coordinate_within_its_range_moves_by_half_a_step_at_most(x: float) -> None:
    assert abs(rounded(np.array([x]), lam=1e6)[0, 0] - x) <= 0.5 / 127 * (1 + 1e-12)


@given(x=st.floats(-1, 1), scale=st.sampled_from([1e-4, 0.3, 7.0, 1e5]))
def test_each_coordinate_has_the_steps_of_its_own_range(x: float, scale: float) -> None:
    wire = Int8Wire(ranges=(1.0, scale))
    there = rounded(np.array([0.0, scale * x]), wire, lam=1e30)
    assert abs(there[0, 1] - scale * x) <= 0.5 * scale / 127 * (1 + 1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@given(X=coordinates, lam=lams)
def test_no_point_moves_further_than_a_thousandth_of_lambda_in_feature_space(
    kernel: Kernel, X: Floats, lam: float
) -> None:
    there = rounded(X, kernel=kernel, lam=lam)
    moved = kernel.diag(X) + kernel.diag(there) - 2 * np.diagonal(kernel(X, there))
    size = np.maximum(kernel.diag(X), 1.0)
    assert (moved <= POINT_ROUNDING * lam + 1e-12 * size).all() or (there == X.astype(np.float32)).all()


@given(X=coordinates, lam=lams)
def test_a_point_unpacks_to_the_bits_that_its_sender_learns_from(X: Floats, lam: float) -> None:
    wire = Int8Wire()
    there = rounded(X, wire, kernel=Gaussian(3.0), lam=lam)
    form = wire.form_of(there)
    for number, array in enumerate(wire.packed(there)):
        np.testing.assert_array_equal(wire.unpacked(number, array), there[form == number])


def test_coordinates_beyond_their_range_go_in_32_bits() -> None:
    wire = Int8Wire()
    there = rounded(np.array([[0.5, 0.5], [0.5, 1.5], [-1e6, 0.0]]), wire, lam=1e20)
    assert wire.form_of(there).tolist() == [0, 2, 2]
    assert [array.dtype for array in wire.packed(there)] == [np.int8, np.int16, np.float32]
    np.testing.assert_array_equal(there[1:], [[0.5, 1.5], [-1e6, 0.0]])


def test_points_for_which_a_byte_is_too_coarse_go_in_16_bits() -> None:
    wire, kernel = Int8Wire(), Gaussian(gamma=100.0)
    x = np.array([[0.5 / 127, 0.3]])  # half a step from the nearest byte
    there = rounded(x, wire, kernel=kernel, lam=0.1)
    assert wire.form_of(there).tolist() == [1]
    assert np.abs(there - x).max() <= 0.5 / 32767 * (1 + 1e-12)
    assert wire.form_of(rounded(x, wire, kernel=kernel, lam=100.0)).tolist() == [0]


def test_points_for_which_16_bits_are_too_coarse_go_in_32() -> None:
    wire, kernel = Int8Wire(ranges=1e4), Gaussian(gamma=100.0)
    assert wire.form_of(rounded(np.array([[0.123]]), wire, kernel=kernel, lam=0.1)).tolist() == [2]


@given(rewards=st.lists(st.floats(-1e6, 1e6), max_size=8), lam=lams)
def test_a_reward_moves_by_a_hundredth_of_the_root_of_lambda_or_goes_in_32_bits(
    rewards: list[float], lam: float
) -> None:
    y = np.array(rewards)
    there = rounded_rewards(rewards, lam=lam)
    close = np.abs(there - y) <= 0.01 * np.sqrt(lam)
    assert (close | (there == y.astype(np.float32))).all()
    packed = Int8Wire().packed_rewards(there)
    np.testing.assert_array_equal(packed.astype(np.float64), there)


def test_rewards_take_two_bytes_where_that_is_fine_enough_and_four_where_it_is_not() -> None:
    wire = Int8Wire()
    assert wire.packed_rewards(rounded_rewards([0.1, -0.7], lam=0.1)).dtype == np.float16
    assert wire.packed_rewards(rounded_rewards([1e6], lam=1.0)).dtype == np.float32
    assert rounded_rewards([1e6], lam=1.0)[0] == 1e6
    assert wire.packed_rewards(rounded_rewards([3.1415], lam=1e-8)).dtype == np.float32


@pytest.mark.parametrize("size", [1e39, -1e100])
def test_what_does_not_fit_into_32_bits_is_refused_with_advice(size: float) -> None:
    with pytest.raises(InputError, match=r"reward beyond .* rescale"):
        rounded_rewards([size], lam=1.0)
    with pytest.raises(InputError, match=r"point beyond .* rescale"):
        rounded(np.array([size]))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_wire_of_floats_refuses_what_its_numbers_cannot_hold(dtype: str) -> None:
    with pytest.raises(InputError, match=f"does not fit into {dtype}"):
        FloatWire(dtype).rounded(np.array([[1e39]]), np.zeros(1), kernel=None, lam=1.0)


def test_points_in_another_form_than_they_say_are_refused() -> None:
    for form, array in ((0, np.zeros((1, 2))), (2, np.zeros((1, 2), np.int8)), (3, np.zeros((1, 2), np.int8))):
        with pytest.raises(RemoteProtocolError):
            Int8Wire().unpacked(form, array)
    with pytest.raises(RemoteProtocolError):
        FloatWire().unpacked(0, np.zeros((1, 2), np.float32))


@pytest.mark.parametrize("ranges", [0, -1.0, np.nan, np.inf, "1", (), (1.0, 0.0), None])
def test_ranges_that_are_no_sizes_are_refused(ranges: object) -> None:
    with pytest.raises(InputError, match="ranges"):
        Int8Wire(ranges=ranges)  # type: ignore[arg-type]


def test_wires_have_names() -> None:
    assert as_wire("int8") == Int8Wire()
    assert as_wire("float32") == FloatWire("float32")
    assert as_wire(Int8Wire(2.0)) == Int8Wire(2.0)
    for wrong in ("int4", 8):
        with pytest.raises(InputError, match="wire"):
            as_wire(wrong)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("lam", [1e-3, 0.1, 1.0])
def test_how_a_point_is_rounded_does_not_depend_on_the_points_beside_it(kernel: Kernel, lam: float) -> None:
    X = 0.4 * np.random.default_rng(0).normal(size=(53, 5))
    together = rounded(X, kernel=kernel, lam=lam)
    alone = [rounded(x, kernel=kernel, lam=lam) for x in X]
    assert np.array_equal(together, np.concatenate(alone))
