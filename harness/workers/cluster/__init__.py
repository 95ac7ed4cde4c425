"""One campaign on many machines: cases go to the nodes of a Dask cluster and come back as results.

Dask (``dask.distributed``) starts nothing for armdiff and keeps nothing: it carries bytes to a named node and says
who is there. Whoever has a cluster has one; else ``dask scheduler`` and ``dask worker ADDRESS`` make one. Drawing,
the run's folder and the order of results stay in the campaign's process, as with workers on one machine, so the
same seed gives the same numbers and the same buckets.

===============  ==========================================================================
``pool``         the campaign's side: a ``CaseRunner`` whose workers are elsewhere
``nodes``        which nodes are there, and which has a free place
``node``         what runs on a node
``parcel``       the bytes between them
===============  ==========================================================================
"""
