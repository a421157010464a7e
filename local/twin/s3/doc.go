// Package s3 is the object store of the local stack: an S3-compatible server on
// loopback, in this process, whose objects survive it.
//
// HTTP, XML, signatures, presigned URLs and access rules are versity/versitygw's.
// What it stands on is ours, because versitygw's own POSIX backend moves the
// working directory of the whole process to its root, prints on standard output,
// and keeps an object's ETag and type in extended attributes, which not every
// file system has:
//
//	DIR/catalog.db   objects, unfinished uploads, and what bytes they are made of
//	DIR/blobs/xx/…   the bytes: files that are written once and never changed
//
// An object is a list of pieces of blobs, so a copy and the end of an upload in
// parts move no bytes, whatever the size. A blob is on the disk before the
// catalog's commit that makes it visible; so an object is there whole or not at
// all, also after kill -9, and a blob that no piece is of is a leftover, removed
// at the next start. Unfinished uploads live on, as they do in R2, for seven days.
//
// There are two buckets and two accounts: ours reaches both, the worker's the
// bucket for uploads alone. It refuses everything that Sortie has no use for:
// more buckets, versions, ACLs, tags, locks, websites.
package s3
