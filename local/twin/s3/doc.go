// Package s3 is the object store of the local stack: an S3-compatible server on
// loopback, in this process, with persistent objects.
//
// The checks of signatures and checksums, and the API's documents and errors, come from
// versity/versitygw. Its server is not used, because it links clients of Kafka, RabbitMQ, LDAP,
// Vault and others, which take a tenth of the build time. Its storage is not used either: it
// changes the working directory of the process, prints on standard output, and needs a file
// system with extended attributes.
//
//	DIR/catalog.db   objects, unfinished uploads, and the pieces of both
//	DIR/blobs/xx/…   the bytes: files that are written once and never changed
//
// An object is a list of pieces of blobs. So a copy, or the completion of a multipart upload,
// moves no bytes. A blob is on disk before the catalog commit that makes it visible. So an
// object is complete or absent, even after kill -9. The next start removes blobs without a
// piece. Unfinished uploads are kept for seven days, as in R2.
//
// There are two buckets and two accounts. The owner can access both buckets, the worker only
// the one for uploads. Features that R2 does not have get NotImplemented: versions, ACLs,
// policies, tags, locks, websites. So do more buckets, CORS and lifecycles, which Sortie does
// not use. HTML forms cannot upload.
package s3
