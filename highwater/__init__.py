"""The one package that a wheel installs. ``jobs``, ``pipelines``, ``schemas``, ``conf`` and ``airflow_dags`` are its
folders there, so that no user's module of such a name meets ours; in a checkout they are beside it (`hatch_build.py`).

What others import from Python is `highwater.views`.
"""
