"""`python -m unfooled`, for where the `unfooled` script is not on the path."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # `-m` puts the folder that one stands in before all others: any file there could pose as a library.
        del sys.path[0]

    from unfooled.cli.app import main

    main()
