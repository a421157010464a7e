"""Extensions of LocalStack 4.14.0 for Sortie. They replace private methods of exactly this release.

The parent folder goes on PYTHONPATH; the dist-info folder beside this one has the entry points.
"""
