"""Study files: what is read, what is written out, and what a bad one is told."""

import re
from pathlib import Path

import pytest

from coterie.errors import SettingError
from coterie.problems import WorldSettings
from coterie.runs.studies import find_study, studies_folder
from coterie.runs.study import line_of, read_study, study_from

GOOD = """\
title = "A study"
trials = 3

[learners]
lengthscale = 1.0
lambda_base = 0.01

[tuning]
trials = 2
width = [1.0, 2.0]

[[worlds]]
name = "small"
level = "easy"
noise_std = 0.2

[[worlds]]
name = "large"
n_users = 50
tuned_on = "small"

[[policies]]
policy = "lk-gp-ucb"

[[policies]]
policy = "gob-lin"
width = 2.0
worlds = ["small"]

[[policies]]
policy = "random"

[[policies]]
policy = "per-user-linucb"
"""


def read(tmp_path: Path, text: str) -> object:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return read_study(path)


def test_a_file_is_read_with_its_defaults(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD, encoding="utf-8")
    study = read_study(tmp_path / "mine.toml")
    assert (study.name, study.trials, study.reference) == ("mine", 3, "lk-gp-ucb")
    settings = study.world("small").settings
    assert isinstance(settings, WorldSettings)
    assert (settings.horizon, settings.noise_std) == (1000, 0.2)
    assert [each.label for each in study.playing("large")] == ["lk-gp-ucb", "random", "per-user-linucb"]
    options = study.policies[0].options
    assert (options["lengthscale"], options["lambda_base"], options["laplacian_ridge"]) == (1.0, 0.01, 0.1)
    assert "noise_var" not in options
    assert study.policies[1].options["laplacian_ridge"] == 1.0


def test_grids_are_those_of_the_options_a_policy_has(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD, encoding="utf-8")
    study = read_study(tmp_path / "mine.toml")
    grids = study.grids("small")
    assert len(grids["lk-gp-ucb"]) == 2 * 5
    assert "gob-lin" not in grids  # its width is given
    assert grids["per-user-linucb"] == [{"width": 1.0}, {"width": 2.0}]
    assert "random" not in grids
    assert study.grids("large") == {}


@pytest.mark.parametrize("path", sorted(studies_folder().glob("*.toml")), ids=lambda path: path.stem)
def test_the_studies_that_come_with_us_survive_being_written_out(path: Path) -> None:
    study = read_study(path)
    assert study_from(study.as_dict()) == study
    quick = study.changed(quick=True)
    assert study_from(quick.as_dict()) == quick


def test_the_demonstration_tells_every_policy_the_same() -> None:
    study = find_study("demo")
    told = {each.options["noise_var"] for each in study.policies if "noise_var" in each.options}
    true = {each.settings.noise_std**2 for each in study.worlds if isinstance(each.settings, WorldSettings)}
    assert told == true
    assert study.tuning is None
    assert {key for each in study.policies for key in each.fixed} == set()


def test_a_noise_variance_for_all_is_that_of_every_policy_without_one_of_its_own() -> None:
    policies = [{"policy": "gob-lin"}, {"policy": "lk-gp-ts", "noise_var": 0.5}, {"policy": "auto-ucb"}]
    scheduled = {"policy": "gp-ucb", "lambda_base": 0.01}
    given = {"learners": {"noise_var": 0.09}, "worlds": [{}], "policies": [*policies, scheduled]}
    study = study_from(given)
    assert [each.options.get("noise_var") for each in study.policies] == [0.09, 0.5, None, None]
    with pytest.raises(SettingError, match="both noise_var and lambda_base"):
        study_from({**given, "learners": {"noise_var": 0.09, "lambda_base": 0.01}})


