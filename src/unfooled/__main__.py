"""`python -m unfooled`, for where the `unfooled` script is not on the path."""

from unfooled.cli.app import main

main()
