"""``python -m jitgrad`` is the command ``jitgrad``."""

from jitgrad.cli.commands import main

if __name__ == "__main__":
    main()
