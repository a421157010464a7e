// Package entityapi serves a collection of archive entities with version 0 of Arke's entity
// API. It returns manifests by persistent identifier (PI) and bytes by content identifier
// (CID).
//
//	GET /                                    the service and its health
//	GET /arke                                the root entity; its children are the roots of the collection
//	GET /entities?limit=1..1000&cursor=      {entities:[{pi,tip}], limit, next_cursor}
//	GET /entities/{pi}                       the manifest, its links as CID strings
//	GET /entities/{pi}/versions?limit&cursor {items:[{ver,cid,ts,note?}], next_cursor}, newest first
//	GET /entities/{pi}/versions/{selector}   ver:N or cid:CID
//	GET /resolve/{pi}                        {pi, tip}
//	GET /cat/{cid}                           bytes; immutable, X-IPFS-CID
//
// Errors are {"error": CODE, "message", "details"} with the codes and statuses of that API. The
// API is read-only here. HEAD is answered like GET, and other methods are rejected.
//
// A CID identifies the bytes that /cat returns for it, unless a Source deliberately has wrong
// bytes. Manifests are DAG-CBOR nodes, which /cat also serves. All bytes are computed on
// request. The first /cat for a manifest that was not read recently builds an index of 16 bytes
// per CID, which takes about 80 us per entity.
package entityapi
