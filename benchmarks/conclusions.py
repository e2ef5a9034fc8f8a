"""Conclusions by simulation: what the defaults cover and how often they err, beside what they say.

python -m benchmarks.conclusions                     everything
python -m benchmarks.conclusions families            one part: means, families, letters, ratings, kappas, more,
                                                     outlook, tau, symmetric or calibration
python -m benchmarks.conclusions --repeats 10 tau    fewer simulations
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.graders import labels
from rubric_measures import Tests
from rubric_measures.analysis.agreement import LabelSource, compare_sources
from rubric_measures.analysis.calibration import Anchor, RunGrades, calibrated_runs
from rubric_measures.analysis.coefficients import (
    correlate_over_queries,
    drawn_over_queries,
    kendall_batch,
    noise_free_tau,
)
from rubric_measures.analysis.resampling import CORRECTIONS, Draws, mean_intervals, paired_family
from rubric_measures.analysis.significance import Comparison, compare_runs
from rubric_measures.games.tournaments import EloSettings, TournamentSettings, rate_games
from rubric_measures.types.entities import Preference

FloatArray = NDArray[np.float64]


def compared(table: FloatArray, smallest: float | None) -> Comparison:
    """All pairs of the columns of (queries, runs), with 500 sign flips."""
    scores = {
        f"r{run:02}": {f"q{query:04}": float(score) for query, score in enumerate(column)}
        for run, column in enumerate(table.T)
    }
    return compare_runs(scores, "m", tests=Tests(smallest=smallest, rounds=500))


def mean_coverage(simulations: int) -> None:
    """How often the interval of a mean holds the truth."""
    print(f"\nIntervals of means, nominal 95 %, {simulations} simulations\n")
    print("| queries | interval | symmetric scores, Beta(2, 2) | skewed scores, Beta(0.5, 2) |\n|---|---|---|---|")
    generator = np.random.default_rng(1)
    for queries in (5, 10, 24, 25, 50):
        hits, kind = [], ""
        for a, b in ((2.0, 2.0), (0.5, 2.0)):
            found = mean_intervals(generator.beta(a, b, size=(queries, simulations)), Draws(1000, 7))
            ends = np.array([(one.low, one.high) for one in found], dtype=float)
            hits.append(f"{np.mean((ends[:, 0] <= a / (a + b)) & (ends[:, 1] >= a / (a + b))):.3f}")
            kind = found[0].method
        print(f"| {queries} | {kind} | {' | '.join(hits)} |", flush=True)


def families(simulations: int) -> None:
    """How often any pair of equal runs is told apart, and how often all intervals of a board hold their truths."""
    print(f"\nAll 28 pairs of 8 runs, nominal 5 % and 95 %, {simulations} simulations, 1,000 flips\n")
    print("| queries | noise | correction | equal runs, any pair told apart | steps of 0.02: all intervals hold | "
          "width of them |\n|---|---|---|---|---|---|")  # fmt: skip
    generator = np.random.default_rng(2)
    first, second = np.triu_indices(8, 1)
    steps = 0.02 * np.arange(8)
    gaps = steps[first] - steps[second]
    for queries in (10, 25, 50):
        for noise, draw in (("normal", generator.standard_normal),
                            ("Student's t, 3 degrees", lambda size: generator.standard_t(3, size))):  # fmt: skip
            told, held, width = np.zeros((3, len(CORRECTIONS)))
            for seed in range(simulations):
                table = 0.1 * draw((queries, 8))
                pairs = table[:, first] - table[:, second]
                for place, correction in enumerate(CORRECTIONS):
                    told[place] += paired_family(pairs, correction, rounds=1000, seed=seed).different.any()
                    found = paired_family(pairs + gaps, correction, rounds=1000, seed=seed)
                    held[place] += ((found.low <= gaps) & (gaps <= found.high)).all()
                    width[place] += (found.high - found.low).mean()
            for place, correction in enumerate(CORRECTIONS):
                shares = f"{told[place] / simulations:.3f} | {held[place] / simulations:.3f}"
                print(
                    f"| {queries} | {noise} | {correction} | {shares} | {width[place] / simulations:.3f} |", flush=True
                )


def letters(simulations: int) -> None:
    """How often some pair of equal agents is told apart by the letters of a tournament."""
    print(f"\nTournaments of equal agents, nominal 5 %, {simulations} simulations, 300 rounds\n")
    print("| agents | queries | any pair told apart |\n|---|---|---|")
    generator = np.random.default_rng(3)
    settings = TournamentSettings(draws=Draws(300), elo=EloSettings(replays=1))
    for agents, queries in ((5, 25), (10, 50), (15, 50), (5, 100)):
        told = 0
        for _ in range(simulations):
            skill = generator.normal(size=(queries, agents))
            games = [
                Preference(f"q{query:03}", f"a{one}", f"a{other}", "a" if row[one] > row[other] else "b", "graded")
                for query, row in enumerate(skill) for one in range(agents) for other in range(one)
            ]  # fmt: skip
            told += max(map(len, rate_games(games, settings).groups), default=1) < agents
        print(f"| {agents} | {queries} | {told / simulations:.3f} |", flush=True)


def ratings(simulations: int) -> None:
    """How often all intervals of differences hold at once, and what intervals for comparing agents show."""
    print(f"\nDifferences of ratings, nominal 95 %, {simulations} simulations, 300 rounds, all pairs in both orders\n")
    print("| agents | queries | all differences held | pairs told apart | of these, intervals do not overlap | "
          "not told apart and no overlap |\n|---|---|---|---|---|---|")  # fmt: skip
    generator = np.random.default_rng(7)
    settings = TournamentSettings(draws=Draws(300), elo=EloSettings(replays=1))
    for agents, queries in ((5, 10), (5, 25), (5, 50), (10, 50), (18, 12)):
        strengths = np.linspace(-0.8, 0.8, agents)
        truth = {f"a{place:02}": 400 / np.log(10) * value for place, value in enumerate(strengths)}
        chances = 1 / (1 + np.exp(strengths - strengths[:, None]))
        held, counts = 0, np.zeros((2, 2))
        for _ in range(simulations):
            games = [
                Preference(f"q{query:03}", one, other, "a" if won else "b", "graded")
                for query, table in enumerate(generator.random((queries, agents, agents)) < chances)
                for (one, other), won in zip(product(truth, repeat=2), table.ravel(), strict=True) if one != other
            ]  # fmt: skip
            found = rate_games(games, settings)
            ends = {one.agent: (one.low or -np.inf, one.high or np.inf) for one in found.ratings}
            hits = []
            for pair in found.differences:
                low, high = pair.low or -np.inf, pair.high or np.inf
                hits.append(low <= truth[pair.first] - truth[pair.second] <= high)
                counts[int(low > 0), int(ends[pair.second][1] < ends[pair.first][0])] += 1
            held += all(hits)
        apart = counts[1].sum()
        shares = f"{held / simulations:.3f} | {apart / counts.sum():.2f} | {counts[1, 1] / apart:.2f}"
        print(f"| {agents} | {queries} | {shares} | {counts[0, 1]:.0f} |", flush=True)


def kappas(simulations: int) -> None:
    """How often the interval of a judge's κ holds the true one."""
    print(f"\nIntervals of κ, nominal 95 %, {simulations} simulations, 500 rounds, 20 documents a query\n")
    print("| queries | κ .3 | κ .6 | κ .8 |\n|---|---|---|---|")
    for queries in (10, 25, 50, 100):
        skills, held = [0.3, 0.6, 0.8], np.zeros(3)
        for seed in range(simulations):
            truth, *judges = [
                LabelSource(str(place), {(f"q{q:03}", str(i)): label for q, row in enumerate(source)
                                   for i, label in enumerate(row)})
                for place, source in enumerate(labels(np.random.default_rng(seed), queries, 20, skills))
            ]  # fmt: skip
            for row in compare_sources([truth, *judges], [(2, 2)], scale=range(4), draws=Draws(500, seed)).rows:
                one, place = row.statistics["kappa"], int(row.name) - 1
                if one.low is not None and one.high is not None:
                    held[place] += one.low <= skills[place] <= one.high
        print(f"| {queries} | {' | '.join(f'{share:.3f}' for share in held / simulations)} |", flush=True)


