"""What both machines say of each other."""

import numpy as np
import pytest

from widemargin import AdditiveSVC, KernelSVC
from widemargin.additive import kernels as additive
from widemargin.kernel import kernels as general
from widemargin.validation import KERNELS_ELSEWHERE

X, Y = np.eye(4), [0, 0, 1, 1]


@pytest.mark.parametrize("kernel", sorted(set(additive.KERNELS) - set(general.KERNELS)))
def test_kernels_of_the_additive_machine(kernel):
    with pytest.raises(ValueError, match=rf"is not known.*AdditiveSVC\('{kernel}'\) has it\.$"):
        KernelSVC(kernel).fit(X, Y)


@pytest.mark.parametrize("kernel", sorted(set(general.KERNELS) - set(additive.KERNELS)))
def test_kernels_of_the_general_machine(kernel):
    with pytest.raises(ValueError, match=rf"is not known.*KernelSVC\('{kernel}'\) has it\.$"):
        AdditiveSVC(kernel).fit(X, Y)


def test_kernels_that_nobody_has():
    for machine in (AdditiveSVC("cosine"), KernelSVC("cosine")):
        with pytest.raises(ValueError, match="is not known") as error:
            machine.fit(X, Y)
        assert "has it" not in str(error.value)


def test_the_names_are_those_of_the_machines():
    found = {"AdditiveSVC": tuple(additive.KERNELS), "KernelSVC": tuple(general.KERNELS)}
    assert found == KERNELS_ELSEWHERE
