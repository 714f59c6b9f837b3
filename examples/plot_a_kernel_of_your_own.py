"""
A kernel of your own: words and their languages
===============================================

A kernel is a function of two lists of rows, and a row may be anything. Here rows are words, and
the kernel compares the pieces that two words share. The machine tells the language of a word.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from widemargin import KernelSVC

WORDS = {
    "English": """though through thought night light right knowledge which weather whether health
    wealth strength length earth breath should would could shadow window yellow follow tomorrow
    something anything nothing morning evening feeling building walking""",
    "German": """schule schnee schloss schwester zwischen waschen mensch deutsch freiheit gesundheit
    wirklich nämlich endlich möglich glücklich zeitung wohnung hoffnung meinung bedeutung straße
    großvater einfach vielleicht gespräch geschichte entschuldigung kirche milch""",
    "Italian": """bellezza ragazzo pizza piazza palazzo giorno oggi spiaggia formaggio viaggio
    coraggio famiglia moglie figlio meraviglia bicchiere occhio vecchio macchina chiesa amicizia
    notizia stazione lezione attenzione colazione felicità città università""",
    "Finnish": """yliopisto ystävä kirjasto hyvää päivää kiitos huomenta suomalainen maailma
    sydäntalvi metsässä järvellä pöytä työpaikka kaupunki kevät syksyllä kesällä talvella lentokone
    rautatie äiti isoäiti tyttö poikaystävä kukkakaali omenapuu hääyö""",
}
words = [word for own in WORDS.values() for word in own.split()]
language = np.repeat(list(WORDS), [len(own.split()) for own in WORDS.values()])

# %%
# Two words are alike if they share runs of one to three letters. The kernel may return a sparse
# matrix.
pieces = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3), sublinear_tf=True).fit(words)


def shared_pieces(these, those):
    return (pieces.transform(these) @ pieces.transform(those).T).toarray()


model = KernelSVC(shared_pieces, C=3, random_state=0).fit(words, language)
unseen = ["nightfall", "freundschaft", "ragazza", "jäätelö", "bookshelf", "schokolade", "orologio",
          "hyvästi", "thunder", "wunderbar", "specchio", "mökillä"]  # fmt: skip
for word, said in zip(unseen, model.predict(unseen), strict=True):
    print(f"{word:14} {said}")

# %%
# Left, the kernel of all training words: words of one language form darker blocks. Right, what
# the machine says about new words: the darkest blue in a row is its decision.
kernel, said = shared_pieces(words, words), model.decision_function(unseen)
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 6), layout="constrained")
left.imshow(np.sqrt(kernel), cmap="Blues", vmax=0.6)
ends = np.cumsum([len(own.split()) for own in WORDS.values()])
for end in ends[:-1]:
    left.axhline(end - 0.5, color="#c0392b", lw=1)
    left.axvline(end - 0.5, color="#c0392b", lw=1)
middle = (np.r_[0, ends[:-1]] + ends) / 2
left.set_xticks(middle, WORDS)
left.set_yticks(middle, WORDS, rotation=90, va="center")
left.set_title("pieces that two words share")
most = np.abs(said).max()
right.imshow(said, cmap="RdBu", vmin=-most, vmax=most, aspect="auto")
right.set_xticks(range(4), model.classes_)
right.set_yticks(range(len(unseen)), unseen)
for row, best in enumerate(said.argmax(axis=1)):
    right.text(best, row, model.classes_[best], ha="center", va="center", color="white")
right.set_title("new words, and what they sound like")
plt.show()