def more_queries(simulations: int) -> None:
    """How often two runs are decided by the queries that a pilot asks for."""
    print(f"\nTwo runs with the queries that a pilot asked for, power 0.8, {simulations} pilots of 50 queries\n")
    print("| true difference | undecided pilots | median of queries asked for | decided by them | by `at most` |")
    print("|---|---|---|---|---|")
    generator = np.random.default_rng(4)
    for gap in (0.0, 0.01, 0.02, 0.04):
        asked, decided, surely, open_pilots = [], 0, 0, 0
        for _ in range(simulations):
            pair = compared(np.array([gap, 0.0]) + 0.1 * generator.normal(size=(50, 2)), 0.02).pairs[0]
            if pair.more_queries is None or pair.at_most is None:
                continue
            open_pilots += 1
            asked.append(50 + pair.more_queries)
            for more, place in ((pair.more_queries, 0), (pair.at_most, 1)):
                again = compared(np.array([gap, 0.0]) + 0.1 * generator.normal(size=(50 + more, 2)), 0.02).pairs[0]
                is_decided = again.conclusion != "undecided"
                decided, surely = decided + is_decided * (place == 0), surely + is_decided * (place == 1)
        share, count = open_pilots / simulations, max(open_pilots, 1)
        print(f"| {gap} | {share:.2f} | {np.median(asked or [0]):.0f} | {decided / count:.2f} | {surely / count:.2f} |",
              flush=True)  # fmt: skip