@pytest.mark.parametrize(
    ("old", "new", "wrong", "told"),
    [
        ('policy = "gob-lin"', 'policy = "gob-line"', 'policy = "gob-line"', "Did you mean 'gob-lin'"),
        ("width = 2.0\nworlds", "widht = 2.0\nworlds", "widht = 2.0", "Did you mean 'width'"),
        ('title = "A study"', 'titel = "A study"', 'titel = "A study"', "Did you mean 'title'"),
        ("trials = 3", 'trials = "three"', 'trials = "three"', "whole number of at least 1"),
        ("trials = 3", "trials = 0", "trials = 0", "whole number of at least 1"),
        ("noise_std = 0.2", "horizon = 0", "horizon = 0", "whole number of at least 1"),
        ("noise_std = 0.2", "n_candidates = 11", "n_candidates = 11", "at most n_arms, which is 10"),
        ("noise_std = 0.2", "noise_sdt = 0.2", "noise_sdt = 0.2", "Did you mean 'noise_std'"),
        ("noise_std = 0.2", 'noise_std = "much"', 'noise_std = "much"', "noise_std is 'much'"),
        ('level = "easy"', 'level = "eazy"', 'level = "eazy"', "Did you mean 'easy'"),
        ('tuned_on = "small"', 'tuned_on = "smal"', 'tuned_on = "smal"', "Did you mean 'small'"),
        ('worlds = ["small"]', 'worlds = ["smal"]', 'worlds = ["smal"]', "Did you mean 'small'"),
        ('name = "large"', 'name = "small"', 'name = "small"', "given twice"),
        ('name = "large"', 'name = "../large"', 'name = "../large"', "letters, digits"),
        ("width = [1.0, 2.0]", "width = [1.0, -2.0]", "width = [1.0, -2.0]", "list of numbers > 0"),
        ("lengthscale = 1.0", "lengthscal = 1.0", "lengthscal = 1.0", "Did you mean 'lengthscale'"),
        ("lengthscale = 1.0", "lengthscale = 0", "lengthscale = 0", "number > 0 or 'median'"),
        ('policy = "random"', 'policy = "random"\nlabel = "gob-lin"', 'label = "gob-lin"', "given twice"),
        ('policy = "random"', 'policy = "random"\nwidth = 1.0', "width = 1.0", "'random' has"),
        (
            'policy = "random"',
            'policy = "random"\ngraph = "permutated"',
            'graph = "permutated"',
            "Did you mean 'permuted'",
        ),
        ("width = 2.0\nworlds", "tune = { share = [0.1] }\nworlds", "tune = { share = [0.1] }", "tune has 'share'"),
        ("width = 2.0\nworlds", 'engine = "fast"\nworlds', 'engine = "fast"', "engines are"),
        ("width = 2.0\nworlds", "noise_var = 0\nworlds", "noise_var = 0", "finite number > 0"),
        ("width = 2.0\nworlds", "laplacian_ridge = 0.0\nworlds", "laplacian_ridge = 0.0", "laplacian_ridge"),
        ('policy = "random"', 'policy = "epsilon-greedy"\nwidth = 3', "width = 3", "probability"),
        ('policy = "random"', 'policy = "coop-kernel-ucb"\nsimilarity = "heats"', 'similarity = "heats"', "'heat'"),
        ('policy = "random"', 'policy = "lk-gp-ts"\nsampling = "jointly"', 'sampling = "jointly"', "'joint'"),
        ('policy = "random"', 'policy = "lk-gp-ts"\ntune = { engine = ["no"] }', 'tune = { engine = ["no"] }', "'no'"),
        ('policy = "random"', 'policy = "no_module:f"', 'policy = "no_module:f"', "cannot be found"),
    ],
)
def test_a_bad_file_is_told_the_line_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, wrong: str, told: str
) -> None:
    assert GOOD.count(old) >= 1
    text = GOOD.replace(old, new, 1)
    lines = [number for number, line in enumerate(text.splitlines(), start=1) if line == wrong]
    with pytest.raises(SettingError) as caught:
        read(tmp_path, text)
    assert any(str(caught.value).startswith(f"mine.toml, line {line}: ") for line in lines[-1:]), str(caught.value)
    assert told in str(caught.value)


def test_a_policy_without_a_name_is_told_its_table(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"mine\.toml, line 25: policy missing; policies are"):
        read(tmp_path, GOOD.replace('policy = "gob-lin"\n', "", 1))


def test_a_file_that_is_no_toml_is_told_its_line(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"mine\.toml is not TOML: .*line 2"):
        read(tmp_path, 'title = "x"\ntrials = = 3\n')


def test_missing_tables_and_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"worlds is missing; .* Write \[\[worlds\]\]"):
        read(tmp_path, "trials = 1\n")
    with pytest.raises(SettingError, match="cannot be read"):
        read_study(tmp_path / "nowhere.toml")
    with pytest.raises(LookupError, match="Did you mean 'gp-draw'"):
        find_study("gp-drawn")


def test_lines_of_keys_in_tables_and_arrays() -> None:
    text = 'a = 1\n[b]\nc = 2\n[[d]]\ne = 3\n[[d]]\n"e" = 4\n[b.f]\ng = 5\n'
    assert line_of(text, ("a",)) == 1
    assert line_of(text, ("b", "c")) == 3
    assert line_of(text, ("d", 1, "e")) == 7
    assert line_of(text, ("d", 0, "missing")) == 4
    assert line_of(text, ("b", "f", "g")) == 9
    assert line_of(text, ("nowhere",)) is None


def test_quick_keeps_the_policies_and_the_worlds(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD, encoding="utf-8")
    study = read_study(tmp_path / "mine.toml")
    quick = study.changed(quick=True, trials=1)
    assert [each.label for each in quick.policies] == [each.label for each in study.policies]
    assert quick.trials == 1
    assert all(each.settings.horizon < 1000 for each in quick.worlds)


def test_the_documented_keys_are_the_keys() -> None:
    text = (Path(__file__).parents[3] / "docs" / "studies.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`([a-z_]+)`", text))
    study = study_from({"worlds": [{}], "policies": [{"policy": "lk-gp-ucb"}]}).as_dict()
    assert set(study["worlds"][0]) <= documented
    assert set(study["policies"][0]) <= documented | {"fixed"}
