"""`python -m eclose` is the command line."""

from eclose.cli import main

if __name__ == "__main__":
    main()