def outlooks(simulations: int) -> None:
    """The share of pairs that N queries are expected to separate, against what N other queries separate."""
    print(f"\nPairs that N queries separate, said by a board of 50 queries, {simulations} simulations\n")
    print("| runs | spread of runs / noise | runs are | N | expected share | true share |\n|---|---|---|---|---|---|")
    generator = np.random.default_rng(2)
    for runs, spread, shape in (
        (10, 0.1, "normal"),
        (30, 0.1, "normal"),
        (30, 0.05, "normal"),
        (30, 0.1, "two groups"),
    ):
        said: dict[int, list[float]] = {}
        real: dict[int, list[float]] = {}
        for _ in range(simulations):
            means = spread * (generator.normal(size=runs) if shape == "normal" else
                              np.repeat([-1.0, 1.0], runs // 2) + 0.2 * generator.normal(size=runs))  # fmt: skip
            found = compared(means + 0.2 * generator.normal(size=(50, runs)), 0.02)
            assert found.outlook is not None
            rows = [(50, found.outlook.expected), *((n, share) for share, n in found.outlook.needed[:2])]
            for place, (n, share) in enumerate(rows):
                if n is None or share is None or n > 3000:
                    continue
                again = compared(means + 0.2 * generator.normal(size=(n, runs)), None)
                said.setdefault(place, []).append(share)
                real.setdefault(place, []).append(sum(pair.significant for pair in again.pairs) / len(again.pairs))
        for place, name in enumerate(("50", "for 50 %", "for 75 %")):
            if place in said:
                print(f"| {runs} | {spread} / 0.2 | {shape} | {name} | {np.mean(said[place]):.3f} | "
                      f"{np.mean(real[place]):.3f} |", flush=True)  # fmt: skip


def tau_without_noise(simulations: int) -> None:
    """τ of the observed means and the expected τ without noise, against the true one; coverage of its interval."""
    print(f"\nτ without noise, nominal 95 %, {simulations} simulations, 1,000 draws\n")
    print("| runs | queries | spread of runs / noise of a query | noise of both sides correlates | runs are | true τ | "
          "observed | expected | error of observed | of expected | coverage | not given | "
          "coverage of the symmetric interval | not given |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    generator = np.random.default_rng(3)
    for runs, queries, spread, noise, shared, shape in (
        (10, 50, 0.1, 0.1, 0.0, "normal"),
        (30, 50, 0.1, 0.2, 0.0, "normal"),
        (30, 50, 0.1, 0.2, 0.7, "normal"),
        (58, 54, 0.05, 0.2, 0.3, "normal"),
        (30, 50, 0.03, 0.2, 0.0, "normal"),
        (10, 25, 0.1, 0.2, 0.3, "normal"),
        (30, 50, 0.1, 0.2, 0.3, "uniform"),
        (30, 50, 0.1, 0.2, 0.3, "two groups"),
        (30, 50, 0.1, 0.2, 0.3, "families of 5 that err alike"),
    ):
        rows, lost, symmetric = [], 0, []
        for seed in range(simulations):
            if shape == "uniform":
                x = generator.uniform(-1.7, 1.7, runs)
            elif shape == "two groups":
                x = np.repeat([-1.0, 1.0], runs // 2) + 0.3 * generator.normal(size=runs)
            else:
                x = generator.normal(size=runs)
            y = 0.9 * x + np.sqrt(1 - 0.81) * generator.normal(size=runs)
            e, f = generator.normal(size=(2, queries, runs))
            if shape.startswith("families"):
                alike = np.repeat(generator.normal(size=(2, queries, runs // 5)), 5, axis=2)
                e, f = 0.7 * alike + np.sqrt(1 - 0.49) * np.stack([e, f])
            f = shared * e + np.sqrt(1 - shared**2) * f
            hard = generator.normal(0, 0.2, (queries, 1))
            truth = float(kendall_batch(x[None], y[None])[0])
            sides = spread * x + noise * e + hard, spread * y + noise * f + hard
            found = noise_free_tau(*sides, Draws(1000, seed))
            one = correlate_over_queries(*sides, "kendall", Draws(200, seed))
            if one.interval is not None and one.interval.low is not None and one.interval.high is not None:
                symmetric.append(one.interval.low <= truth <= one.interval.high)
            observed = float(kendall_batch(*(one.mean(axis=0)[None] for one in sides))[0])
            if found.estimate is None or found.low is None or found.high is None:
                lost += 1
                continue
            rows.append([truth, observed, found.estimate, found.low <= truth <= found.high])
        table = np.array(rows or [[np.nan] * 4])
        errors = np.sqrt(((table[:, 1:3] - table[:, :1]) ** 2).mean(axis=0))
        means = " | ".join(f"{mean:.2f}" for mean in table[:, :3].mean(axis=0))
        print(f"| {runs} | {queries} | {spread} / {noise} | {shared} | {shape} | {means} | {errors[0]:.2f} | "
              f"{errors[1]:.2f} | {table[:, 3].mean():.3f} | {lost} | {np.mean(symmetric or [np.nan]):.3f} | "
              f"{simulations - len(symmetric)} |", flush=True)  # fmt: skip


def symmetric_intervals(simulations: int) -> None:
    """How often the symmetric interval of τ holds the τ of noise-free means, by how reliable the means are."""
    print(f"\nSymmetric intervals of τ, nominal 95 %, {simulations} simulations, 200 rounds\n")
    reliabilities = (0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97)
    print(f"| runs | queries | reliability {' | '.join(map(str, reliabilities))} |")
    print(f"|---|---|{'---|' * len(reliabilities)}")
    generator = np.random.default_rng(3)
    for runs in (10, 30, 63):
        for queries in (25, 53):
            shares = []
            for reliability in reliabilities:
                spread, hits = np.sqrt(reliability / (1 - reliability) / queries), 0
                for seed in range(simulations):
                    x = generator.normal(size=runs)
                    y = 0.9 * x + np.sqrt(1 - 0.81) * generator.normal(size=runs)
                    e, f = generator.normal(size=(2, queries, runs))
                    f = 0.3 * e + np.sqrt(1 - 0.09) * f
                    hard = generator.normal(size=(queries, 1))
                    truth = float(kendall_batch(x[None], y[None])[0])
                    sides = spread * x + e + hard, spread * y + f + hard
                    found = drawn_over_queries(sides[0], sides[1], "kendall", Draws(200, seed))[1]
                    (one,) = found.intervals("symmetric", (-1, 1))
                    hits += one.low is not None and one.high is not None and one.low <= truth <= one.high
                shares.append(f"{hits / simulations:.2f}")
            print(f"| {runs} | {queries} | {' | '.join(shares)} |", flush=True)


def calibrations(simulations: int) -> None:
    """How often calibrated scores of five runs hold the truth, and how far they are off."""
    print(f"\nCalibrated scores, nominal 95 %, {simulations} simulations: 60 queries, 10 items, TPR .75, FPR .15\n")
    print("| anchors | runs differ by | coverage: worst run | middle run | best run | bias: worst | best | "
          "width | raw bias: worst | best |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    generator = np.random.default_rng(6)
    # Grades 0 1 3 5 (3 covers) of what is not covered, and of what is.
    chances = np.array([[0.65, 0.2, 0.1, 0.05], [0.1, 0.15, 0.3, 0.45]]).cumsum(axis=1)
    levels = np.array([0.0, 1.0, 3.0, 5.0])
    for per_query, spread in ((5, 0.0), (5, 0.1), (2, 0.1)):
        quality = 0.5 + spread * np.array([-1.5, -0.5, 0.0, 0.5, 1.5])
        rows: list[list[list[float]]] = []
        for seed in range(simulations):
            anchors: list[Anchor] = []
            answers: list[RunGrades] = []
            for query in range(60):
                # Queries differ in how hard they are; the mean over them is the quality.
                hard = generator.uniform(-0.25, 0.25)
                covered = (generator.random((5, 10)) < (quality + hard)[:, None]).astype(int)
                grades = levels[(generator.random((5, 10, 1)) > chances[covered]).sum(axis=2).clip(max=3)]
                answers += [RunGrades(f"r{run}", f"q{query:02}", tuple(row)) for run, row in enumerate(grades)]
                for place in generator.choice(50, per_query, replace=False):
                    truth = 5.0 * covered.flat[place]
                    anchors.append(Anchor(f"q{query:02}", "question", float(grades.flat[place]), float(truth)))
            runs = sorted(calibrated_runs(anchors, answers, 3, Draws(400, seed)))
            rows.append([
                [float(one.interval.low <= true <= one.interval.high), one.interval.estimate - true,
                 one.interval.high - one.interval.low, one.raw - true]
                for one, true in zip(runs, quality, strict=True)
                if one.interval.low is not None and one.interval.high is not None
                and one.interval.estimate is not None
            ])  # fmt: skip
        hits, bias, width, raw = np.mean(rows, axis=0).T
        numbers = (hits[0], hits[2], hits[4], bias[0], bias[4], width.mean(), raw[0], raw[4])
        shown = " | ".join(f"{one:.3f}" for one in numbers)
        print(f"| {60 * per_query} | {spread} | {shown} |", flush=True)


PARTS = {
    "means": mean_coverage,
    "families": families,
    "letters": letters,
    "ratings": ratings,
    "kappas": kappas,
    "more": more_queries,
    "outlook": outlooks,
    "tau": tau_without_noise,
    "symmetric": symmetric_intervals,
    "calibration": calibrations,
}


def main() -> None:
    """Runs the parts that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], default=[])
    parser.add_argument("--repeats", type=int, default=1000, help="simulations (default 1000)")
    options = parser.parse_args()
    for name in options.parts or PARTS:
        PARTS[name](options.repeats)


if __name__ == "__main__":
    main()
