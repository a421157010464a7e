// Package s3 is the object store of the local stack: an S3-compatible server on
// loopback, in this process, with persistent objects.
//
// HTTP, XML, signatures, presigned URLs and access rules come from
// versity/versitygw. The storage backend is our own: versitygw's POSIX backend
// changes the working directory of the process, prints on standard output, and
// needs a file system with extended attributes.
//
//	DIR/catalog.db   objects, unfinished uploads, and the pieces of both
//	DIR/blobs/xx/…   the bytes: files that are written once and never changed
//
// An object is a list of pieces of blobs, so a copy or the completion of a
// multipart upload moves no bytes, whatever the size. A blob is on disk before
// the catalog commit that makes it visible. So an object is complete or absent,
// even after kill -9; a blob without a piece is removed at the next start.
// Unfinished uploads are kept for seven days, as in R2.
//
// There are two buckets and two accounts: the owner's can access both buckets,
// the worker's only the one for uploads. What Sortie does not use is not
// implemented: more buckets, versions, ACLs, tags, locks, websites.
package s3
