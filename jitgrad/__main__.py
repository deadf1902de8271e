"""``python -m jitgrad`` is the command ``jitgrad``."""

from jitgrad.cli import main

if __name__ == "__main__":
    main()
