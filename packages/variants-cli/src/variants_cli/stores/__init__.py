"""Places that hold the files of an index: directories, object storage, releases on GitHub.

A `store.Store` keeps objects under paths and can replace one only if it is still the version that
was read. Stores know nothing about indexes; `publishing.storage_target` does.
"""
