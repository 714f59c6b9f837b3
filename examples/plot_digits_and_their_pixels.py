"""
Digits, and which pixels speak
==============================

Ten classes, 64 pixels. An additive machine has a curve for each pixel and class. So we can draw
its idea of every digit: dark ink in a blue pixel speaks for the digit, in a red pixel against it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from widemargin import AdditiveSVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = AdditiveSVC("chi2", C=3, random_state=0).fit(X_train, y_train)
print(f"accuracy {model.score(X_test, y_test):.3f}")

# %%
# What ink adds: the curve at full ink minus the curve at no ink. It is zero for pixels that are
# always white.
speaks = np.zeros((10, 64))
for digit in range(10):
    for pixel in range(64):
        grid, values = model.shape_function(pixel, digit)
        speaks[digit, pixel] = values[-1] - values[0] if len(values) > 1 else 0.0

# %%
# Top, the mean of each digit. Middle, what its pixels say. Bottom, a mistake: an image of another
# digit in the test data that the machine took for this one, if there is one.
predicted = model.predict(X_test)
figure, axes = plt.subplots(3, 10, figsize=(13, 4.4), layout="constrained")
for digit in range(10):
    axes[0, digit].imshow(X_train[y_train == digit].mean(axis=0).reshape(8, 8), cmap="Greys")
    axes[0, digit].set_title(digit)
    most = np.abs(speaks).max() * 0.7
    axes[1, digit].imshow(speaks[digit].reshape(8, 8), cmap="RdBu", vmin=-most, vmax=most)
    wrong = np.flatnonzero((predicted == digit) & (y_test != digit))
    if len(wrong):
        axes[2, digit].imshow(X_test[wrong[0]].reshape(8, 8), cmap="Greys")
        axes[2, digit].set_xlabel(f"was a {y_test[wrong[0]]}", color="#c0392b")
    else:
        axes[2, digit].text(0.5, 0.5, "none", ha="center", va="center", color="grey",
                            transform=axes[2, digit].transAxes)  # fmt: skip
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
for ax, name in zip(axes[:, 0], ["mean", "its pixels", "a mistake"], strict=True):
    ax.set_ylabel(name)
plt.show()
