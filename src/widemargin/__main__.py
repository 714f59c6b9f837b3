"""``python -m widemargin`` is the command ``widemargin``."""

from widemargin.cli.app import main

if __name__ == "__main__":
    main()
