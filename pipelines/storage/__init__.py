"""The one package that touches files of logs, lakes and reports: on local disks and in object stores.

Imports `base`. Begin to read with `place` and `store`.
"""
