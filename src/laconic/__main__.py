"""``python -m laconic``: the command line, where the installed ``laconic`` is not on the path."""

from laconic.cli import main

if __name__ == "__main__":
    main()
