"""These tests need PyTorch (extra ``torch``); where it is missing they are not collected."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]
