"""The command: ``highwater``, ``python -m highwater``, and the file that spark-submit is given."""

from highwater.jobs.cli import main

if __name__ == "__main__":
    main()
