"""What a page of HTML consists of."""

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "hr"}


class Outline(HTMLParser):
    """Checks that elements close in order, and collects headings, labels and links."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.found, self.headings, self.ids = [], {}, [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, name, attrs):
        self.found.setdefault(name, []).append(dict(attrs))
        self.ids += [value for key, value in attrs if key == "id"]
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attrs):
        self.handle_starttag(name, attrs)
        self.open = self.open if name in VOID else self.open[:-1]

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)
