// Package s3 is the object store of the local stack: an S3-compatible server on
// loopback, in this process, with persistent objects.
//
// The checks of signatures and checksums, and the documents and errors of the API
// come from versity/versitygw. Its own server is not used: it links clients of Kafka,
// RabbitMQ, LDAP, Vault and others, a tenth of the time of a build. Nor is its
// storage, which changes the working directory of the process, prints on standard
// output, and needs a file system with extended attributes.
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
// the worker's only the one for uploads. What R2 does not have either is answered
// with NotImplemented: versions, ACLs, policies, tags, locks, websites. So are more
// buckets, CORS and lifecycles, which Sortie does not use. HTML forms cannot upload.
package s3
