"""The choice among the files of a version for one client, and the reasons for it."""
