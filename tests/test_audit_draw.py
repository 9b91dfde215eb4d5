"""The audit's draw: floors, shares, ties and picks replayable by anyone (contract: stages, "The audit draw")."""

from __future__ import annotations

import hashlib
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from generator.schema.audit_draw import allocate, auditable, draw, sample_size, stratum_name

SIZES = st.dictionaries(st.text("abcd|", min_size=1, max_size=4), st.integers(1, 400), min_size=1, max_size=9)


class TestSampleSize:
    def test_what_is_asked_for(self) -> None:
        assert sample_size({"a": 1000}, 150) == 150

    def test_never_under_a_hundred(self) -> None:
        assert sample_size({"a": 1000}, 10) == 100

    def test_never_under_the_floors_of_many_strata(self) -> None:
        assert sample_size({str(i): 50 for i in range(30)}, 100) == 150

    def test_never_more_than_there_is(self) -> None:
        assert sample_size({"a": 30, "b": 2}, 150) == 32


class TestAllocate:
    def test_floors_first_then_the_rest_by_size(self) -> None:
        # 150 asked; floors 5 + 5 + 2; the other 138 by size: c cannot take more, a and b share 3 to 1:
        # 138 * 900/1202 = 103.3, 138 * 300/1202 = 34.4, 138 * 2/1202 = 0.2 of 0 left; without c 103.5 and 34.5:
        # the floors of these are 103 and 34, and the last row goes to the first name, for the remainders are equal.
        assert allocate({"a": 900, "b": 300, "c": 2}, 150) == {"a": 5 + 104, "b": 5 + 34, "c": 2}

    def test_equal_remainders_go_to_the_first_name_as_bytes(self) -> None:
        assert allocate({"b": 100, "a": 100, "C": 100}, 100) == {"C": 34, "a": 33, "b": 33}

    def test_a_small_stratum_is_taken_whole_and_its_share_passed_on(self) -> None:
        # rest 90 of 100: b could take 90 * 11/211 = 4.7 of 6, so nothing is capped yet; with 8 rows it is.
        assert allocate({"a": 200, "b": 8}, 100) == {"a": 92, "b": 8}

    def test_all_rows_when_there_are_too_few(self) -> None:
        assert allocate({"a": 60, "b": 20}, 150) == {"a": 60, "b": 20}

    @given(SIZES, st.integers(1, 500))
    def test_the_sizes_are_met_and_no_stratum_overdrawn(self, sizes: dict[str, int], asked: int) -> None:
        given_out = allocate(sizes, asked)
        assert sum(given_out.values()) == sample_size(sizes, asked)
        assert all(min(5, sizes[n]) <= given_out[n] <= sizes[n] for n in sizes)

    @given(SIZES, st.integers(1, 500))
    def test_shares_are_within_one_row_of_proportion(self, sizes: dict[str, int], asked: int) -> None:
        extra = {n: count - min(5, sizes[n]) for n, count in allocate(sizes, asked).items()}
        free = [n for n in sizes if extra[n] + min(5, sizes[n]) < sizes[n]]
        rest, total = sum(extra[n] for n in free), sum(sizes[n] for n in free)
        assert all(abs(extra[n] - Fraction(rest * sizes[n], total)) < 1 for n in free)

    @given(SIZES)
    def test_the_number_drawn_replays_the_draw(self, sizes: dict[str, int]) -> None:
        first = allocate(sizes, 150)
        assert allocate(sizes, sum(first.values())) == first


class TestDraw:
    STRATA = {"stance|MIXED": [f"{i:016x}" for i in range(300)], "stance|REFUSAL": ["f" * 16]}  # noqa: RUF012

    def test_the_smallest_hashes_are_picked(self) -> None:
        drawn = draw(self.STRATA, asked=100, seed=3)
        by_hash = sorted(self.STRATA["stance|MIXED"], key=lambda i: hashlib.sha256(f"3|{i}".encode()).hexdigest())
        assert list(drawn.picked["stance|MIXED"]) == by_hash[:99]
        assert drawn.picked["stance|REFUSAL"] == ("f" * 16,)

    def test_the_sizes_at_the_draw_are_kept(self) -> None:
        assert draw(self.STRATA, asked=100, seed=3).sizes == {"stance|MIXED": 300, "stance|REFUSAL": 1}

    def test_the_order_of_rows_and_strata_does_not_matter(self) -> None:
        turned = {name: ids[::-1] for name, ids in reversed(self.STRATA.items())}
        assert draw(turned, seed=3) == draw(self.STRATA, seed=3)

    def test_another_seed_picks_others(self) -> None:
        assert draw(self.STRATA, seed=3).ids != draw(self.STRATA, seed=4).ids

    def test_an_empty_stratum_is_none(self) -> None:
        assert draw({**self.STRATA, "regard|NEUTRAL": []}, seed=3) == draw(self.STRATA, seed=3)

    def test_nothing_to_draw_gives_nothing(self) -> None:
        assert draw({}, seed=3).ids == frozenset()


class TestAuditable:
    def test_scored_and_refused_rows_with_votes(self) -> None:
        rows = [("scored", 2), ("refused", 3), ("refused", 0), ("contested", 3), ("error", 2)]
        assert [auditable(*row) for row in rows] == [True, True, False, False, False]


class TestStratumName:
    def test_rubric_and_label(self) -> None:
        assert stratum_name("capability", "0-19") == "capability|0-19"
