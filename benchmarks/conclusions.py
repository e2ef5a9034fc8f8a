"""Conclusions by simulation: errors of verdicts, queries that they ask for, τ without noise, power of designs.

python -m benchmarks.conclusions            everything
python -m benchmarks.conclusions tau        one part: verdicts, outlook, tau, pick, calibration
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from rubric_measures.analysis.calibration import Anchor, RunGrades, calibrated_runs
from rubric_measures.analysis.comparison import Comparison, compare_runs
from rubric_measures.analysis.correlation import kendall_batch, noise_free_tau
from rubric_measures.analysis.leaderboards import GridCell, RunScores, correlate_leaderboards, pick_of_grid
from rubric_measures.analysis.resampling import Draws

FloatArray = NDArray[np.float64]


def compared(table: FloatArray, smallest: float | None) -> Comparison:
    """All pairs of the columns of (queries, runs), with verdicts where δ is given."""
    scores = {
        f"r{run:02}": {f"q{query:04}": float(score) for query, score in enumerate(column)}
        for run, column in enumerate(table.T)
    }
    return compare_runs(scores, "m", smallest=smallest, rounds=1)


def verdict_errors(simulations: int = 300) -> None:
    """How often any pair of a board gets a false verdict, and how often two runs are decided by the queries said."""
    print(f"\nFalse verdicts on boards of 8 runs, δ = 0.02, nominal 5 %, {simulations} simulations\n")
    print("| queries | truth | any false better or worse | any false same |\n|---|---|---|---|")
    generator = np.random.default_rng(1)
    for queries in (25, 50, 400):
        for name, means in (("all equal", np.zeros(8)), ("steps of δ", 0.02 * np.arange(8)),
                            ("two groups, δ apart", np.repeat([0.0, 0.02], 4))):  # fmt: skip
            wrong = np.zeros(2)
            for _ in range(simulations):
                table = means + 0.1 * generator.standard_t(6, (queries, 8)) + generator.normal(0, 0.2, (queries, 1))
                found = compared(table, 0.02)
                gaps = [means[int(pair.first[1:])] - means[int(pair.second[1:])] for pair in found.pairs]
                said = [(pair.significant, pair.test.mean_difference, pair.verdict) for pair in found.pairs]
                wrong += [
                    any(real and gap * mean <= 0 for (real, mean, _), gap in zip(said, gaps, strict=True)),
                    any(v is not None and v.within and abs(gap) >= 0.02 - 1e-12
                        for (*_, v), gap in zip(said, gaps, strict=True)),
                ]  # fmt: skip
            shares = " | ".join(f"{share:.3f}" for share in wrong / simulations)
            print(f"| {queries} | {name} | {shares} |", flush=True)
    print(f"\nTwo runs with the queries that a pilot asked for, power 0.8, {simulations} pilots of 50 queries\n")
    print("| true difference | undecided pilots | median of queries asked for | decided by them | by `at most` |")
    print("|---|---|---|---|---|")
    for gap in (0.0, 0.01, 0.02, 0.04):
        asked, decided, surely, open_pilots = [], 0, 0, 0
        for _ in range(simulations):
            pair = compared(np.array([gap, 0.0]) + 0.1 * generator.normal(size=(50, 2)), 0.02).pairs[0]
            verdict = pair.verdict
            if verdict is None or verdict.more_queries is None or verdict.at_most is None:
                continue
            open_pilots += 1
            asked.append(50 + verdict.more_queries)
            for more, place in ((verdict.more_queries, 0), (verdict.at_most, 1)):
                again = compared(np.array([gap, 0.0]) + 0.1 * generator.normal(size=(50 + more, 2)), 0.02).pairs[0]
                is_decided = again.verdict is not None and again.verdict.conclusion != "undecided"
                decided, surely = decided + is_decided * (place == 0), surely + is_decided * (place == 1)
        share = open_pilots / simulations
        print(f"| {gap} | {share:.2f} | {np.median(asked):.0f} | {decided / open_pilots:.2f} | "
              f"{surely / open_pilots:.2f} |", flush=True)  # fmt: skip


def outlooks(simulations: int = 60) -> None:
    """The share of pairs that N queries are expected to separate, against what N other queries separate."""
    print(f"\nPairs that N queries separate (Holm), said by a board of 50 queries, {simulations} simulations\n")
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


def tau_without_noise(simulations: int = 300) -> None:
    """τ of the observed means and the expected τ without noise, against the true one; coverage of its interval."""
    print(f"\nτ without noise, nominal 95 %, {simulations} simulations, 1,000 draws\n")
    print("| runs | queries | spread of runs / noise of a query | noise of both sides correlates | runs are | true τ | "
          "observed | expected | error of observed | of expected | coverage | not given |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
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
        rows, lost = [], 0
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
            found = noise_free_tau(spread * x + noise * e + hard, spread * y + noise * f + hard, Draws(1000, seed))
            if found.expected is None or found.low is None or found.high is None or found.observed is None:
                lost += 1
                continue
            rows.append([truth, found.observed, found.expected, found.low <= truth <= found.high])
        table = np.array(rows)
        errors = np.sqrt(((table[:, 1:3] - table[:, :1]) ** 2).mean(axis=0))
        means = " | ".join(f"{mean:.2f}" for mean in table[:, :3].mean(axis=0))
        print(f"| {runs} | {queries} | {spread} / {noise} | {shared} | {shape} | {means} | {errors[0]:.2f} | "
              f"{errors[1]:.2f} | {table[:, 3].mean():.3f} | {lost} |", flush=True)  # fmt: skip


def picks(simulations: int = 60) -> None:
    """What the best cell of a grid has on its own queries and on others, against its τ without noise."""
    print(f"\nThe best of a grid of 20 cells by τ, 20 runs, 50 queries, {simulations} simulations\n")
    print("| noise of a query | best on all queries | the same, without noise | flattery said, of 25 queries |")
    print("|---|---|---|---|")
    generator = np.random.default_rng(4)
    for noise in (0.1, 0.3, 1.0):
        rows = []
        for _ in range(simulations):
            quality = generator.normal(size=20)
            official = RunScores("official", {f"r{i:02}": float(one) for i, one in enumerate(quality)})
            cells, truths = [], []
            for name in range(20):
                true = 0.8 * quality + 0.6 * generator.normal(size=20)
                truths.append(float(kendall_batch(quality[None], true[None])[0]))
                table = 0.1 * true + noise * generator.normal(size=(50, 20))
                by_run = {f"r{i:02}": {f"q{q}": float(s) for q, s in enumerate(c)} for i, c in enumerate(table.T)}
                means = {run: float(np.mean(list(values.values()))) for run, values in by_run.items()}
                scores = RunScores(str(name), means, by_run)
                found = correlate_leaderboards(official, scores, ["kendall"], Draws(0), details=False)
                cells.append(GridCell("m", "p", "question", str(name), found, scores=scores))
            values = [cell.result.value("kendall") or 0.0 for cell in cells if cell.result is not None]
            best = int(np.argmax(values))
            rows.append([values[best], truths[best], pick_of_grid(official, cells, "kendall").flattery or 0.0])
        print(f"| {noise} | " + " | ".join(f"{mean:.2f}" for mean in np.mean(rows, axis=0)) + " |", flush=True)


def calibrations(simulations: int = 150) -> None:
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


def main() -> None:
    """Runs the parts that are named."""
    parts = {
        "verdicts": verdict_errors,
        "outlook": outlooks,
        "tau": tau_without_noise,
        "pick": picks,
        "calibration": calibrations,
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *parts], default=[])
    for name in parser.parse_args().parts or parts:
        parts[name]()


if __name__ == "__main__":
    main()
