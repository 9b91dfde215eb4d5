"""Markdown of our own pages: facts stay facts, formulas become MathML, structure is what the site's policy allows."""

from __future__ import annotations

import re

import pytest
from markupsafe import escape

from generator.html.markdown import Safe, code, convert_page, mathml, plain, slug
from generator.schema.errors import InputError


def body(text):
    return convert_page(f"# Title\n\n{text}\n", "page.md").html


class TestPlain:
    @pytest.mark.parametrize(
        "fact",
        ["<b>x</b>", "*a* _b_ `c`", "[x](javascript:1)", "![i](u)", "a | b", "$x$ \\ & &amp;", "# h", "1. x", "~~s~~"],
    )
    def test_a_fact_is_shown_letter_by_letter(self, fact):
        html = body(plain(fact))
        text = re.sub(r"<[^>]+>", "", html)
        for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
            text = text.replace(entity, character)
        assert text.strip() == fact
        assert re.findall(r"<(\w+)", html) == ["p"]

    @pytest.mark.parametrize("fact", ["Hobby (control)", "<script>alert(1)</script>", 'a "b" & c', "</dd><img src=x>"])
    def test_a_fact_within_html_of_ours_is_shown_letter_by_letter_too(self, fact):
        html = body(f"<dl>\n<dt>x</dt>\n<dd>It is {plain(fact)}.</dd>\n</dl>")
        assert f"<dd>It is {escape(fact)}.</dd>" in html

    def test_a_pipe_stays_inside_its_table_cell(self):
        assert body(f"| a | b |\n|---|---|\n| {plain('x|y')} | z |").count("<td>") == 2

    def test_quotes_of_ours_curl_and_those_of_a_fact_do_not(self):
        assert body(f'Our "word" isn\'t {plain(chr(34) + "theirs" + chr(34))}') == (
            "<p>Our “word” isn’t &quot;theirs&quot;</p>\n"
        )

    def test_code_is_escaped_too(self):
        assert "<code>a_b&lt;i&gt;</code>" in body(code("a_b<i>"))

    def test_what_is_safe_is_a_string_of_its_own_kind(self):
        assert isinstance(plain("x"), Safe)


class TestFormulas:
    def test_inline_and_block(self):
        html = body("Let $x_1$ be\n\n$$\n\\frac{a}{b}\n$$")
        assert '<math display="inline"><mrow><msub>' in html
        assert '<div class="formula" role="group" aria-label="Formula" tabindex="0"><math display="block">' in html

    def test_a_formula_that_cannot_be_read_is_named(self):
        with pytest.raises(InputError, match=r"formula '\\\\nosuchcommand\{x\}'"):
            mathml(r"\nosuchcommand{x}")

    def test_a_command_that_passes_through_as_text_is_named(self):
        with pytest.raises(InputError, match="not supported"):
            mathml(r"\bigl\lvert x \bigr\rvert")

    def test_bars_around_a_term_are_of_one_height(self):
        html = mathml(r"\sum_{g} \lvert s \rvert", block=True)
        assert html.count('<mo stretchy="false">&#x0007C;</mo>') == html.count("&#x0007C;") == 2

    def test_capital_greek_is_upright_and_signs_are_operators(self):
        html = mathml(r"\Phi \pm \nu : b")
        assert '<mi mathvariant="normal">&#x003A6;</mi><mo>&#x000B1;</mo><mi>&#x003BD;</mi><mo>:</mo>' in html


class TestStructure:
    def test_no_inline_style_and_number_columns_by_class(self):
        html = body("| a | n |\n|---|--:|\n| x | 1 |")
        assert "style=" not in html
        assert '<th scope="col" class="n">' in html
        assert '<td class="n">1</td>' in html

    def test_headings_have_anchors_and_are_listed(self):
        page = convert_page("# T\n\nFirst *words*.\n\n## The p-value\n\n### Below\n", "page.md")
        assert [(h.anchor, h.text) for h in page.headings] == [("the-p-value", "The p-value")]
        assert page.title == "T"
        assert page.summary == "First words."
        assert '<h2 id="the-p-value">' in page.html
        assert "<h1" not in page.html

    def test_footnotes_link_both_ways(self):
        html = body("One[^a] and again[^a].\n\n[^a]: Note.")
        anchors = re.findall(r'id="(fn[\w-]+)"', html)
        targets = re.findall(r'href="#(fn[\w-]+)"', html)
        assert sorted(set(targets)) == sorted(anchors)

    @pytest.mark.parametrize("text", ["no title", "# One\n\n# Two", "words\n\n# Late"])
    def test_a_page_has_one_title_on_its_first_line(self, text):
        with pytest.raises(InputError, match=r"page\.md: \d lines begin"):
            convert_page(text, "page.md")

    @pytest.mark.parametrize(("text", "anchor"), [("What, then?", "what-then"), ("κ", "section"), ("A  b--c", "a-b-c")])
    def test_slug(self, text, anchor):
        assert slug(text) == anchor
