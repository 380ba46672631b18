"""The one package that touches files of logs, lakes and reports: on local disks and in object stores."""
