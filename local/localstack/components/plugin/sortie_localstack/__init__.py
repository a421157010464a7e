"""What LocalStack 4.14.0 lacks for Sortie. It replaces private methods of that very release.

This folder is put on PYTHONPATH as it is: the entry points stand in the dist-info folder beside it.
"""
