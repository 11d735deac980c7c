from pathlib import Path

from config.settings import Settings


def test_the_home_folder_in_a_data_directory_is_expanded(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    given = Settings(data_dir=Path("~/presage"))
    assert given.data_folder == tmp_path / "presage"
    assert given.exports_folder == tmp_path / "presage" / "exports"
