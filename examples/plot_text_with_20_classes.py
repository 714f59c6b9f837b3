"""
Text with twenty classes
========================

Which package is a text about? The texts are the paragraphs of the docstrings of twenty
subpackages of NumPy, SciPy and scikit-learn, so nothing has to be downloaded. Counts of words are
histograms, and the chi-square kernel is made for histograms.
"""

import inspect
import re
import time
from importlib import import_module

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from widemargin import AdditiveSVC

PACKAGES = [
    "numpy.fft",
    "numpy.linalg",
    "numpy.ma",
    "numpy.polynomial",
    "numpy.random",
    "scipy.cluster.hierarchy",
    "scipy.fft",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.signal",
    "scipy.sparse",
    "scipy.spatial",
    "scipy.special",
    "scipy.stats",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.metrics",
    "sklearn.preprocessing",
]


def paragraphs(package: str) -> set[str]:
    """Paragraphs of the docstrings of what a package offers, without names of packages."""
    module, found = import_module(package), set()
    for name in dir(module):
        thing = getattr(module, name)
        if not name.startswith("_") and (inspect.isclass(thing) or callable(thing)):
            text = re.sub(r"(numpy|scipy|sklearn|np)[.\w]*", " ", inspect.getdoc(thing) or "")
            found.update(part for part in text.split("\n\n") if len(part) > 120)
    return found


texts, labels = [], []
for package in PACKAGES:
    own = sorted(paragraphs(package))[:400]
    texts += own
    labels += [package] * len(own)
print(len(texts), "paragraphs")

# %%
# Only words that occur at least three times are counted. The rows are sparse and stay sparse.
X = CountVectorizer(min_df=3, token_pattern=r"[a-zA-Z]{3,}").fit_transform(texts).astype(float)
X_train, X_test, y_train, y_test = train_test_split(
    X, np.array(labels), random_state=0, stratify=labels, test_size=0.3
)
scores = {}
for name, machine in {
    "LinearSVC": LinearSVC(C=0.1, random_state=0),
    "AdditiveSVC, chi2": AdditiveSVC("chi2", random_state=0),
}.items():
    start = time.perf_counter()
    machine.fit(X_train, y_train)
    scores[name] = machine.score(X_test, y_test)
    print(f"{name}: {scores[name]:.1%} in {time.perf_counter() - start:.2f} s")

# %%
# The additive machine mostly confuses packages that are alike: the two packages for Fourier
# transforms share most of their docstrings.
matrix = confusion_matrix(y_test, machine.predict(X_test), labels=PACKAGES, normalize="true")
figure, ax = plt.subplots(figsize=(8.5, 7.5), layout="constrained")
image = ax.imshow(np.sqrt(matrix), cmap="Blues", vmin=0, vmax=1)
for i, j in zip(*np.nonzero(matrix > 0.045), strict=True):
    ax.text(j, i, f"{100 * matrix[i, j]:.0f}", ha="center", va="center", fontsize=8,
            color="white" if matrix[i, j] > 0.3 else "black")  # fmt: skip
ax.set_xticks(range(20), PACKAGES, rotation=90)
ax.set_yticks(range(20), PACKAGES)
ax.set(xlabel="predicted", ylabel="true", title="Per cent of the paragraphs of a package")
plt.show()
