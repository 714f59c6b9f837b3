"""The site that `make docs` has built, page by page in a real browser."""

from pathlib import Path

import pytest
from browser import contrast
from chromium import Browser, served

ROOT = Path(__file__).parents[1]
SITE, DOCS = ROOT / "build" / "site", ROOT / "docs"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
PAGES = [page for page in PAGES if not page.startswith("_static/")]  # templates of the theme
OWN = [page for page in PAGES if not page.startswith("experiments/")]
READ_ON = {"papers", "open-questions", "stress"}  # line by line, behind a page with a picture
GUIDES = {f"{path.stem}.html" for path in DOCS.glob("*.md") if path.stem not in READ_ON}
pytestmark = pytest.mark.skipif(not OWN, reason="make docs has built no site here")

LAID_OUT = """({
  width: document.documentElement.scrollWidth,
  wide: [...document.querySelectorAll("body *")].filter(element =>
    document.documentElement.scrollWidth > innerWidth &&
    element.getBoundingClientRect().right > innerWidth + 1).slice(0, 3)
    .map(element => element.outerHTML.slice(0, 200)),
  broken: [...document.images].filter(image => image.loading != "lazy" && !image.naturalWidth)
    .map(image => image.src),
  mute: [...document.images].filter(image => !image.alt.trim())
    .filter(image => !image.closest(".sphx-glr-thumbcontainer"))  // its caption says it
    .map(image => image.src),
  title: document.title,
})"""
COLOURS = """(() => {
  const style = element => getComputedStyle(element), article = document.querySelector("article");
  const link = article.querySelector("p a");
  return [style(document.body).backgroundColor, style(article).color,
          link ? style(link).color : null];
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def address():
    with served(SITE) as address:
        yield address


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_whole_at_both_widths(page, width, browser, address):
    browser.errors.clear()
    browser.open(f"{address}/{page}", width=width)
    found = browser.script(LAID_OUT)
    assert browser.errors == []
    assert found["width"] <= width, found["wide"]
    assert found["broken"] == []
    assert found["mute"] == []
    assert found["title"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["index.html", "start.html", "additive.html", "measured.html"])
def test_text_and_links_stand_out(page, scheme, browser, address):
    browser.open(f"{address}/{page}", scheme=scheme)
    paper, ink, link = browser.script(COLOURS)
    assert contrast(ink, paper) > 7
    assert link is None or contrast(link, paper) > 4.5


@pytest.mark.parametrize("name", ["AdditiveSVC", "KernelSVC", "BlockStore", "fit_path"])
def test_search_finds_a_name(name, browser, address):
    browser.open(f"{address}/search.html?q={name}")
    browser.until("document.querySelector('#search-results li a')")
    browser.until("/finished|found/i.test(document.querySelector('#search-results').innerText)")
    links = browser.script(
        "[...document.querySelectorAll('#search-results li a')].map(a => a.href)"
    )
    assert any("/api/widemargin." in link for link in links), links


def test_a_picture_of_the_gallery_opens(browser, address):
    browser.open(f"{address}/gallery/index.html")
    cards = browser.script("document.querySelectorAll('.sphx-glr-thumbcontainer').length")
    assert cards >= 14
    browser.script("document.querySelector('.sphx-glr-thumbcontainer a').click()")
    browser.until("/gallery.plot_/.test(location.pathname) && document.readyState == 'complete'")
    browser.until(
        "[...document.images].some(i => /sphx_glr_plot/.test(i.src) && i.naturalWidth > 500)"
    )


def test_the_version_is_in_the_corner(browser, address):
    import widemargin

    browser.open(f"{address}/index.html")
    assert widemargin.__version__ in browser.script(
        "document.querySelector('.navbar-brand').innerText"
    )


@pytest.mark.parametrize(
    "page", [page for page in OWN if page in GUIDES or page.startswith("gallery/plot_")]
)
def test_a_guide_has_a_picture_above_the_fold(page, browser, address):
    browser.open(f"{address}/{page}")
    tops = browser.script(
        "[...document.querySelectorAll('article img')].filter(i => i.naturalWidth > 200)"
        ".map(image => image.getBoundingClientRect().top + scrollY)"
    )
    assert min(tops) < 900


def test_the_browser_sees_what_is_wrong(browser, tmp_path):
    (tmp_path / "bad.html").write_text(
        "<title>bad</title><body><img src=none.png><p style='width: 2000px'>wide</p>"
        "<script>throw Error('on purpose')</script>"
    )
    with served(tmp_path) as address:
        browser.errors.clear()
        browser.open(f"{address}/bad.html", width=400)
        found = browser.script(LAID_OUT)
    assert any("on purpose" in error for error in browser.errors)
    assert found["width"] > 400
    assert len(found["wide"]) == len(found["broken"]) == len(found["mute"]) == 1
