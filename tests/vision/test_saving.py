"""Features of images in model files; hostile files are in tests/persistence, with all others."""

import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from tests.persistence.damage import Parts

from widemargin import AdditiveSVC, KernelSVC, load, papers, save
from widemargin.errors import TooLargeError
from widemargin.persistence import read_header
from widemargin.vision import BagOfVisualWords, Centrist, Codebook, DenseSIFT, SpatialPyramid

from .test_features import IMAGES, Y

FEATURES = {
    "centrist": lambda: Centrist(SpatialPyramid((1, 2)), longest_side=30),
    "default": lambda: BagOfVisualWords(codebook=Codebook(5)),
    "tables": lambda: BagOfVisualWords(
        DenseSIFT(6, sides=[16, 24], root=True, longest_side=None),
        Codebook(6, "intersection", neighbours=2, random_state=None),
        SpatialPyramid([2], overlap=False, shares=True),
        edges=True,
        sample_size=500,
    ),
}
each_kind = pytest.mark.parametrize("kind", FEATURES)


@each_kind
@pytest.mark.parametrize("machine", [papers.icd(scaling=None), AdditiveSVC("chi2"), KernelSVC()])
def test_a_pipeline_comes_back_as_it_was(kind, machine, tmp_path):
    model = make_pipeline(FEATURES[kind](), machine).fit(IMAGES, Y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert (again.decision_function(IMAGES) == model.decision_function(IMAGES)).all()
    assert (again[0].transform(IMAGES) != model[0].transform(IMAGES)).nnz == 0
    save(again, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    header = read_header(tmp_path / "m")
    assert header.kinds == (type(model[0]).__name__, type(machine).__name__)
    assert header.n_features == model[0].transform(IMAGES[:1]).shape[1]
    again.fit(IMAGES, Y)  # with the parameters that it had


@each_kind
def test_features_alone(kind, tmp_path):
    features = FEATURES[kind]().fit(IMAGES)
    save(features, tmp_path / "f")
    assert (load(tmp_path / "f").transform(IMAGES) != features.transform(IMAGES)).nnz == 0
    with pytest.raises(NotFittedError):
        save(FEATURES[kind](), tmp_path / "g")


def test_images_come_first(tmp_path):
    features = Centrist(SpatialPyramid((1,))).fit(IMAGES)
    machine = KernelSVC().fit(features.transform(IMAGES), Y)
    with pytest.raises(ValueError, match="steps"):
        save(make_pipeline(features, features, machine), tmp_path / "m")
    save(make_pipeline(features, machine), tmp_path / "m")
    parts = Parts.of(tmp_path / "m")
    parts.header["steps"][0]["own"]["pyramid"]["levels"] = [2]
    (tmp_path / "m").write_bytes(parts.content())
    with pytest.raises(ValueError, match=r"pyramid must be one with 256 windows"):
        load(tmp_path / "m")


@pytest.mark.parametrize(("name", "value"), [("step", 1), ("sides", [16] * 5000)])
def test_what_a_file_may_cost_at_prediction_is_limited(name, value, tmp_path):
    save(FEATURES["default"]().fit(IMAGES), tmp_path / "f")
    parts = Parts.of(tmp_path / "f")
    parts.header["own"]["features"][name] = value
    (tmp_path / "f").write_bytes(parts.content())
    with pytest.raises(TooLargeError, match="patches of an image take"):
        load(tmp_path / "f", max_bytes=10**7)
