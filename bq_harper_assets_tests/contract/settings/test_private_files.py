"""What holds rows of tables is its owner's alone."""

from pathlib import Path

from bq_harper_assets.contract.settings.private_files import (
    make_private_file,
    make_private_folder,
    tighten_file,
)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_files_and_folders_are_made_private_and_those_that_are_not_are_tightened(
    tmp_path: Path,
) -> None:
    folder, file = tmp_path / "a" / "b", tmp_path / "file"
    for _ in range(2):
        make_private_folder(folder)
        make_private_file(file)
        assert (mode(folder), mode(file)) == (0o700, 0o600)
        folder.chmod(0o755)
        file.chmod(0o644)
        file.write_text("kept", encoding="utf-8")
    make_private_file(file)
    assert file.read_text(encoding="utf-8") == "kept"


def test_a_file_that_is_there_is_tightened_and_none_is_made(tmp_path: Path) -> None:
    file, missing = tmp_path / "file", tmp_path / "missing"
    for bits in (0o604, 0o640, 0o777):
        file.touch()
        file.chmod(bits)
        tighten_file(file)
        assert mode(file) == 0o600
    file.chmod(0o400)
    tighten_file(file)
    assert mode(file) == 0o400  # nobody else could read it anyway
    tighten_file(missing)
    assert not missing.exists()
